//! Tests keys that are left free for a moment, for clients of other libraries.

use std::time::Duration;

use lock_core::test_util::ManualClock;
use lock_core::{Interop, Wait};
use lock_tests::wait;

use super::{Fixture, long};
use crate::steps::its_turn;

/// A time longer than from one gap to the next.
const HELD: Duration = Duration::from_millis(1_100);
/// A time longer than the gap.
const GAP: Duration = Duration::from_millis(100);

/// Lets other tasks run, so that a waiter that asks at once does so now.
async fn others_run() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

pub(super) async fn in_a_gap_any_client_can_take_a_key_that_a_waiter_waits_for(store: &Fixture) {
    let (owners, waiters) = (ManualClock::new(), ManualClock::new());
    let owner = store.manager_by(&owners).await;
    let other = store.manager_by(&waiters).await;
    let caller = store.manager().await;
    let request = owner.lock("k").ttl(long()).interop(Interop::On);
    let guard = request.acquire().await.expect("free");
    let request = other.lock("k").ttl(long()).interop(Interop::On);
    let waiter = tokio::spawn(request.wait(Wait::Forever).acquire());
    wait::eventually("the waiter is queued", async || store.waiting() > 0).await;
    owners.advance(HELD);
    guard.release().await.expect("held");
    // The push tells the waiter to ask after the gap, and the test moves the waiter's clock to
    // its end later.
    others_run().await;
    let attempt = caller.lock("k").ttl(long()).try_acquire().await;
    let in_the_gap = attempt.expect("an answer").expect("the key is free");
    assert!(!waiter.is_finished());
    in_the_gap.release().await.expect("held");
    waiters.advance(GAP);
    its_turn(waiter).await.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn in_a_gap_the_next_task_of_the_same_process_yields(store: &Fixture) {
    let clock = ManualClock::new();
    let (locks, other) = (store.manager_by(&clock).await, store.manager().await);
    let request = || locks.lock("k").ttl(long()).interop(Interop::On);
    let guard = request().acquire().await.expect("free");
    let waiter = tokio::spawn(request().wait(Wait::Forever).acquire());
    tokio::task::yield_now().await;
    clock.advance(HELD);
    guard.release().await.expect("held");
    others_run().await;
    let attempt = other.lock("k").ttl(long()).try_acquire().await;
    let in_the_gap = attempt.expect("an answer").expect("the key is free");
    assert!(!waiter.is_finished());
    in_the_gap.release().await.expect("held");
    clock.advance(GAP);
    its_turn(waiter).await.release().await.expect("held");
    store.is_left_clean().await;
}
