//! Clients that are processes of their own and are killed (`kill -9`): with the lock in their hands, and
//! while they ask for it; and servers that die, forget and stop. What the clients claim is written
//! down outside of them, and compared at the end.
//!
//! `LOCK_TESTS_REDLOCK` says how many acquisitions.

use std::fs::{self, File};
use std::future::poll_fn;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{ChildProcess, RedisServer, needs, wait};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::contenders::{acquisitions, patience, wait_long};
use super::{Nodes, builder};
use crate::ledger::{Ledger, claim};

const URLS: &str = "LOCK_TESTS_NODES";
const FOLDER: &str = "LOCK_TESTS_LEDGER";
const PROCESSES: usize = 3;
const TASKS: usize = 3;
/// Of every lock, and so long is a server kept out that has forgotten.
const TTL: Duration = Duration::from_millis(1_500);

/// What this process is told: by files, which outlive whoever is killed.
struct Orders<'a>(&'a Path);

impl Orders<'_> {
    fn are(&self, what: &str, pid: u32) -> bool {
        self.0.join(format!("{what} {pid}")).exists()
    }

    fn give(&self, what: &str, pid: u32) {
        fs::write(self.0.join(format!("{what} {pid}")), "").expect("a folder");
    }
}

/// Nobody in particular: everybody.
const ALL: u32 = 0;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that other tests start"]
async fn contends_until_killed() {
    let (Ok(urls), Ok(folder)) = (std::env::var(URLS), std::env::var(FOLDER)) else {
        return;
    };
    let builder = builder(urls.split(',').map(str::to_owned));
    let builder = builder.max_ttl(TTL).default_ttl(TTL);
    // A server that is stopped is to be found out while the others are still at it.
    let builder = builder.operation_timeout(Duration::from_secs(2));
    let locks = builder.connect_lazy().expect("URLs");
    let ledger = Arc::new(Ledger::open(Path::new(&folder)));
    let tasks = (0..TASKS).map(|task| {
        let wait = match task {
            0 => Wait::None,
            _ => Wait::For(Duration::from_secs(5)),
        };
        let (locks, folder, ledger) = (locks.clone(), folder.clone(), Arc::clone(&ledger));
        tokio::spawn(async move { contend(locks, &ledger, Orders(Path::new(&folder)), wait).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no panic");
    }
    let left = locks.drain(wait::PATIENCE).await;
    assert_eq!((left.held(), left.releasing()), (0, 0));
}

async fn contend(locks: LockManager, ledger: &Ledger, orders: Orders<'_>, wait: Wait) {
    let myself = std::process::id();
    while !orders.are("end", ALL) {
        let told = orders.are("ask", myself);
        let mut acquire = Box::pin(locks.lock("k").wait(wait).acquire());
        // The first look is what sends the questions.
        let first = poll_fn(|context| Poll::Ready(acquire.as_mut().poll(context))).await;
        if told {
            println!("\nasking");
        }
        let answer = match first {
            Poll::Ready(answer) => answer,
            Poll::Pending => timeout(wait::PATIENCE, acquire).await.expect("no hang"),
        };
        match answer {
            Ok(guard) => {
                let Some(claim) = claim(ledger, &guard) else {
                    continue;
                };
                if orders.are("hold", myself) {
                    println!("\nholding");
                    while claim.goes_on(|| guard.is_valid()) {
                        sleep(Duration::from_millis(5)).await;
                    }
                }
                tokio::task::yield_now().await;
                claim.goes_on(|| guard.is_valid());
                let release = timeout(wait::PATIENCE, guard.release());
                if let Err(error) = release.await.expect("no hang") {
                    let kind = error.kind();
                    let expected = matches!(kind, ErrorKind::Unavailable | ErrorKind::Lost);
                    assert!(expected, "{error:?}");
                }
            }
            Err(error) => {
                let expected = matches!(error.kind(), ErrorKind::Busy | ErrorKind::Unavailable);
                assert!(expected, "{error:?}");
            }
        }
        // Whoever is refused at once leaves the machine to the others for a moment.
        sleep(Duration::from_millis(1)).await;
    }
}

struct Stage {
    nodes: Nodes,
    folder: TempDir,
    clients: Vec<ChildProcess>,
    written: File,
    lines: u64,
    killed_inside: u32,
    killed_asking: u32,
    crashes: u32,
}

impl Stage {
    fn start() -> Stage {
        let folder = tempfile::tempdir().expect("a folder");
        drop(Ledger::open(folder.path()));
        let mut stage = Stage {
            nodes: Nodes::start(5),
            written: File::open(folder.path().join("ledger")).expect("a ledger"),
            folder,
            clients: Vec::new(),
            lines: 0,
            killed_inside: 0,
            killed_asking: 0,
            crashes: 0,
        };
        stage.clients = (0..PROCESSES).map(|_| stage.client()).collect();
        stage
    }

    /// This binary again, running the ignored test above.
    fn client(&self) -> ChildProcess {
        let urls: Vec<_> = self.nodes.0.iter().map(RedisServer::url).collect();
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command
            .args(["--exact", "redlock::killed::contends_until_killed"])
            .args(["--ignored", "--nocapture"])
            .env(URLS, urls.join(","))
            .env(FOLDER, self.folder.path());
        ChildProcess::spawn(command)
    }

    /// How often somebody was inside, about: most write a line when they go in, and one when they go.
    fn entered(&mut self) -> u64 {
        let mut new = Vec::new();
        self.written.read_to_end(&mut new).expect("a ledger");
        self.lines += new.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.lines / 2
    }

    fn is_done(&mut self) -> bool {
        self.entered() >= acquisitions()
    }

    /// Resolves when more of them have been inside.
    async fn goes_on(&mut self) {
        let enough = self.entered() + (acquisitions() / 4).min(500);
        wait_long("they go on", async || {
            for client in &mut self.clients {
                assert!(client.is_running(), "{}", client.output());
            }
            self.entered() >= enough
        })
        .await;
    }

    /// One of the clients, by turns, does as it is told; then it is killed, and another takes its place.
    fn kills_who(&mut self, order: &str, says: &str) {
        let client = self.clients.remove(0);
        Orders(self.folder.path()).give(order, client.pid());
        let before = self.entered();
        let said = client.line(patience(), |line| line == says);
        let meanwhile = self.entered() - before;
        assert!(
            said.is_some(),
            "not {says}, and {meanwhile} times somebody was inside:\n{}",
            client.output()
        );
        dies(client);
    }

    /// Its lock stays until it has run out.
    fn kills_who_is_inside(&mut self) {
        self.kills_who("hold", "holding");
        self.killed_inside += 1;
        self.clients.push(self.client());
    }

    /// The questions of whoever asks are at two servers, and on their way to three.
    fn kills_who_asks(&mut self, first: usize) {
        let stopped = [first, (first + 1) % 5, (first + 2) % 5];
        stopped.iter().for_each(|node| self.nodes.0[*node].stop());
        self.kills_who("ask", "asking");
        stopped.iter().for_each(|node| self.nodes.0[*node].cont());
        self.killed_asking += 1;
        self.clients.push(self.client());
    }

    async fn end(mut self) {
        wait_long("all is done", async || self.is_done()).await;
        Orders(self.folder.path()).give("end", ALL);
        for client in &mut self.clients {
            let ended = client.wait(wait::PATIENCE * 3);
            assert!(ended.is_some_and(|it| it.success()), "{}", client.output());
        }
        let claims = Ledger::open(self.folder.path()).check();
        println!(
            "{claims} acquisitions; {} processes killed with the lock, {} while they asked; {} servers killed or stopped",
            self.killed_inside, self.killed_asking, self.crashes
        );
        assert!(claims as u64 >= acquisitions() * 9 / 10);
        self.nodes.are_left_clean().await;
    }
}

fn dies(mut client: ChildProcess) {
    let output = client.output();
    assert!(!output.contains("panicked"), "{output}");
    client.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_processes_is_inside_while_they_and_their_servers_are_killed() {
    needs!(redis);
    let mut stage = Stage::start();
    for dying in (0..5).cycle() {
        if stage.is_done() {
            break;
        }
        stage.goes_on().await;
        tokio::task::block_in_place(|| stage.kills_who_is_inside());
        stage.goes_on().await;
        tokio::task::block_in_place(|| stage.kills_who_asks(dying));
        stage.goes_on().await;
        // A server forgets; and while it does not vote yet, one more is missing.
        stage.crashes += 2;
        let stops = (dying + 1) % 5;
        stage.nodes.0[dying].kill();
        stage.goes_on().await;
        stage.nodes.0[stops].stop();
        stage.nodes.0[dying].start_again();
        stage.goes_on().await;
        stage.nodes.0[stops].cont();
        wait::eventually("it votes again", async || {
            stage.nodes.0[dying].cli(&["HGET", "lock:!r", "opens"]) == "0"
        })
        .await;
    }
    stage.end().await;
}
