//! Tests processes that are killed or stopped while they wait, or when they are given the lock.
//!
//! The tests check that the waiters behind them are told. The ttl is a minute, and a waiter's timer
//! of last resort fires after half of it, so a waiter that comes sooner was told. The tests print
//! how much sooner.

use std::time::Instant;

use lock_core::Wait;
use lock_tests::{ChildProcess, RedisServer, needs, wait};
use tokio::time::timeout;

use super::processes::{parent, process};
use super::{long, queued, served_both};

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn waits() {
    let Some(locks) = parent().await else { return };
    let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
    let _guard = request.acquire().await.expect("its turn");
    std::future::pending::<()>().await;
}

/// Starts so many processes, which are queued in their order.
async fn waiting(server: &RedisServer, count: usize) -> Vec<ChildProcess> {
    let mut processes = Vec::new();
    for queue in 1..=count {
        processes.push(process("redis::stopped::waits", server));
        queued(server, "k", queue).await;
    }
    processes
}

/// The fate of the processes that queue before a waiter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    KilledWaiting,
    /// The first process is given the lock, and all are killed before they can act.
    KilledWithTheLock,
    /// The processes are stopped, so that they keep their connections and never act.
    Stopped,
}

async fn the_next_waiter_gets_the_lock(fate: Fate, count: usize) {
    let (server, owner, locks) = served_both().await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let ours = server.get("lockkit:k");
    let mut processes = waiting(&server, count).await;
    let waiter = tokio::spawn(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    queued(&server, "k", count + 1).await;
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
    let next = next.expect("the push comes before the timer of last resort");
    let next = next.expect("no panic").expect("its turn");
    println!("{fate:?} × {count}: {:?}", released.elapsed());
    next.release().await.expect("held");
}

#[tokio::test]
async fn a_process_that_is_killed_while_it_waits_does_not_delay_the_next_one() {
    needs!(redis);
    the_next_waiter_gets_the_lock(Fate::KilledWaiting, 1).await;
    the_next_waiter_gets_the_lock(Fate::KilledWaiting, 3).await;
}

#[tokio::test]
async fn a_process_that_is_killed_after_a_hand_over_delays_the_next_one_by_its_grant() {
    needs!(redis);
    the_next_waiter_gets_the_lock(Fate::KilledWithTheLock, 1).await;
}

#[tokio::test]
async fn processes_that_are_stopped_in_the_queue_delay_the_next_one_by_their_grants() {
    needs!(redis);
    the_next_waiter_gets_the_lock(Fate::Stopped, 1).await;
    the_next_waiter_gets_the_lock(Fate::Stopped, 4).await;
}
