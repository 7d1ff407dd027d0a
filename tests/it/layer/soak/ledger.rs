//! Records the work of the handlers in the process of the test.
//!
//! The ledger knows nothing of locks. It records which handler works on which key and when, and has
//! a stock that checks fencing tokens.
//!
//! A handler opens one connection and sends lines, and the ledger answers each line before the
//! handler continues. So each entry happened between the handler's beginning and its end, and two
//! entries that overlap are two handlers that overlapped.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A stock that suffices for every handler.
pub(super) const STOCK: i64 = 1_000_000;

/// The ledger's server, which ends when this value is dropped.
pub(super) struct Ledger {
    port: u16,
    book: Arc<Mutex<Book>>,
    serving: JoinHandle<()>,
}

/// All records.
#[derive(Default)]
pub(super) struct Book {
    pub(super) runs: Vec<Run>,
    pub(super) shelves: HashMap<String, Shelf>,
}

/// One handler, from its first line to its last.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) key: String,
    pub(super) click: u64,
    /// The fencing token; `None` without a lock.
    pub(super) fence: Option<u64>,
    pub(super) began: Instant,
    /// The time at which the handler was told that its lock is lost.
    pub(super) lost: Option<Instant>,
    pub(super) ended: Option<Instant>,
    /// The outcome of the release, if the handler released its lock itself.
    pub(super) released: Option<String>,
    /// The stock's decision about the handler's write.
    pub(super) wrote: Option<bool>,
}

/// The stock of one key.
#[derive(Debug)]
pub(super) struct Shelf {
    pub(super) pieces: i64,
    /// The highest token that readers and writers have shown.
    fence: u64,
}

impl Ledger {
    pub(super) async fn open() -> Ledger {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let book = Arc::<Mutex<Book>>::default();
        let serving = tokio::spawn({
            let book = Arc::clone(&book);
            async move {
                loop {
                    let (stream, _) = listener.accept().await.expect("a handler");
                    tokio::spawn(listen(stream, Arc::clone(&book)));
                }
            }
        });
        Ledger {
            port,
            book,
            serving,
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&Book) -> T) -> T {
        read(&lock(&self.book))
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn lock(book: &Mutex<Book>) -> std::sync::MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn listen(stream: TcpStream, book: Arc<Mutex<Book>>) {
    let mut lines = BufReader::new(stream);
    let mut run = None;
    let mut line = String::new();
    // A handler that breaks off leaves a run without an end, and the checks find it.
    while lines.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = lock(&book).hear(&mut run, &words);
        line.clear();
        if lines.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

impl Book {
    fn hear(&mut self, run: &mut Option<usize>, words: &[&str]) -> String {
        let now = Instant::now();
        if let ["begin", key, click, fence] = words {
            return self.begin(run, key, click, fence);
        }
        let run = &mut self.runs[run.expect("the handler has begun")];
        match words {
            ["lost"] => run.lost = Some(now),
            ["end"] => run.ended = Some(now),
            ["released", how] => run.released = Some((*how).to_owned()),
            ["write", pieces] => {
                let shelf = self.shelves.get_mut(&run.key).expect("the shelf was read");
                run.wrote = Some(shelf.write(run.fence, pieces.parse().expect("a number")));
            }
            other => panic!("not understood: {other:?}"),
        }
        "noted\n".to_owned()
    }

    /// Begins a run and returns the number of pieces on the shelf.
    fn begin(&mut self, run: &mut Option<usize>, key: &str, click: &str, fence: &str) -> String {
        let fence = fence.parse().ok();
        *run = Some(self.runs.len());
        self.runs.push(Run {
            key: key.to_owned(),
            click: click.parse().expect("a number"),
            fence,
            began: Instant::now(),
            lost: None,
            ended: None,
            released: None,
            wrote: None,
        });
        let shelf = self.shelves.entry(key.to_owned()).or_insert(Shelf {
            pieces: STOCK,
            fence: 0,
        });
        shelf.fence = shelf.fence.max(fence.unwrap_or(0));
        format!("{}\n", shelf.pieces)
    }
}

impl Shelf {
    /// Writes unless the token is below the highest one, which means that the lock has passed to
    /// another owner.
    fn write(&mut self, fence: Option<u64>, pieces: i64) -> bool {
        let taken = fence.is_none_or(|fence| fence >= self.fence);
        if taken {
            self.pieces = pieces;
        }
        taken
    }
}

/// The handler's side of the connection.
pub(super) struct Visit(BufReader<TcpStream>);

impl Visit {
    /// Begins a run and reads the number of pieces on the shelf.
    pub(super) async fn begin(
        ledger: SocketAddr,
        key: &str,
        click: &str,
        fence: Option<u64>,
    ) -> (Visit, i64) {
        let stream = TcpStream::connect(ledger).await.expect("the ledger");
        stream.set_nodelay(true).expect("a socket");
        let mut visit = Visit(BufReader::new(stream));
        let fence = fence.map_or("none".to_owned(), |fence| fence.to_string());
        let pieces = visit.say(&format!("begin {key} {click} {fence}")).await;
        (visit, pieces.trim().parse().expect("a number"))
    }

    pub(super) async fn say(&mut self, line: &str) -> String {
        let line = format!("{line}\n");
        let mut answer = String::new();
        self.0.write_all(line.as_bytes()).await.expect("the ledger");
        self.0.read_line(&mut answer).await.expect("the ledger");
        assert!(!answer.is_empty(), "the ledger was closed");
        answer
    }
}
