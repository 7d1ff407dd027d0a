//! Tests waiting: the properties of the queue between processes and of the queue inside a process,
//! under all faults.
//!
//! `covered.md` lists the tests of each topic, here and elsewhere.

mod cohort;
mod covered;
mod dead;
mod drained;
mod gone;
mod lost;
mod memory;
mod order;
mod refused;
mod storm;
mod strangers;
mod time;
mod unpolled;
mod unqueued;

use std::time::Duration;

use lock_core::test_util::ManualClock;
use lock_core::{ErrorKind, LockGuard, LockManager};
use lock_tests::{ChildProcess, RedisServer, wait};
use tokio::time::timeout;

use crate::steps::{
    Waiter, all_is_answered, drains, its_turn, keys, long, manager, once, queued, served,
    served_both, waits,
};

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The time for which a request of these managers may stay unanswered.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Makes a manager whose clock stands still until the test moves it.
async fn on(clock: &ManualClock, url: &str) -> LockManager {
    let builder = LockManager::builder(url).operation_timeout(OPERATION_TIMEOUT);
    let builder = builder.clock(clock.clone());
    builder.connect().await.expect("a manager")
}

/// Returns the outcome of a wait, which must come before the waiter's timer of last resort fires.
async fn outcome(waiter: Waiter) -> Result<LockGuard, lock_core::Error> {
    let outcome = timeout(wait::PATIENCE, waiter).await;
    outcome.expect("the wait ends").expect("no panic")
}

async fn refused(waiter: Waiter) -> ErrorKind {
    outcome(waiter).await.expect_err("held").kind()
}

/// Moves the clock until the waiter's request has been unanswered for too long.
async fn has_no_answer(clock: &ManualClock, waiter: &Waiter) {
    wait::eventually("the waiter gives up", async || {
        clock.advance(OPERATION_TIMEOUT);
        others_run().await;
        waiter.is_finished()
    })
    .await;
}

/// Lets tasks run that were just made or woken. This runtime has one thread.
async fn others_run() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

const SERVER: &str = "LOCK_TESTS_SERVER_TO_WAIT_ON";

/// Starts this binary again, with one of the ignored tests of this folder.
fn process(role: &str, server: &RedisServer, environment: &[(&str, &str)]) -> ChildProcess {
    let url = server.url();
    let environment = [&[(SERVER, &*url)], environment].concat();
    ChildProcess::of_test(&format!("waiting::{role}"), &environment)
}

/// Returns the server of the test that started this process; `None` when a user runs all ignored
/// tests.
fn server_of_parent() -> Option<String> {
    std::env::var(SERVER).ok()
}
