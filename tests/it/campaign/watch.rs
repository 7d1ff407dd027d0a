//! Looks at the keys of a round all the time, beside the clients and the proxies.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::ledger::now;

const BETWEEN: Duration = Duration::from_millis(20);
const ANSWER: Duration = Duration::from_millis(100);

/// A look at a key, with the times of its begin and end. `taken` is `None` if no server
/// answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) begun: u64,
    pub(super) ended: u64,
    pub(super) taken: Option<bool>,
}

pub(super) struct Watch {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Vec<Look>>>>,
}

impl Watch {
    /// Starts to look. A key is taken if any of these servers has it.
    pub(super) fn begin(servers: Vec<SocketAddr>, keys: Vec<String>) -> Watch {
        let ends = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            let mut servers: Vec<_> = servers
                .into_iter()
                .map(|address| Server {
                    address,
                    stream: None,
                })
                .collect();
            let mut looks = vec![Vec::new(); keys.len()];
            while !told.load(Ordering::SeqCst) {
                for (key, looks) in keys.iter().zip(&mut looks) {
                    let begun = now();
                    let answers: Vec<_> = servers
                        .iter_mut()
                        .filter_map(|it| it.has(key).ok().flatten())
                        .collect();
                    let taken = (!answers.is_empty()).then(|| answers.contains(&true));
                    looks.push(Look {
                        begun,
                        ended: now(),
                        taken,
                    });
                }
                std::thread::sleep(BETWEEN);
            }
            looks
        });
        Watch {
            ends,
            thread: Some(thread),
        }
    }

    /// Returns all looks at each key.
    pub(super) fn end(mut self) -> Vec<Vec<Look>> {
        self.ends.store(true, Ordering::SeqCst);
        self.thread.take().expect("once").join().expect("no panic")
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
    }
}

struct Server {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

impl Server {
    /// Returns whether the server has the key.
    ///
    /// `None` from a server that has other slots, or no keys at the moment.
    fn has(&mut self, key: &str) -> io::Result<Option<bool>> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect_timeout(&self.address, ANSWER)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(ANSWER))?;
                BufReader::new(stream)
            }
        };
        stream
            .get_mut()
            .write_all(format!("EXISTS {key}\r\n").as_bytes())?;
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let answer = match line.as_str() {
            ":0\r\n" => Some(false),
            ":1\r\n" => Some(true),
            "" => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => None,
        };
        self.stream = Some(stream);
        Ok(answer)
    }
}
