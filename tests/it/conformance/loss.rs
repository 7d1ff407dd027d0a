//! Tests that an owner notices a lost lock in time.
//!
//! Late actions of the old owner have no effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lock_core::test_util::ManualClock;
use lock_core::{ErrorKind, LockGuard, LockRequest, Renew};
use lock_tests::wait;
use tokio::time::timeout;

use super::{Fixture, kind, long, short};

/// An owner whose clock stands still until the test moves it to the next renewal.
///
/// So neither another renewal nor the deadline can follow that renewal, on a busy machine too.
struct Owner {
    clock: ManualClock,
    request: LockRequest,
}

impl Owner {
    async fn of(store: &Fixture) -> Owner {
        let clock = ManualClock::new();
        let locks = store.manager_by(&clock).await;
        let request = locks.lock("k").ttl(long());
        Owner { clock, request }
    }

    fn reaches_its_next_renewal(clock: &ManualClock) {
        // A renewal is due after a third of the ttl, at most after ten seconds.
        clock.advance(Duration::from_secs(11));
    }
}

async fn held(store: &Fixture) -> (LockGuard, ManualClock) {
    let owner = Owner::of(store).await;
    let guard = owner.request.acquire().await.expect("free");
    (guard, owner.clock)
}

/// Waits until the owner notices the loss.
async fn noticed<T>(loss: impl Future<Output = T>) -> T {
    timeout(wait::PATIENCE, loss).await.expect("noticed")
}

pub(super) async fn a_renewed_lock_outlives_its_ttl(store: &Fixture) {
    let ttl = store.renewable();
    let request = store.lock("k").await.ttl(ttl);
    let guard = request.acquire().await.expect("free");
    let token = guard.fencing_token();
    assert!(timeout(ttl * 2, guard.lost()).await.is_err());
    assert!(guard.is_valid());
    assert_eq!(guard.fencing_token(), token);
    assert_eq!(guard.handle().fencing_token(), token);
    assert_eq!(store.taken(), 1);
    assert_eq!(kind(store.lock("k").await.acquire().await), ErrorKind::Busy);
    guard.release().await.expect("held");
}

pub(super) async fn a_lock_without_renewal_is_lost_at_its_deadline_and_not_later_than_in_the_store(
    store: &Fixture,
) {
    let ttl = short();
    let before = Instant::now();
    let request = store.lock("k").await.ttl(ttl).renew(Renew::Off);
    let guard = request.acquire().await.expect("free");
    assert!(guard.remaining() <= ttl - ttl / 100 - Duration::from_millis(2));
    while guard.is_valid() {
        tokio::task::yield_now().await;
    }
    // The margin before the server's own expiry, which counts from a time after `before`.
    assert!(
        before.elapsed() >= ttl / 2,
        "the lease lasted for at least half its ttl"
    );
    guard.lost().await;
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    store.is_left_clean().await;
}

pub(super) async fn a_deleted_lock_is_noticed_at_the_next_renewal(store: &Fixture) {
    let (guard, clock) = held(store).await;
    store.delete("k");
    Owner::reaches_its_next_renewal(&clock);
    noticed(guard.lost()).await;
    assert!(!guard.is_valid());
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
}

pub(super) async fn an_overwritten_lock_is_noticed_at_the_next_renewal(store: &Fixture) {
    let (guard, clock) = held(store).await;
    store.overwrite("k");
    Owner::reaches_its_next_renewal(&clock);
    noticed(guard.lost()).await;
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    assert_eq!(store.taken(), 1, "the other client has the key");
}

pub(super) async fn a_body_is_dropped_when_its_lock_is_deleted(store: &Fixture) {
    dropped_when(store, || store.delete("k")).await;
}

pub(super) async fn a_body_is_dropped_when_its_lock_is_taken_over(store: &Fixture) {
    dropped_when(store, || store.overwrite("k")).await;
}

async fn dropped_when(store: &Fixture, taken_away: impl FnOnce()) {
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = OnDrop(Arc::clone(&dropped));
    let Owner { clock, request } = Owner::of(store).await;
    let (entered, inside) = tokio::sync::oneshot::channel();
    let body = async move {
        let _flag = flag;
        entered.send(()).expect("the receiver lives");
        std::future::pending::<()>().await;
    };
    let task = tokio::spawn(request.run(body));
    inside.await.expect("the body runs");
    taken_away();
    Owner::reaches_its_next_renewal(&clock);
    let error = noticed(task).await.expect("no panic").expect_err("lost");
    assert_eq!((error.kind(), error.code()), (ErrorKind::Lost, "lock_lost"));
    assert!(!error.is_max_hold());
    assert!(dropped.load(Ordering::SeqCst));
}

struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

pub(super) async fn the_release_of_a_lost_lock_says_lost_and_leaves_the_new_owner_alone(
    store: &Fixture,
) {
    let (old, _clock) = held(store).await;
    store.delete("k");
    let new = store.lock("k").await.acquire().await.expect("free");
    // No renewal has noticed the loss yet, so the store itself reports it.
    assert_eq!(kind(old.release().await), ErrorKind::Lost);
    assert_eq!(store.taken(), 1);
    assert_eq!(kind(store.lock("k").await.acquire().await), ErrorKind::Busy);
    new.release().await.expect("untouched");
}

pub(super) async fn a_late_release_has_no_effect_on_the_next_owner(store: &Fixture) {
    let locks = store.manager().await;
    let request = locks.lock("k").ttl(store.soon_over()).renew(Renew::Off);
    let old = request.acquire().await.expect("free");
    // The next attempt is in the same process and for the same key.
    let new = locks
        .lock("k")
        .ttl(short())
        .wait(long())
        .acquire()
        .await
        .expect("the lease ran out");
    assert_eq!(kind(old.release().await), ErrorKind::Lost);
    let left = locks.drain(Duration::ZERO).await;
    assert_eq!(left.held(), 1);
    wait::eventually("the manager has nothing left to send", async || {
        locks.drain(Duration::ZERO).await.releasing() == 0
    })
    .await;
    assert!(
        timeout(short(), new.lost()).await.is_err(),
        "the new lease is renewed"
    );
    assert_eq!(store.taken(), 1);
    new.release().await.expect("untouched");
}

pub(super) async fn a_dropped_guard_of_a_lost_lock_leaves_the_new_owner_alone(store: &Fixture) {
    let locks = store.manager().await;
    let old = locks.lock("k").ttl(long()).acquire().await.expect("free");
    store.delete("k");
    let new = store.lock("k").await.acquire().await.expect("free");
    drop(old);
    locks.drain(wait::PATIENCE).await;
    assert_eq!(store.taken(), 1);
    new.release().await.expect("untouched");
}

pub(super) async fn a_lost_lock_stays_lost(store: &Fixture) {
    let request = store
        .lock("k")
        .await
        .ttl(store.soon_over())
        .renew(Renew::Off);
    let guard = request.acquire().await.expect("free");
    let handle = guard.handle();
    guard.lost().await;
    for _ in 0..3 {
        handle.lost().await;
        assert!(!guard.is_valid() && !handle.is_valid());
        assert_eq!(handle.remaining(), Duration::ZERO);
    }
    drop(guard);
    assert!(!handle.is_valid());
    handle.lost().await;
}

pub(super) async fn a_lost_lock_is_not_created_again_by_a_renewal(store: &Fixture) {
    let guard = store
        .lock("k")
        .await
        .ttl(short())
        .acquire()
        .await
        .expect("free");
    store.delete("k");
    guard.lost().await;
    assert_eq!(store.taken(), 0);
    tokio::time::sleep(short()).await;
    assert_eq!(store.taken(), 0);
}

pub(super) async fn a_lost_lock_is_free_for_its_own_process_at_once(store: &Fixture) {
    let locks = store.manager().await;
    let old = locks.lock("k").ttl(short()).acquire().await.expect("free");
    let waiter = tokio::spawn(locks.lock("k").ttl(long()).wait(long()).acquire());
    store.delete("k");
    let new = waiter.await.expect("no panic").expect("free");
    assert!(!old.is_valid() && new.is_valid());
    assert_eq!(locks.held().len(), 1);
    assert!(locks.held()[0].fencing_token() == new.fencing_token());
}

pub(super) async fn a_released_lock_never_fires_its_loss(store: &Fixture) {
    let guard = store
        .lock("k")
        .await
        .ttl(short())
        .acquire()
        .await
        .expect("free");
    let handle = guard.handle();
    guard.release().await.expect("held");
    assert!(timeout(short() * 2, handle.lost()).await.is_err());
}
