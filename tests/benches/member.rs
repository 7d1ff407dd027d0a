//! Runs a member of a crew in a process of its own.
//!
//! The member reads orders, works, and writes its records.

use std::io::{BufRead, Write};
use std::time::Duration;

use lock_core::LockManager;
use lock_core::redis1::aio::MultiplexedConnection;
use lock_core::{LockGuard, Wait};
use tokio::sync::mpsc;

use crate::ball::Ball;
use crate::free_pair::{connect_raw, raw_acquire, raw_release};
use crate::machine::now;
use crate::nap::Nap;
use crate::record::Tenure;

/// The lock that all members take.
const KEY: &str = "stock:1";

enum Work {
    Kit(LockManager),
    Raw(MultiplexedConnection),
    Ball(Ball),
}

#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) start: u64,
    pub(crate) end: u64,
    hold: u64,
}

pub(crate) fn run(arguments: &[String]) {
    let [trade, url, number, tasks] = arguments else {
        panic!("member <trade> <url> <number> <tasks>");
    };
    let number: u32 = number.parse().expect("a number");
    let tasks: u32 = tasks.parse().expect("a number of tasks");
    let orders = orders();
    crate::machine::runtime().block_on(work(trade, url, number, tasks, orders));
}

/// Reads the lines of the input. They end with the benchmark, and this process ends then too.
fn orders() -> mpsc::UnboundedReceiver<String> {
    let (give, orders) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if line.map(|line| give.send(line)).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    orders
}

async fn work(
    trade: &str,
    url: &str,
    number: u32,
    tasks: u32,
    mut orders: mpsc::UnboundedReceiver<String>,
) {
    let mut work = match trade {
        "kit" => Work::Kit(LockManager::connect(url).await.expect("a manager")),
        "raw" => Work::Raw(connect_raw(url).await),
        _ => Work::Ball(Ball::new(url, number)),
    };
    // The first acquire makes the connection of this runtime and loads the script.
    if let Work::Kit(locks) = &work {
        let warm = locks.lock(format!("warm:{number}")).acquire().await;
        warm.expect("free").release().await.expect("held");
    }
    answer(&[]);
    let mut kept = Kept::default();
    while let Some(order) = orders.recv().await {
        let words: Vec<&str> = order.split(' ').collect();
        let (verb, words) = words.split_first().expect("an order");
        let tenures = match (*verb, &mut work) {
            ("turn", work) => turn(work, Turn::parse(words), tasks).await,
            ("hold", Work::Kit(locks)) => kept.hold(locks, words).await,
            ("wait", Work::Kit(locks)) => kept.wait(locks, words).await,
            (verb, _) => panic!("unknown order {verb}"),
        };
        answer(&tenures);
    }
}

impl Turn {
    fn parse(words: &[&str]) -> Self {
        let [start, end, hold] = words else {
            panic!("turn <start> <end> <hold>");
        };
        let number = |word: &str| word.parse().expect("nanoseconds");
        Self {
            start: number(start),
            end: number(end),
            hold: number(hold),
        }
    }

    /// Returns the hold time of a lock that is granted now.
    ///
    /// `None` after the end of the turn.
    pub(crate) fn hold(self) -> Option<u64> {
        (now() < self.end).then_some(self.hold)
    }
}

async fn turn(work: &mut Work, turn: Turn, tasks: u32) -> Vec<Tenure> {
    let early = Duration::from_nanos(turn.start.saturating_sub(now()));
    tokio::time::sleep(early).await;
    match work {
        Work::Kit(locks) => {
            let running: Vec<_> = (0..tasks)
                .map(|task| tokio::spawn(take_in_turn(locks.clone(), task, turn)))
                .collect();
            let mut tenures = Vec::new();
            for task in running {
                tenures.extend(task.await.expect("a task that does not panic"));
            }
            tenures
        }
        Work::Raw(connection) => take_alone(connection, turn).await,
        Work::Ball(ball) => ball.turn(turn),
    }
}

async fn take_in_turn(locks: LockManager, task: u32, turn: Turn) -> Vec<Tenure> {
    let nap = Nap::new();
    let mut tenures = Vec::new();
    loop {
        let asked = now();
        if asked >= turn.end {
            return tenures;
        }
        let request = locks.lock(KEY).wait(Wait::Forever);
        let guard = request.acquire().await.expect("its turn");
        let granted = now();
        if let Some(nanos) = turn.hold() {
            nap.take(nanos).await;
        }
        let released = now();
        if let Err(error) = guard.release().await {
            // On a machine too busy for a measurement, the task continues.
            let after = (now() - released) / 1_000_000;
            eprintln!("task {task}, {after} ms after its release: {error}");
        }
        tenures.push(Tenure::new(task, asked, granted, released));
    }
}

async fn take_alone(connection: &mut MultiplexedConnection, turn: Turn) -> Vec<Tenure> {
    let nap = Nap::new();
    let mut tenures = Vec::new();
    loop {
        let asked = now();
        if asked >= turn.end {
            return tenures;
        }
        let token = raw_acquire(connection, "lockkit:raw", tenures.len()).await;
        let granted = now();
        if let Some(nanos) = turn.hold() {
            nap.take(nanos).await;
        }
        let released = now();
        raw_release(connection, "lockkit:raw", &token).await;
        tenures.push(Tenure::new(0, asked, granted, released));
    }
}

/// The locks and tasks that a member keeps until it ends.
#[derive(Default)]
struct Kept {
    guards: Vec<LockGuard>,
    waiters: Vec<tokio::task::JoinHandle<()>>,
}

impl Kept {
    /// Handles `hold <name> <keys>`.
    async fn hold(&mut self, locks: &LockManager, words: &[&str]) -> Vec<Tenure> {
        let [name, keys] = words else {
            panic!("hold <name> <keys>");
        };
        for key in 0..keys.parse().expect("a number of keys") {
            let guard = locks.lock(format!("{name}:{key}")).acquire().await;
            self.guards.push(guard.expect("free"));
        }
        Vec::new()
    }

    /// Handles `wait <name> <keys> <waiters for each>`.
    async fn wait(&mut self, locks: &LockManager, words: &[&str]) -> Vec<Tenure> {
        let [name, keys, waiters] = words else {
            panic!("wait <name> <keys> <waiters>");
        };
        let waiters: u32 = waiters.parse().expect("a number of waiters");
        for key in 0..keys.parse::<u32>().expect("a number of keys") {
            for _ in 0..waiters {
                let request = locks.lock(format!("{name}:{key}")).wait(Wait::Forever);
                self.waiters.push(tokio::spawn(async move {
                    let guard = request.acquire().await;
                    panic!("a waiter got a lock that is not released: {guard:?}");
                }));
            }
            // The waiters come gradually, as in a service.
            if key % 100 == 99 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        tokio::task::yield_now().await;
        Vec::new()
    }
}

fn answer(tenures: &[Tenure]) {
    let mut lines = String::new();
    for tenure in tenures {
        lines.push_str(&tenure.line());
        lines.push('\n');
    }
    let mut output = std::io::stdout().lock();
    writeln!(output, "{lines}.")
        .and_then(|()| output.flush())
        .expect("the benchmark reads the answer");
}
