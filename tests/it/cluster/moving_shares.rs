//! Tests readers and permits of a key whose slot is on its way from one node to another.

use lock_core::{ErrorKind, LockManager, LockRequest};
use lock_tests::{RedisCluster, RedisServer, needs};

use super::migration::Move;
use super::{PATIENT, kind, long, manager};
use crate::conformance::shared_cluster;
use crate::steps::OUTLIVED;

fn reader(locks: &LockManager, key: &str) -> LockRequest {
    locks.lock(key).ttl(OUTLIVED).read()
}

fn name(key: &str) -> String {
    format!("lockkit:{key}")
}

/// Checks that no key of the lock is left on either node but the mark.
fn is_free(cluster: &RedisCluster, key: &str) {
    for node in cluster.masters() {
        let left = node.keys().into_iter().filter(|left| left.contains(key));
        let left: Vec<_> = left.filter(|left| !left.contains("!f")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[tokio::test]
async fn the_last_share_that_is_released_while_its_slot_moves_frees_the_key() {
    needs!(redis);
    let cluster = shared_cluster();
    let (locks, other) = (manager(cluster).await, manager(cluster).await);
    let key = "{ended readers}";
    for moves in ["none", &name(key), "lockkit:!st:"] {
        let first = reader(&locks, key)
            .ttl(long())
            .acquire()
            .await
            .expect("free");
        let second = reader(&other, key).ttl(long()).acquire().await;
        let second = second.expect("a reader");
        let moving = Move::begin(cluster, &name(key));
        moving.keys_move(moves);
        first.release().await.expect("held");
        assert_eq!(kind(other.lock(key).acquire().await), ErrorKind::Busy);
        second.release().await.expect("held");
        let writer = other.lock(key).ttl(long()).acquire().await.expect("free");
        moving.end();
        assert_eq!(kind(reader(&locks, key).acquire().await), ErrorKind::Busy);
        writer.release().await.expect("held");
        is_free(cluster, key);
    }
}

#[tokio::test]
async fn while_its_slot_moves_a_writer_that_goes_on_as_a_reader_keeps_its_key() {
    needs!(redis);
    let cluster = &RedisCluster::start(PATIENT);
    let (locks, other) = (manager(cluster).await, manager(cluster).await);
    let deleted = || {
        let nodes = cluster.masters().into_iter();
        let counts = nodes.map(|node| node.commandstats().get("del").copied().unwrap_or(0));
        counts.sum::<u64>()
    };
    let key = "{downgraded}";
    let has_mark = || {
        let keys = cluster.masters().into_iter().flat_map(RedisServer::keys);
        let mut marks = keys.filter(|key| key.starts_with("lockkit:!f:"));
        marks.any(|mark| cluster.slot(&mark) == cluster.slot(&name(key)))
    };
    assert!(!has_mark(), "the slot has had no lock");
    for moves in ["none", &name(key)] {
        let writer = locks.lock(key).ttl(long()).acquire().await.expect("free");
        let fence = writer.fencing_token();
        let moving = Move::begin(cluster, &name(key));
        moving.keys_move(moves);
        let before = deleted();
        let share = writer.downgrade().await.expect("held");
        assert_eq!(deleted(), before, "the key is free at no moment");
        assert_eq!(share.fencing_token(), fence);
        assert!(has_mark(), "the tokens of other readers are higher");
        assert_eq!(kind(other.lock(key).acquire().await), ErrorKind::Busy);
        assert!(share.is_valid());
        share.release().await.expect("held");
        let next = other.lock(key).ttl(long()).acquire().await.expect("free");
        assert!(next.fencing_token() > fence);
        moving.end();
        next.release().await.expect("held");
        is_free(cluster, key);
    }
}

/// The steps of a release are apart, so a client may be stopped between them for longer than the lock lasts. By then other
/// shares may have the key, and its value is the same.
#[tokio::test]
async fn a_client_that_was_stopped_on_the_way_deletes_no_later_lock() {
    needs!(redis);
    let server = RedisServer::start();
    let script = include_str!("../../../lock-core/src/scripts/free_shared.lua");
    let time = server.cli(&["TIME"]);
    let now: u64 = time
        .lines()
        .next()
        .and_then(|it| it.parse().ok())
        .expect("seconds");
    let free = |value: &str, ends: u64| {
        let ends = (ends * 1_000).to_string();
        server.cli(&["EVAL", script, "1", "lock", value, &ends])
    };
    server.cli(&["SET", "lock", "several", "PX", "60000"]);
    assert_eq!(
        free("several", now - 1),
        "2",
        "the lock that was read has ended"
    );
    assert_eq!(free("another", now + 60), "2");
    assert_eq!(server.get("lock").as_deref(), Some("several"));
    assert_eq!(free("several", now + 60), "1");
    assert_eq!(server.get("lock"), None);
}

/// Each call that is told so deletes the lock in its next step, which later shares may have by then.
#[tokio::test]
async fn of_the_shares_that_end_while_their_slot_moves_only_one_is_told_that_it_was_the_last() {
    needs!(redis);
    let server = RedisServer::start();
    let script = include_str!("../../../lock-core/src/scripts/remove_share.lua");
    let removed = |token: &str| server.cli(&["EVAL", script, "1", "set", token]);
    let later = "9000000000000";
    let inside = ["1", "over", later, "first", later, "last"];
    server.cli(&[&["ZADD", "set"], &inside[..]].concat());
    assert_eq!(removed("another"), "0\n0");
    assert_eq!(removed("first"), "1\n0");
    assert_eq!(removed("last"), "1\n1");
    assert_eq!(removed("over"), "0\n0", "it went with the last one");
    assert_eq!(removed("last"), "0\n0", "the set is absent");
}
