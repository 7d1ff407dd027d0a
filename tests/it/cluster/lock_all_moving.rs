//! Tests a lock of several keys that is held while slots of its keys move.

use std::time::Instant;

use lock_core::{ErrorKind, LockGuard, LockManager, LockRequest};
use lock_tests::{RedisCluster, needs, wait};

use super::migration::Move;
use super::{kind, manager};
use crate::conformance::shared_cluster;
use crate::steps::OUTLIVED;

fn all(locks: &LockManager, keys: [&str; 3]) -> LockRequest {
    locks.lock_all(keys).ttl(OUTLIVED)
}

fn name(key: &str) -> String {
    format!("lockkit:{key}")
}

fn ends(cluster: &RedisCluster, keys: [&str; 3]) -> [String; 3] {
    keys.map(|key| cluster.cli(&name(key), &["PEXPIRETIME", &name(key)]))
}

/// Waits until the lock has been held for two more of its ttls, or is lost.
async fn two_ttls(guard: &LockGuard) {
    let began = Instant::now();
    wait::eventually("the keys outlive their ttl", async || {
        began.elapsed() > OUTLIVED * 2 || !guard.is_valid()
    })
    .await;
    assert!(guard.is_valid());
}

async fn is_refused(locks: &LockManager, keys: [&str; 3]) {
    assert_eq!(kind(all(locks, keys).acquire().await), ErrorKind::Busy);
    for key in keys {
        let refused = locks.lock(key).acquire().await;
        assert_eq!(kind(refused), ErrorKind::Busy, "{key}");
    }
}

#[tokio::test]
async fn while_their_slot_moves_several_keys_are_taken_renewed_refused_and_released() {
    needs!(redis_7);
    let cluster = shared_cluster();
    let (locks, other) = (manager(cluster).await, manager(cluster).await);
    let keys = ["{group}:a", "{group}:b", "{group}:c"];
    let guard = all(&locks, keys).acquire().await.expect("free");
    let moving = Move::begin(cluster, &name("{group}"));
    // One key is on the target, and then two.
    for moved in &keys[..2] {
        moving.keys_move(&name(moved));
        two_ttls(&guard).await;
        is_refused(&other, keys).await;
    }
    let fence = guard.fencing_token();
    guard.release().await.expect("held");
    let next = all(&other, keys).acquire().await.expect("free");
    assert!(next.fencing_token() > fence);
    two_ttls(&next).await;
    moving.end();
    let before = ends(cluster, keys);
    wait::eventually("all keys are renewed on the new node", async || {
        let now = ends(cluster, keys);
        now.iter().zip(&before).all(|(now, before)| now != before)
    })
    .await;
    is_refused(&locks, keys).await;
    next.release().await.expect("held");
    assert_eq!(ends(cluster, keys), ["-2"; 3], "no key is left");
}
