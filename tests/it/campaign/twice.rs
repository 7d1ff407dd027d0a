//! Records the requests on the way to a server, and can send them again.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

type Requests = Arc<Mutex<Vec<u8>>>;

/// The number of bytes of a connection that are recorded.
const MOST: usize = 512 * 1024;
/// The time that a server has to answer repeated requests.
const ANSWERS: Duration = Duration::from_millis(300);

#[derive(Debug)]
pub(super) struct Recorder {
    address: SocketAddr,
    server: SocketAddr,
    connections: Arc<Mutex<Vec<Requests>>>,
}

impl Recorder {
    /// Starts the recorder. Its threads end with their connections, and the accepting one with
    /// the process.
    pub(super) fn to(server: SocketAddr) -> Recorder {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("bound");
        let connections = Arc::new(Mutex::new(Vec::new()));
        let all: Arc<Mutex<Vec<Requests>>> = Arc::clone(&connections);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(server) else {
                    continue;
                };
                let requests = Requests::default();
                locked(&all).push(Arc::clone(&requests));
                let (Ok(from_server), Ok(to_client)) = (server.try_clone(), client.try_clone())
                else {
                    continue;
                };
                std::thread::spawn(move || copy(client, server, Some(&requests)));
                std::thread::spawn(move || copy(from_server, to_client, None));
            }
        });
        Recorder {
            address,
            server,
            connections,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends all recorded requests, those of each connection on a connection of their own.
    pub(super) fn replay(&self) {
        let all: Vec<_> = locked(&self.connections)
            .iter()
            .map(|it| locked(it).clone())
            .collect();
        for requests in all {
            let _ = send(self.server, &requests);
        }
    }
}

fn send(server: SocketAddr, requests: &[u8]) -> io::Result<()> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(ANSWERS))?;
    let mut answers = stream.try_clone()?;
    let reads = std::thread::spawn(move || {
        let mut some = [0; 4096];
        while matches!(answers.read(&mut some), Ok(1..)) {}
    });
    stream.set_write_timeout(Some(ANSWERS))?;
    let written = stream.write_all(requests);
    let _ = reads.join();
    written
}

/// Copies until one of the two ends, and then ends both.
fn copy(mut from: TcpStream, mut to: TcpStream, requests: Option<&Requests>) {
    let _ = (from.set_nodelay(true), to.set_nodelay(true));
    let mut some = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut some) {
        if let Some(requests) = requests {
            let mut requests = locked(requests);
            if requests.len() + length <= MOST {
                requests.extend_from_slice(&some[..length]);
            }
        }
        if to.write_all(&some[..length]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

fn locked<T>(it: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}
