//! Tests that dropping any future of the kit, after any number of polls, leaves nothing behind.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use lock_core::middleware::{Forgotten, RecordOutcome};
use lock_core::{LockManager, Wait};
use lock_tests::wait;
use tokio::time::timeout;

use super::{Fixture, drains, long, once};

/// The moment at which a future is dropped after its last poll.
#[derive(Clone, Copy)]
enum Dropped {
    /// Right after the poll, when its request is on its way.
    AtOnce,
    /// When the future is woken again: the answer has arrived, and the future has not read it.
    WhenWoken,
}

/// Polls `future` at most `polls` times; returns its output, if that was enough.
async fn polled<F: Future>(future: F, polls: usize, dropped: Dropped) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    let limited = poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 && matches!(dropped, Dropped::AtOnce) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    // A waiter that is not woken is dropped while it sleeps.
    timeout(Duration::from_millis(100), limited)
        .await
        .unwrap_or_default()
}

/// Calls `attempt` with every number of polls, from zero to the first that suffices.
///
/// A future that is not woken is not polled more often.
async fn after_every_number_of_polls(
    most: usize,
    mut attempt: impl AsyncFnMut(usize, Dropped) -> bool,
) {
    for dropped in [Dropped::AtOnce, Dropped::WhenWoken] {
        for polls in 0..=most {
            if attempt(polls, dropped).await {
                break;
            }
        }
    }
}

async fn nothing_is_left(store: &Fixture, locks: &LockManager) {
    assert!(locks.held().is_empty());
    wait::eventually("no key is taken and no waiter is queued", async || {
        store.taken() == 0 && store.waiting() == 0
    })
    .await;
}

pub(super) async fn an_acquire_dropped_after_any_number_of_polls_leaves_nothing(store: &Fixture) {
    after_every_number_of_polls(30, async |polls, dropped| {
        // Each round has a manager of its own, so that the attempt makes a new connection.
        let locks = store.manager().await;
        let acquire = locks.lock("k").ttl(long()).acquire();
        let done = polled(acquire, polls, dropped).await.is_some();
        nothing_is_left(store, &locks).await;
        drains(&locks).await;
        assert_eq!(store.taken(), 0);
        done
    })
    .await;
}

pub(super) async fn a_waiting_acquire_dropped_after_any_number_of_polls_leaves_nothing(
    store: &Fixture,
) {
    after_every_number_of_polls(12, async |polls, dropped| {
        let owner = store.manager().await;
        let locks = store.manager().await;
        let first = owner.lock("k").ttl(long()).acquire().await.expect("free");
        let acquire = locks.lock("k").ttl(long()).wait(Wait::Forever).acquire();
        assert!(polled(acquire, polls, dropped).await.is_none(), "held");
        wait::eventually("no waiter is queued", async || store.waiting() == 0).await;
        assert!(locks.held().is_empty());
        first.release().await.expect("held");
        nothing_is_left(store, &owner).await;
        false
    })
    .await;
}

pub(super) async fn a_run_dropped_after_any_number_of_polls_leaves_nothing(store: &Fixture) {
    after_every_number_of_polls(40, async |polls, dropped| {
        let locks = store.manager().await;
        let body = async {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        };
        let run = locks.lock("k").ttl(long()).run(body);
        let done = polled(run, polls, dropped).await.is_some();
        nothing_is_left(store, &locks).await;
        done
    })
    .await;
}

pub(super) async fn a_release_dropped_after_any_number_of_polls_goes_on(store: &Fixture) {
    after_every_number_of_polls(20, async |polls, dropped| {
        let locks = store.manager().await;
        let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
        let done = polled(guard.release(), polls, dropped).await.is_some();
        nothing_is_left(store, &locks).await;
        done
    })
    .await;
}

pub(super) async fn a_release_dropped_after_any_number_of_polls_leaves_its_record(store: &Fixture) {
    after_every_number_of_polls(20, async |polls, dropped| {
        let locks = store.manager().await;
        let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
        guard.remember("done", long()).expect("in bounds");
        let handle = guard.handle();
        let done = polled(guard.release(), polls, dropped).await.is_some();
        wait::eventually("the record is stored", async || {
            handle.record_outcome() == Some(RecordOutcome::Stored)
        })
        .await;
        let duplicate = locks.lock("k").acquire().await.expect_err("done");
        assert_eq!(duplicate.record(), Some(&b"done"[..]));
        assert_eq!(locks.forget("k").await.expect("no fault"), Forgotten::Yes);
        nothing_is_left(store, &locks).await;
        done
    })
    .await;
}

pub(super) async fn an_acquire_cancelled_in_flight_does_not_block_the_next_one_of_its_manager(
    store: &Fixture,
) {
    let locks = store.manager().await;
    // The connection exists already, so that the attempt is soon on its way.
    once(&locks, "k").await;
    for polls in 1..5 {
        let cancelled = polled(
            locks.lock("k").ttl(long()).acquire(),
            polls,
            Dropped::AtOnce,
        )
        .await;
        drop(cancelled);
        let next = locks.lock("k").ttl(long()).acquire().await;
        next.expect("the lock is free")
            .release()
            .await
            .expect("held");
    }
}
