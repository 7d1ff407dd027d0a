//! Measures the locks on PostgreSQL beside the least that a lock in SQL can be, in the same run.
//!
//! The server waits for its disk. With the user `fast` a commit does not. Each way takes and frees keys of its own.

mod hand_over;
mod peer;
mod raw;

use std::time::{Duration, Instant};

use lock_core::LockManager;
use lock_tests::SqlServer;

use self::peer::Peer;
use self::raw::Raw;
use crate::bars::Bars;
use crate::machine::{self, median};

const ROUNDS: usize = 20;
const TURN: Duration = Duration::from_millis(100);
/// The connections of a way that needs one for as long as a lock is held.
const CONNECTIONS: usize = 16;

/// The users, each with the commits that it has.
const USERS: [(&str, &str); 2] = [("fast", "without the disk"), ("locks", "with the disk")];

pub(crate) fn run([client, server]: [usize; 2], short: bool, bars: &mut Bars) {
    machine::pin_this(server);
    let postgres = SqlServer::postgres_with(&["fsync=on", "max_connections=200"]);
    machine::pin_this(client);
    postgres.sql("CREATE ROLE fast LOGIN SUPERUSER");
    postgres.sql("ALTER ROLE fast SET synchronous_commit = off");
    raw::prepare(&postgres);
    let rounds = if short { ROUNDS / 5 } else { ROUNDS };
    println!(
        "\n| PostgreSQL, a free pair | commits | 1 task, µs | × two SELECT | 64 tasks, pairs/s | × two SELECT |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let runtime = machine::runtime();
    runtime.block_on(async {
        for (user, commits) in USERS {
            let found = pairs(&postgres.url_of(user), commits, rounds).await;
            if user == "fast" {
                bars.at_most(
                    "PostgreSQL without the disk, 1 task ÷ two SELECT",
                    found,
                    4.0,
                );
            }
        }
        for (user, commits) in USERS {
            hand_over::run(&postgres.url_of(user), commits, short).await;
        }
    });
}

/// One of the ways to take and free a key.
enum Way {
    Kit(Box<LockManager>),
    Raw(Raw),
    Peer(Peer),
}

/// Prints a line for each way, and returns the kit's time of one task as a multiple of the floor.
async fn pairs(url: &str, commits: &str, rounds: usize) -> f64 {
    let kit = LockManager::connect(url).await.expect("a manager");
    let mut ways = vec![("this kit", Way::Kit(Box::new(kit)))];
    for raw in Raw::all(url).await {
        ways.push((raw.name(), Way::Raw(raw)));
    }
    ways.extend(Peer::start(url).map(|peer| (peer::NAME, Way::Peer(peer))));
    let mut all = vec![[const { Vec::new() }; 2]; ways.len()];
    // The first round makes the rows and is not counted.
    for round in 0..=rounds {
        // A way leaves work behind for the server, so its neighbours change.
        let mut order: Vec<_> = ways.iter().zip(&mut all).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for ((_, way), times) in order {
            for (tasks, times) in [1, 64].into_iter().zip(times) {
                let micros = turn(way, tasks).await;
                if round > 0 {
                    times.push(micros);
                }
            }
        }
    }
    let medians: Vec<_> = all.into_iter().map(|times| times.map(median)).collect();
    let floor = ways.iter().position(|(name, _)| *name == raw::FLOOR);
    let [alone, many] = medians[floor.expect("the floor")];
    for ((name, _), [one, several]) in ways.iter().zip(&medians) {
        println!(
            "| {name} | {commits} | {one:.0} | {:.2} | {:.0} | {:.2} |",
            one / alone,
            1e6 / several,
            many / several
        );
    }
    medians[0][0] / alone
}

/// Returns the microseconds of a pair, over all tasks together.
async fn turn(way: &Way, tasks: usize) -> f64 {
    let begin = Instant::now();
    let end = begin + TURN;
    let start = |task| match way {
        Way::Kit(locks) => Ok(tokio::spawn(kit((**locks).clone(), task, end))),
        Way::Raw(raw) => Ok(tokio::spawn(raw.clone().pairs(task, end))),
        Way::Peer(peer) => Err(peer),
    };
    let running: Result<Vec<_>, _> = (0..tasks).map(start).collect();
    let running = match running {
        Ok(running) => running,
        Err(peer) => return peer.turn(tasks, TURN),
    };
    let mut pairs = 0;
    for task in running {
        pairs += task.await.expect("no panic");
    }
    begin.elapsed().as_secs_f64() * 1e6 / f64::from(pairs)
}

async fn kit(locks: LockManager, task: usize, end: Instant) -> u32 {
    let key = format!("pair:{task}");
    let mut pairs = 0;
    while Instant::now() < end {
        let guard = locks.lock(key.as_str()).acquire().await.expect("free");
        guard.release().await.expect("held");
        pairs += 1;
    }
    pairs
}
