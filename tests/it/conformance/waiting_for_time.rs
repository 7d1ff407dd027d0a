//! Tests how long a wait is, and how it ends.

use std::time::{Duration, Instant};

use lock_core::{ErrorKind, Renew, Wait};
use lock_tests::wait;
use tokio::time::timeout;

use super::{Fixture, kind, long};

pub(super) async fn a_lock_whose_owner_died_can_be_taken_when_it_has_run_out(store: &Fixture) {
    let request = store.lock("k").await.ttl(store.soon_over());
    let request = request.renew(Renew::Off);
    let dead = request.acquire().await.expect("free");
    let lost_at = dead.remaining();
    let before = Instant::now();
    // No push comes, because the guard is neither dropped nor released.
    let waiting = store.lock("k").await.wait(Wait::Forever).acquire();
    let guard = timeout(wait::PATIENCE, waiting).await;
    drop(guard.expect("in time").expect("the lease ran out"));
    assert!(
        before.elapsed() >= lost_at,
        "the waiter got the lock only after the deadline"
    );
    assert!(!dead.is_valid());
}

pub(super) async fn a_wait_of_zero_is_no_wait(store: &Fixture) {
    let locks = store.manager().await;
    // One task asks, and its answer is also that of the others, for each way to say "at once".
    let ask = |wait: Wait| locks.lock("k").ttl(long()).wait(wait).acquire();
    let first = store.lock("k").await.acquire().await.expect("free");
    let answers = async {
        tokio::join!(
            ask(Wait::None),
            ask(Wait::For(Duration::ZERO)),
            ask(Wait::from(Duration::ZERO)),
        )
    };
    let (one, two, three) = timeout(wait::PATIENCE, answers).await.expect("at once");
    for answer in [one, two, three] {
        assert_eq!(kind(answer), ErrorKind::Busy);
    }
    drop(first);
}

pub(super) async fn short_waits_end_when_they_should(store: &Fixture) {
    let first = store.lock("k").await.acquire().await.expect("free");
    let locks = store.manager().await;
    for millis in [0, 50, 500] {
        let wait = Duration::from_millis(millis);
        let before = Instant::now();
        let error = locks
            .lock("k")
            .wait(wait)
            .acquire()
            .await
            .expect_err("held");
        let waited = before.elapsed();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.retry_after().is_some());
        assert!(waited >= wait, "waited {waited:?} of {wait:?}");
        assert!(
            waited < wait + wait::PATIENCE,
            "waited {waited:?} of {wait:?}"
        );
    }
    wait::eventually("no waiter is left", async || store.waiting() == 0).await;
    drop(first);
}

pub(super) async fn a_wait_for_a_cooldown_ends_with_it(store: &Fixture) {
    let cooldown = Duration::from_millis(300);
    let first = store
        .lock("k")
        .await
        .cooldown(cooldown)
        .acquire()
        .await
        .expect("free");
    let waiter = tokio::spawn(store.lock("k").await.wait(Wait::Forever).acquire());
    wait::eventually("the waiter waits", async || store.waiting() == 1).await;
    let before = Instant::now();
    first.release().await.expect("held");
    // The owner's lease would have lasted a minute, so the waiter was told the new end.
    let guard = timeout(wait::PATIENCE, waiter).await.expect("in time");
    drop(guard.expect("no panic").expect("its turn"));
    assert!(before.elapsed() >= cooldown - Duration::from_millis(2));
}

pub(super) async fn a_wait_covers_the_whole_queue_and_not_each_place(store: &Fixture) {
    let first = store.lock("k").await.acquire().await.expect("free");
    let locks = store.manager().await;
    let before = Instant::now();
    let wait = Duration::from_millis(200);
    let waiters: Vec<_> = (0..20)
        .map(|_| tokio::spawn(locks.lock("k").wait(wait).acquire()))
        .collect();
    for waiter in waiters {
        assert_eq!(kind(waiter.await.expect("no panic")), ErrorKind::Busy);
    }
    // One after the other they would take four seconds.
    assert!(before.elapsed() < wait * 10);
    drop(first);
}
