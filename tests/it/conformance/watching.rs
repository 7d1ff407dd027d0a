//! Tests owners that the store tells of a change of their key.
//!
//! The owner's clock stands still. So no renewal is ever due but the first one, which `Watch::AtOnce` makes due at once,
//! and those that follow a hint of the store.

use lock_core::test_util::ManualClock;
use lock_core::{ErrorKind, LockGuard, LockManager, Renew, Watch};
use lock_tests::{needs, wait};
use tokio::time::timeout;

use super::{Fixture, kind, long};

async fn watched(locks: &LockManager, key: &str) -> LockGuard {
    let request = locks.lock(key).ttl(long()).watch(Watch::AtOnce);
    request.acquire().await.expect("free")
}

/// Waits until an owner is told of what happens to its key. The first renewal of a lock may come behind the change, and
/// then no hint follows, so another key is tried.
async fn is_told(store: &Fixture, change: fn(&Fixture, &str)) -> LockGuard {
    let clock = ManualClock::new();
    let locks = store.manager_by(&clock).await;
    for round in 0..20 {
        let key = format!("k{round}");
        let guard = watched(&locks, &key).await;
        store.is_everywhere().await;
        tokio::time::sleep(std::time::Duration::from_millis(100 * (round + 1))).await;
        assert!(guard.is_valid());
        change(store, &key);
        // Another hint may be about another of several servers, and comes a quarter of a second later.
        clock.advance(std::time::Duration::from_millis(300));
        if timeout(wait::PATIENCE / 4, guard.lost()).await.is_ok() {
            return guard;
        }
    }
    panic!("no owner was told");
}

pub(super) async fn an_owner_is_told_of_a_deleted_key(store: &Fixture) {
    if store.has_servers() {
        needs!(redis_7);
    }
    let guard = is_told(store, Fixture::delete).await;
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
}

pub(super) async fn an_owner_is_told_of_an_overwritten_key(store: &Fixture) {
    if store.has_servers() {
        needs!(redis_7);
    }
    let guard = is_told(store, Fixture::overwrite).await;
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
}

pub(super) async fn a_lock_without_renewals_and_a_share_cannot_be_watched(store: &Fixture) {
    let locks = store.manager().await;
    let unrenewed = locks.lock("k").renew(Renew::Off).watch(Watch::AtOnce);
    let error = unrenewed.acquire().await.expect_err("not renewed");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("`watch`"), "{error}");
    let share = locks.lock("k").read().watch(Watch::AtOnce);
    assert_eq!(kind(share.acquire().await), ErrorKind::Invalid);
}
