//! Processes that are killed or stopped while they wait, or when they are given the lock: what they
//! cost whoever stands behind them. The ttl is a minute, and a waiter's timer of last resort rings
//! after half of that: who comes sooner was told. How much sooner is printed.

use std::process::Command;
use std::time::Instant;

use lock_core::Wait;
use lock_tests::{ChildProcess, RedisServer, needs, wait};
use tokio::time::timeout;

use super::{long, manager};

const SERVER: &str = "LOCK_TESTS_SERVER_TO_WAIT_ON";

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn waits() {
    let Ok(url) = std::env::var(SERVER) else {
        return;
    };
    let locks = manager(&url).await;
    let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
    let _guard = request.acquire().await.expect("its turn");
    std::future::pending::<()>().await;
}

/// So many processes stand in the queue, in their order.
async fn waiting(server: &RedisServer, count: usize) -> Vec<ChildProcess> {
    let mut processes = Vec::new();
    for process in 1..=count {
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command
            .args(["--exact", "redis::stopped::waits", "--ignored"])
            .env(SERVER, server.url());
        processes.push(ChildProcess::spawn(command));
        queued(server, process).await;
    }
    processes
}

async fn queued(server: &RedisServer, count: usize) {
    wait::eventually("it stands in the queue", async || {
        server.cli(&["ZCARD", "lockkit:!q:{k}"]) == count.to_string()
    })
    .await;
}

/// What becomes of the processes that stand before a waiter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    KilledWaiting,
    /// Given the lock, and killed before they could say a word.
    KilledWithTheLock,
    /// They keep their connections, and never come.
    Stopped,
}

async fn the_next_one_comes(fate: Fate, count: usize) {
    let server = RedisServer::start();
    let (owner, locks) = (manager(&server.url()).await, manager(&server.url()).await);
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let ours = server.get("lockkit:k");
    let mut processes = waiting(&server, count).await;
    let waiter = tokio::spawn(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    queued(&server, count + 1).await;
    for process in &mut processes {
        match fate {
            Fate::KilledWaiting => process.kill(),
            Fate::KilledWithTheLock | Fate::Stopped => process.stop(),
        }
    }
    guard.release().await.expect("held");
    let released = Instant::now();
    if fate == Fate::KilledWithTheLock {
        let given = server.get("lockkit:k");
        assert!(given.is_some() && given != ours, "{given:?}");
        processes.iter_mut().for_each(ChildProcess::kill);
    }
    let next = timeout(wait::PATIENCE, waiter).await;
    let next = next.expect("sooner than by its timer of last resort");
    let next = next.expect("no panic").expect("its turn");
    println!("{fate:?} × {count}: {:?}", released.elapsed());
    next.release().await.expect("held");
}

#[tokio::test]
async fn a_process_that_is_killed_while_it_waits_costs_the_next_one_nothing() {
    needs!(redis);
    the_next_one_comes(Fate::KilledWaiting, 1).await;
    the_next_one_comes(Fate::KilledWaiting, 3).await;
}

#[tokio::test]
async fn a_process_that_is_killed_with_a_lock_it_was_given_costs_the_next_one_its_grant() {
    needs!(redis);
    the_next_one_comes(Fate::KilledWithTheLock, 1).await;
}

#[tokio::test]
async fn processes_that_are_stopped_in_the_queue_cost_the_next_one_their_grants() {
    needs!(redis);
    the_next_one_comes(Fate::Stopped, 1).await;
    the_next_one_comes(Fate::Stopped, 4).await;
}
