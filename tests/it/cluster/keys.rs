//! Tests which keys there are in a cluster, and in which slots.

use std::collections::BTreeSet;

use lock_core::{ErrorKind, LockManager};
use lock_tests::{RedisCluster, needs, wait};

use super::{PATIENT, long, manager, taken};
use crate::conformance::shared_cluster;
use crate::failover::TTL;

#[tokio::test]
async fn a_key_with_braces_that_are_no_tag_is_invalid_and_says_what_to_write() {
    needs!(redis);
    let locks = manager(shared_cluster()).await;
    for key in ["{}x", "a}b", "{a"] {
        let error = locks.lock(key).acquire().await.expect_err("no such lock");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{key}");
        assert!(error.to_string().contains("order:{42}"), "{error}");
    }
    let one = locks
        .lock("order:{braces}:a")
        .acquire()
        .await
        .expect("free");
    let other = locks.lock("{braces}").acquire().await.expect("free");
    one.release().await.expect("held");
    other.release().await.expect("held");
}

#[tokio::test]
async fn a_namespace_with_braces_that_are_no_tag_is_invalid() {
    needs!(redis);
    let url = shared_cluster().url();
    let error = LockManager::builder(&url).namespace("a{b:").connect_lazy();
    assert_eq!(error.expect_err("no such name").kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_thousand_keys_leave_no_more_marks_than_there_are_slots() {
    needs!(redis);
    let cluster = shared_cluster();
    let builder = LockManager::builder(&cluster.url()).namespace("marks:");
    let locks = builder.connect().await.expect("a manager");
    let mut slots = BTreeSet::new();
    for round in 0..2 {
        for number in 0..300 {
            let key = format!("{round}:{{{}}}", number % 100);
            slots.insert(cluster.slot(&format!("marks:{key}")));
            let guard = locks.lock(key).acquire().await.expect("free");
            guard.release().await.expect("held");
        }
    }
    let masters = cluster.masters();
    let keys = masters.iter().flat_map(|node| node.keys());
    let keys: Vec<_> = keys.filter(|key| key.starts_with("marks:")).collect();
    assert_eq!(keys.len(), slots.len());
    assert!(keys.iter().all(|key| key.starts_with("marks:!f:{")));
}

#[tokio::test]
async fn locks_on_all_nodes_are_renewed_together() {
    needs!(redis_7);
    // The test's own, because the nodes count the errors of all clients.
    let cluster = RedisCluster::start(PATIENT);
    let locks = manager(&cluster).await;
    let mut guards = Vec::new();
    for number in 0..60 {
        let key = format!("renewed:{number}");
        let guard = taken(&locks, key.as_str(), TTL).await;
        guards.push((key, guard));
    }
    let ends = |key: &String| {
        let name = format!("lockkit:{key}");
        cluster.cli(&name, &["PEXPIRETIME", &name])
    };
    let before: Vec<_> = guards.iter().map(|(key, _)| (key, ends(key))).collect();
    for (key, before) in &before {
        wait::eventually("the lock is renewed", async || ends(key) != *before).await;
    }
    assert!(guards.iter().all(|(_, guard)| guard.is_valid()));
    for node in cluster.masters() {
        let errors = node.info("errorstats");
        assert!(!errors.contains_key("errorstat_CROSSSLOT"), "{errors:?}");
    }
    for (_, guard) in guards {
        guard.release().await.expect("held");
    }
}

#[tokio::test]
async fn fencing_tokens_rise_on_every_node_and_above_a_mark_that_is_ahead_of_the_clock() {
    needs!(redis);
    let cluster = shared_cluster();
    let builder = LockManager::builder(&cluster.url()).namespace("ahead:");
    let locks = builder.connect().await.expect("a manager");
    for key in ["a", "b", "c"] {
        let first = locks.lock(key).ttl(long()).acquire().await.expect("free");
        let fence = first.fencing_token();
        first.release().await.expect("held");
        let mark = cluster.masters().iter().find_map(|node| {
            let slot = cluster.slot(&format!("ahead:{key}"));
            let keys = node.keys();
            keys.into_iter()
                .find(|name| name.starts_with("ahead:!f:") && cluster.slot(name) == slot)
        });
        let mark = mark.expect("a mark in the lock's slot");
        let ahead = u64::from(fence) + 3_600_000_000;
        cluster.cli(&mark, &["SET", &mark, &ahead.to_string()]);
        let second = locks.lock(key).ttl(long()).acquire().await.expect("free");
        assert_eq!(u64::from(second.fencing_token()), ahead + 1);
        second.release().await.expect("held");
    }
}

#[test]
fn a_runtime_without_timers_takes_locks_on_all_nodes() {
    needs!(redis);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build();
    runtime.expect("a runtime").block_on(async {
        let locks = manager(shared_cluster()).await;
        for key in ["untimed:a", "untimed:b", "untimed:c", "untimed:d"] {
            let guard = locks.lock(key).acquire().await.expect("free");
            guard.release().await.expect("held");
        }
    });
}
