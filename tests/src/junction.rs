//! Routes the connections to one port to several addresses, by the first bytes of each connection.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::Port;
use crate::thread::NetworkThread;

/// Listens on a port and joins each connection with the address that it is for.
///
/// A junction runs on a thread of its own, as a [`Proxy`](crate::Proxy) does, because a proxy may
/// stand behind it.
#[derive(Debug)]
pub(crate) struct Junction {
    _port: Port,
    _thread: NetworkThread,
}

impl Junction {
    /// Listens on `port`.
    ///
    /// `way` maps the first bytes of a connection to its address; `None` means that it needs more
    /// bytes.
    ///
    /// # Panics
    ///
    /// When the port is taken.
    #[track_caller]
    pub(crate) fn at(
        port: Port,
        way: impl Fn(&[u8]) -> Option<SocketAddr> + Send + Sync + 'static,
    ) -> Junction {
        let listener = StdListener::bind(port.address()).expect("the reserved port");
        Junction {
            _thread: NetworkThread::spawn(accept_all(listener, Arc::new(way))),
            _port: port,
        }
    }
}

type Way = dyn Fn(&[u8]) -> Option<SocketAddr> + Send + Sync;

async fn accept_all(listener: StdListener, way: Arc<Way>) {
    listener.set_nonblocking(true).expect("a socket");
    let listener = TcpListener::from_std(listener).expect("a runtime");
    while let Ok((from, _)) = listener.accept().await {
        tokio::spawn(join(from, Arc::clone(&way)));
    }
}

/// Copies bytes until both sides have ended their stream, or one of them has gone.
async fn join(mut from: TcpStream, way: Arc<Way>) {
    let mut said = Vec::new();
    let address = loop {
        if let Some(address) = way(&said) {
            break address;
        }
        if !matches!(from.read_buf(&mut said).await, Ok(1..)) {
            return;
        }
    };
    let Ok(mut to) = TcpStream::connect(address).await else {
        return;
    };
    let _ = (from.set_nodelay(true), to.set_nodelay(true));
    if to.write_all(&said).await.is_ok() {
        let _ = copy_bidirectional(&mut from, &mut to).await;
    }
}
