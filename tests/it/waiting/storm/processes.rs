//! Tests processes that are killed and stopped.
//!
//! Connections, scripts and queues are removed meanwhile, and a client of another library takes
//! part.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lock_core::LockManager;
use lock_core::redis1::{Connection, cmd};
use lock_tests::{ChildProcess, RedisServer, needs, wait};

use super::taker::Tally;
use super::{acts, nothing_stays, number, seed, takes};
use crate::dice::Dice;
use crate::kinds::ledger::Ledger;
use crate::steps::drains;
use crate::waiting::{process, server_of_parent};

const FOLDER: &str = "LOCK_TESTS_LEDGER";
const PROCESSES: usize = 3;
const TASKS: u64 = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that other tests start"]
async fn takes_the_lock_in_many_tasks() {
    let (Some(url), Ok(folder)) = (server_of_parent(), std::env::var(FOLDER)) else {
        return;
    };
    let folder: Arc<Path> = Path::new(&folder).into();
    let locks = LockManager::connect_lazy(&url).expect("a URL");
    let ledger = Arc::new(Ledger::open(&folder));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (locks, folder, ledger) = (locks.clone(), Arc::clone(&folder), Arc::clone(&ledger));
            let seed = number("LOCK_TESTS_SEED", 1) * TASKS + task;
            tokio::spawn(async move { takes(locks, &folder, ledger, seed).await })
        })
        .collect();
    let mut all = Tally::default();
    for task in tasks {
        all.add(task.await.expect("no panic"));
    }
    drains(&locks).await;
    println!("\n{all:?}");
    assert!(all.entered > 0, "the process had the lock at least once");
    println!("\ndone");
}

/// A process, and the time at which it continues if it is stopped.
struct Player {
    process: ChildProcess,
    stopped: Option<Instant>,
}

struct Stage<'a> {
    server: &'a RedisServer,
    folder: &'a Path,
    players: Vec<Player>,
    started: u64,
}

impl Stage<'_> {
    fn player(&mut self) -> Player {
        self.started += 1;
        let seed = (seed() * 1_000 + self.started).to_string();
        let folder = self.folder.to_str().expect("a name");
        let environment = [(FOLDER, folder), ("LOCK_TESTS_SEED", &*seed)];
        let role = "storm::processes::takes_the_lock_in_many_tasks";
        Player {
            process: process(role, self.server, &environment),
            stopped: None,
        }
    }

    /// Applies a random fault.
    fn acts(&mut self, dice: &mut Dice) {
        let one = dice.index(PROCESSES);
        match dice.throw(40) {
            0 | 1 => {
                let next = self.player();
                let mut gone = std::mem::replace(&mut self.players[one], next);
                has_not_failed(&gone.process);
                gone.process.kill();
            }
            2..=6 if self.players[one].stopped.is_none() => {
                // The stop is sometimes longer than a ttl.
                let span = Duration::from_millis(4 << dice.throw(9));
                self.players[one].process.stop();
                self.players[one].stopped = Some(Instant::now() + span);
            }
            7..=20 => {
                let clients = self.server.cli(&["CLIENT", "LIST"]);
                let clients: Vec<_> = clients
                    .lines()
                    .filter(|client| !client.contains(" name=stranger "))
                    .filter_map(|client| client.strip_prefix("id=")?.split(' ').next())
                    .collect();
                let one = dice.index(clients.len());
                // The client that asked is among them, and may be gone by now.
                drop(self.server.try_cli(&["CLIENT", "KILL", "ID", clients[one]]));
            }
            21 | 22 => drop(self.server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"])),
            // Its waiters come back when the lock would end, so the queue is not deleted too often.
            23 => drop(self.server.cli(&["DEL", "lockkit:!q:{k}"])),
            24 | 25 => drop(self.server.cli(&["CLIENT", "PAUSE", "30"])),
            _ => drop(self.server.cli(&["SCRIPT", "FLUSH"])),
        }
    }

    fn goes_on(&mut self, everybody: bool) {
        for player in &mut self.players {
            let due = player
                .stopped
                .is_some_and(|end| everybody || Instant::now() >= end);
            if due {
                player.process.cont();
                player.stopped = None;
            }
        }
    }
}

