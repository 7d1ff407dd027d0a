//! Runs peers that speak the protocol badly, or not at all.

mod answer;
mod request;

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener as AsyncListener, TcpStream};
use tokio::sync::watch;

use crate::Port;
use crate::thread::NetworkThread;

pub use answer::Answer;
use request::Requests;
pub(crate) use request::first as first_request;

/// A server on a loopback port that gives the same answer to every request.
///
/// A real [`RedisServer`](crate::RedisServer) shows some faults better: a frozen process, too
/// little memory, a forbidden command.
#[derive(Debug)]
pub struct FakeServer {
    answer: watch::Sender<Answer>,
    commands: Arc<Mutex<Vec<String>>>,
    port: Port,
    _thread: NetworkThread,
}

impl FakeServer {
    /// Starts a server that gives `answer` from the first byte on.
    ///
    /// No client gets past its handshake.
    ///
    /// # Panics
    ///
    /// When no port is free.
    #[track_caller]
    pub fn start(answer: Answer) -> FakeServer {
        FakeServer::listen(answer, Handshake::Answered)
    }

    /// Starts a server that greets like Redis 7 and gives `answer` to everything else.
    ///
    /// HELLO, AUTH, CLIENT, SELECT, SUBSCRIBE and PING succeed.
    ///
    /// # Panics
    ///
    /// When no port is free.
    #[track_caller]
    pub fn after_handshake(answer: Answer) -> FakeServer {
        FakeServer::listen(answer, Handshake::Succeeds)
    }

    /// Gives another answer from now on, also on live connections.
    pub fn set(&self, answer: Answer) {
        self.answer.send_replace(answer);
    }

    /// Returns `redis://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Returns the names of all commands received, in upper case and in their order.
    pub fn commands(&self) -> Vec<String> {
        self.commands
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn listen(answer: Answer, handshake: Handshake) -> FakeServer {
        let port = Port::free();
        let listener = TcpListener::bind(port.address()).expect("the reserved port");
        let commands = Arc::default();
        let answer = watch::Sender::new(answer);
        let work = accept_all(
            listener,
            answer.subscribe(),
            handshake,
            Arc::clone(&commands),
        );
        FakeServer {
            answer,
            commands,
            port,
            _thread: NetworkThread::spawn(work),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handshake {
    Succeeds,
    Answered,
}

async fn accept_all(
    listener: TcpListener,
    answer: watch::Receiver<Answer>,
    handshake: Handshake,
    commands: Arc<Mutex<Vec<String>>>,
) {
    listener.set_nonblocking(true).expect("a socket");
    let listener = AsyncListener::from_std(listener).expect("a runtime");
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(talk(
            stream,
            answer.clone(),
            handshake,
            Arc::clone(&commands),
        ));
    }
}

async fn talk(
    mut stream: TcpStream,
    answer: watch::Receiver<Answer>,
    handshake: Handshake,
    commands: Arc<Mutex<Vec<String>>>,
) {
    let mut requests = Requests::default();
    while let Some(request) = requests.next(&mut stream).await {
        let name = request[0].to_ascii_uppercase();
        commands
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(name);

        let greeting = match handshake {
            Handshake::Succeeds => answer::greeting(&request),
            Handshake::Answered => None,
        };
        let bytes = greeting.or_else(|| answer.borrow().bytes(&request));
        let Some(bytes) = bytes else { return };
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
