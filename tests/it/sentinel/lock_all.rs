//! Tests a lock of several keys that is held while the master changes.

use std::time::Duration;

use lock_core::{Error, ErrorKind, LockGuard, LockManager};
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::{its_turn, kind, long, manager, queued, taken};
use crate::conformance::Watched;
use crate::failover::TTL;

const KEYS: [&str; 3] = ["a", "b", "c"];

/// The ttl is longer than the time until the manager notices that the old master has given way.
async fn all(locks: &LockManager) -> Result<LockGuard, Error> {
    locks.lock_all(KEYS).ttl(TTL * 5).acquire().await
}

async fn is_lost(guard: &LockGuard) {
    let lost = timeout(wait::PATIENCE, guard.lost()).await;
    lost.expect("the next renewal finds it");
}

fn names() -> [String; 3] {
    KEYS.map(|key| format!("lockkit:{key}"))
}

fn ends(server: &RedisServer) -> [String; 3] {
    names().map(|name| server.cli(&["PEXPIRETIME", &name]))
}

#[tokio::test]
async fn all_keys_that_the_new_master_knows_are_kept_and_renewed_there() {
    needs!(redis_7);
    let watched = Watched::start();
    let url = watched.sentinels.url();
    let (locks, other) = (manager(&url).await, manager(&url).await);
    let guard = all(&locks).await.expect("free");
    watched.set.caught_up();
    watched.fail_over().await;
    let before = ends(watched.master());
    assert!(before.iter().all(|end| end != "-2"), "{before:?}");
    wait::eventually("all keys are renewed", async || {
        let now = ends(watched.master());
        now.iter().zip(&before).all(|(now, before)| now != before)
    })
    .await;
    assert!(guard.is_valid());
    assert_eq!(kind(all(&other).await), ErrorKind::Busy);
    for key in KEYS {
        let refused = other.lock(key).acquire().await;
        assert_eq!(kind(refused), ErrorKind::Busy, "{key}");
    }
    let fence = guard.fencing_token();
    guard.release().await.expect("held");
    for name in names() {
        assert_eq!(watched.master().get(&name), None);
    }
    let next = all(&other).await.expect("free");
    assert!(next.fencing_token() > fence);
    next.release().await.expect("held");
}

#[tokio::test]
async fn keys_that_no_replica_had_are_lost_together_and_free_for_the_next_owner() {
    needs!(redis);
    let watched = Watched::start();
    let url = watched.sentinels.url();
    let (locks, other) = (manager(&url).await, manager(&url).await);
    watched.cut_replicas_off();
    let guard = all(&locks).await.expect("free");
    watched.master_dies().await;
    is_lost(&guard).await;
    let mut next = None;
    wait::eventually("another owner has all keys", async || {
        match all(&other).await {
            Ok(guard) => next = Some(guard),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable),
        }
        next.is_some()
    })
    .await;
    let next = next.expect("granted");
    assert!(next.fencing_token() > guard.fencing_token());
    let before = names().map(|name| watched.master().get(&name));
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    // A late release of the former owner changes nothing.
    assert_eq!(names().map(|name| watched.master().get(&name)), before);
    assert!(next.is_valid());
    next.release().await.expect("held");
}

#[tokio::test]
async fn keys_of_which_the_new_master_knows_the_first_only_are_lost_together() {
    needs!(redis);
    let watched = Watched::start();
    let url = watched.sentinels.url();
    let (locks, other) = (manager(&url).await, manager(&url).await);
    let ttl = Duration::from_secs(20);
    let first = taken(&other, "a", long()).await;
    let last = taken(&other, "b", long()).await;
    let request = locks.lock_all(["a", "b"]).ttl(ttl).wait(long());
    let waiter = tokio::spawn(request.acquire());
    queued(watched.master(), "a", 1).await;
    first.release().await.expect("held");
    wait::eventually("it has the first key and waits for the other", async || {
        let master = watched.master();
        master.cli(&["EXISTS", "lockkit:a", "lockkit:!q:{b}"]) == "2"
    })
    .await;
    watched.set.caught_up();
    watched.cut_replicas_off();
    last.release().await.expect("held");
    let guard = its_turn(waiter).await;
    watched.master_dies().await;
    is_lost(&guard).await;
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    let mut left = ttl;
    wait::eventually("the first key is given back", async || {
        let master = watched.master();
        left = master.time_to_live("lockkit:a").unwrap_or(left);
        master.get("lockkit:a").is_none()
    })
    .await;
    assert!(left > ttl / 6, "the lease has run out by itself: {left:?}");
}
