//! Tests clients that are separate processes and are killed by `kill -9`.
//!
//! They are killed while they hold the lock and while they ask for it.
//!
//! Servers die, lose data and stop meanwhile. A ledger outside the clients records their claims and
//! compares them at the end.
//!
//! `LOCK_TESTS_REDLOCK` sets the number of acquisitions.

use std::fs::{self, File};
use std::future::poll_fn;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{ChildProcess, RedisServer, needs, wait};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::contenders::{acquisitions, patience, wait_long};
use super::{Nodes, builder};
use crate::kinds::ledger::Ledger;
use crate::steps::drains;

const URLS: &str = "LOCK_TESTS_NODES";
const FOLDER: &str = "LOCK_TESTS_LEDGER";
const PROCESSES: usize = 3;
const TASKS: usize = 3;
/// The ttl of every lock, and the time for which a server that has lost its data does not vote.
const TTL: Duration = Duration::from_millis(1_500);

/// The orders for the clients, in files, which outlive a killed process.
struct Orders<'a>(&'a Path);

impl Orders<'_> {
    /// Returns the number of an order: its addressee, or its time.
    fn told(&self, what: &str) -> Option<u32> {
        let told = fs::read_to_string(self.0.join(what)).ok()?;
        told.parse().ok()
    }

    fn give(&self, what: &str, number: u32) {
        // A rename writes the file completely or not at all.
        let written = self.0.join("written");
        fs::write(&written, number.to_string()).expect("a folder");
        fs::rename(&written, self.0.join(what)).expect("a folder");
    }

    fn take_back(&self, what: &str) {
        fs::remove_file(self.0.join(what)).expect("the order was given");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that other tests start"]
async fn contends_until_killed() {
    let (Ok(urls), Ok(folder)) = (std::env::var(URLS), std::env::var(FOLDER)) else {
        return;
    };
    let builder = builder(urls.split(',').map(str::to_owned));
    let builder = builder.max_ttl(TTL).default_ttl(TTL);
    // A stopped server must be detected while the others are still at work.
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
    drains(&locks).await;
}

async fn contend(locks: LockManager, ledger: &Ledger, orders: Orders<'_>, wait: Wait) {
    let myself = std::process::id();
    while orders.told("end").is_none() {
        let told = orders.told("ask") == Some(myself);
        let mut acquire = Box::pin(locks.lock("k").wait(wait).acquire());
        // The first poll sends the requests.
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
                let Some(claim) = ledger.of(&guard) else {
                    continue;
                };
                if let Some(time) = orders.told("hold") {
                    println!("\nholding {time}");
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
        // A client that is refused at once leaves the machine to the others for a moment.
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

    /// Starts this binary again, with the ignored test above.
    fn client(&self) -> ChildProcess {
        let urls: Vec<_> = self.nodes.0.iter().map(RedisServer::url).collect();
        let folder = self.folder.path().to_str().expect("a name");
        let test = "redlock::killed::contends_until_killed";
        ChildProcess::of_test(test, &[(URLS, &urls.join(",")), (FOLDER, folder)])
    }

    /// Counts the owners so far, roughly. Most owners write a line when they enter and one when they
    /// leave.
    fn entered(&mut self) -> u64 {
        let mut new = Vec::new();
        self.written.read_to_end(&mut new).expect("a ledger");
        self.lines += new.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.lines / 2
    }

    fn is_done(&mut self) -> bool {
        self.entered() >= acquisitions()
    }

    /// Waits until more owners have been inside.
    async fn goes_on(&mut self) {
        let enough = self.entered() + (acquisitions() / 4).min(500);
        wait_long("the clients go on", async || {
            for client in &mut self.clients {
                assert!(client.is_running(), "{}", client.output());
            }
            self.entered() >= enough
        })
        .await;
    }

    /// Kills the next owner, which holds the lock until its death.
    ///
    /// Its lock stays until it has run out. Any client may be the next one, because waiting over several
    /// servers is not fair.
    fn kills_the_next_owner(&mut self) {
        self.killed_inside += 1;
        let orders = Orders(self.folder.path());
        orders.give("hold", self.killed_inside);
        let words = format!("holding {}", self.killed_inside);
        let holds = |client: &ChildProcess| client.line(Duration::ZERO, |line| line == words);
        let mut inside = None;
        let comes_in = wait::holds_within(patience(), || {
            inside = self.clients.iter().position(|it| holds(it).is_some());
            inside.is_some()
        });
        assert!(comes_in, "no client gets the lock");
        orders.take_back("hold");
        dies(self.clients.remove(inside.expect("a client has the lock")));
        self.clients.push(self.client());
    }

    /// Kills a client that asks, each client in turn. Its requests are at two servers, and on their way
    /// to three.
    fn kills_a_client_that_asks(&mut self, first: usize) {
        let stopped = [first, (first + 1) % 5, (first + 2) % 5];
        stopped.iter().for_each(|node| self.nodes.0[*node].stop());
        let client = self.clients.remove(0);
        Orders(self.folder.path()).give("ask", client.pid());
        let said = client.line(patience(), |line| line == "asking");
        assert!(
            said.is_some(),
            "the client does not ask:\n{}",
            client.output()
        );
        dies(client);
        stopped.iter().for_each(|node| self.nodes.0[*node].cont());
        self.killed_asking += 1;
        self.clients.push(self.client());
    }

    async fn end(mut self) {
        wait_long("all acquisitions are done", async || self.is_done()).await;
        Orders(self.folder.path()).give("end", 1);
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
async fn only_one_of_many_processes_is_inside_while_clients_and_servers_are_killed() {
    needs!(redis);
    let mut stage = Stage::start();
    for dying in (0..5).cycle() {
        if stage.is_done() {
            break;
        }
        stage.goes_on().await;
        tokio::task::block_in_place(|| stage.kills_the_next_owner());
        stage.goes_on().await;
        tokio::task::block_in_place(|| stage.kills_a_client_that_asks(dying));
        stage.goes_on().await;
        // One server loses its data. While it does not vote yet, another one is stopped.
        stage.crashes += 2;
        let stops = (dying + 1) % 5;
        stage.nodes.0[dying].kill();
        stage.goes_on().await;
        stage.nodes.0[stops].stop();
        stage.nodes.0[dying].start_again();
        stage.goes_on().await;
        stage.nodes.0[stops].cont();
        wait::eventually("the server votes again", async || {
            stage.nodes.0[dying].cli(&["HGET", "lockkit:!r", "opens"]) == "0"
        })
        .await;
    }
    stage.end().await;
}