#[track_caller]
fn has_not_failed(process: &ChildProcess) {
    let output = process.output();
    assert!(!output.contains("panicked"), "{output}");
}

/// Locks as other libraries do: `SET NX PX`, and a script that compares and deletes.
fn stranger(mut connection: Connection, ledger: &Ledger, over: &AtomicBool) -> u64 {
    let compare_and_delete =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end";
    let ttl = Duration::from_millis(400);
    let mut dice = Dice::of(&[seed(), 77]);
    let mut entered = 0;
    while !over.load(Ordering::SeqCst) {
        let value = format!("stranger {entered}");
        let sent = Instant::now();
        let mut set = cmd("SET");
        set.arg("lockkit:k").arg(&value).arg("NX");
        set.arg("PX").arg(ttl.as_millis().to_string());
        let taken: Option<String> = set.query(&mut connection).expect("an answer");
        let is_valid = || sent.elapsed() < ttl * 9 / 10;
        if taken.is_some()
            && let Some(claim) = ledger.alone(0, is_valid)
        {
            entered += 1;
            std::thread::sleep(Duration::from_micros(dice.throw(2_000)));
            claim.goes_on(is_valid);
        }
        if taken.is_some() {
            let mut release = cmd("EVAL");
            release.arg(compare_and_delete).arg(1).arg("lockkit:k");
            release.arg(&value);
            release.exec(&mut connection).expect("an answer");
        }
        std::thread::sleep(Duration::from_micros(dice.throw(20_000)));
    }
    entered
}

#[tokio::test]
async fn only_one_of_many_tasks_of_processes_that_die_and_stop_is_inside_and_every_task_is_served()
{
    needs!(redis);
    let server = RedisServer::start();
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = Arc::new(Ledger::open(folder.path()));
    let over = Arc::new(AtomicBool::new(false));
    let client = lock_core::redis1::Client::open(server.url()).expect("a URL");
    let mut connection = client.get_connection().expect("a connection");
    // The faults spare the client with this name.
    let named = cmd("CLIENT")
        .arg("SETNAME")
        .arg("stranger")
        .exec(&mut connection);
    named.expect("an answer");
    let stranger = std::thread::spawn({
        let (ledger, over) = (Arc::clone(&ledger), Arc::clone(&over));
        move || stranger(connection, &ledger, &over)
    });
    let mut stage = Stage {
        server: &server,
        folder: folder.path(),
        players: Vec::new(),
        started: 0,
    };
    for _ in 0..PROCESSES {
        let player = stage.player();
        stage.players.push(player);
    }
    let mut dice = Dice::of(&[seed()]);
    for _ in 0..acts() {
        stage.acts(&mut dice);
        tokio::time::sleep(Duration::from_millis(1 + dice.throw(40))).await;
        stage.goes_on(false);
    }
    stage.goes_on(true);
    // Every waiter is served from here on.
    tokio::time::sleep(Duration::from_millis(500)).await;
    over.store(true, Ordering::SeqCst);
    let strangers = stranger.join().expect("no panic");
    fs::write(folder.path().join("over"), "").expect("a folder");
    for player in &mut stage.players {
        let ended = player.process.wait(wait::PATIENCE * 3);
        let output = player.process.output();
        assert!(ended.is_some_and(|it| it.success()), "{output}");
        println!("{output}");
    }
    let claims = ledger.check();
    println!(
        "{claims} claims, {strangers} of them of a foreign client, in {} processes",
        stage.started
    );
    assert!(claims > 100, "there were many claims: {claims}");
    nothing_stays(&server).await;
}
