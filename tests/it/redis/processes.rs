//! Tests owners that are separate processes and are stopped.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use lock_core::{LockManager, Wait};
use lock_tests::{ChildProcess, RedisServer, needs, wait};
use tokio::time::timeout;

use super::{long, manager, served};

pub(super) const SERVER: &str = "LOCK_TESTS_SERVER";

/// Starts this binary again, with one of its ignored tests.
pub(super) fn process(test: &str, server: &RedisServer) -> ChildProcess {
    ChildProcess::of_test(test, &[(SERVER, &server.url())])
}

/// Connects to the server of the test that started this process.
///
/// `None` when a user runs all ignored tests.
pub(super) async fn parent() -> Option<LockManager> {
    Some(manager(&std::env::var(SERVER).ok()?).await)
}

fn ttl() -> Duration {
    Duration::from_secs(1)
}

/// Stops this process, and returns when it continues, more than half a ttl later.
fn stop_myself() {
    let mut last = Instant::now();
    let myself = rustix::process::getpid();
    rustix::process::kill_process(myself, rustix::process::Signal::STOP).expect("stopped");
    // A thread may continue for a moment after the call that stops its process.
    loop {
        let now = Instant::now();
        if now.duration_since(last) >= ttl() / 2 {
            return;
        }
        last = now;
    }
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn works_until_stopped() {
    let Some(locks) = parent().await else { return };
    let working = Cell::new(false);
    let works = &working;
    let run = locks.lock("k").ttl(ttl()).run_with(|lock| {
        // The body is polled all the time, and every poll has an effect.
        poll_fn(move |context| {
            let lawful = lock.is_valid();
            println!(
                "\nan effect {} the lock",
                if lawful { "under" } else { "WITHOUT" }
            );
            works.set(true);
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        })
    });
    let mut run = pin!(run);
    let outcome = poll_fn(|context| {
        let polled = run.as_mut().poll(context);
        // The stop comes between two polls, because the kit cannot stop work within a poll.
        if working.replace(false) {
            stop_myself();
        }
        polled
    });
    let error = outcome.await.expect_err("stopped for longer than the ttl");
    println!("\n{}", error.code());
}

#[tokio::test]
async fn a_process_that_was_stopped_for_longer_than_its_ttl_does_nothing_more() {
    needs!(redis);
    let (server, locks) = served().await;
    let owner = process("redis::processes::works_until_stopped", &server);
    owner.says("an effect under the lock");
    let next = timeout(
        wait::PATIENCE,
        locks.lock("k").ttl(long()).wait(Wait::Forever).acquire(),
    );
    let next = next.await.expect("the lease ran out").expect("free");
    owner.cont();
    owner.says("lock_lost");
    let after = owner.output();
    assert_eq!(
        after.matches("an effect").count(),
        1,
        "the body was polled before the clock was read: {after}"
    );
    assert!(
        next.is_valid(),
        "late commands of the stopped process have no effect"
    );
    next.release().await.expect("held");
}
