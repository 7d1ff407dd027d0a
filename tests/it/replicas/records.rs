//! Tests records that replicas must acknowledge.

use std::time::Duration;

use lock_core::middleware::RecordOutcome;
use lock_core::{LockHandle, LockManager};
use lock_tests::{Proxy, needs, wait};

use super::{builder, hasty, long, manager, replica_set, taken, waits};

async fn finished(locks: &LockManager, key: &str) -> Option<RecordOutcome> {
    let guard = taken(locks, key, long()).await;
    guard.remember("the answer", long()).expect("in bounds");
    let handle = guard.handle();
    guard.release().await.expect("held");
    handle.record_outcome()
}

#[tokio::test]
async fn a_record_is_on_as_many_replicas_as_required_before_the_release_returns() {
    needs!(redis);
    let set = replica_set(2);
    let locks = manager(set.master(), 2).await;
    finished(&locks, "first").await;
    set.master().reset_stats();
    for round in 0..20 {
        let key = format!("k{round}");
        let outcome = finished(&locks, &key).await;
        assert_eq!(outcome, Some(RecordOutcome::Stored));
        for replica in set.replicas() {
            let value = replica.get(&format!("lockkit:{key}"));
            let value = value.expect("the replica has the key");
            assert!(value.starts_with("done/") && value.ends_with("the answer"));
        }
    }
    // One for the acquire and one for the record.
    assert_eq!(waits(set.master()), 40);
}

#[tokio::test]
async fn a_record_that_a_stopped_replica_does_not_have_is_stored_and_unacknowledged() {
    needs!(redis);
    let set = replica_set(2);
    let locks = hasty(set.master(), 2).await;
    let guard = taken(&locks, "k", long()).await;
    guard.remember("the answer", long()).expect("in bounds");
    let handle = guard.handle();
    set.servers()[1].stop();
    guard.release().await.expect("the lock has ended");
    let outcome = handle.record_outcome();
    assert_eq!(outcome, Some(RecordOutcome::Unacknowledged));
    let refused = locks.lock("k").acquire().await.expect_err("taken");
    assert_eq!(refused.record(), Some(&b"the answer"[..]));
    set.servers()[1].cont();
}

#[tokio::test]
async fn a_record_whose_connection_broke_before_the_replicas_answered_is_acknowledged_again_and_keeps_its_end()
 {
    needs!(redis);
    let set = replica_set(1);
    let proxy = Proxy::to(set.master().address());
    let locks = builder(&proxy.redis_url(), 1).connect().await;
    let locks = locks.expect("a manager");
    let guard = taken(&locks, "k", long()).await;
    guard.remember("the answer", long()).expect("in bounds");
    let handle = guard.handle();
    let replica = &set.servers()[1];
    replica.stop();
    let release = tokio::spawn(guard.release());
    wait::eventually("the master has the record", async || {
        let value = set.master().get("lockkit:k");
        value.is_some_and(|value| value.starts_with("done/"))
    })
    .await;
    wait::eventually("the record waits for the replica", async || {
        super::waiting(set.master()) == 1
    })
    .await;
    // The end in the value is over by this server's clock, as that of a node whose clock is behind, and whose slot has moved.
    let value = set.master().get("lockkit:k").expect("the record");
    let mut parts: Vec<&str> = value.split('/').collect();
    parts[3] = "1";
    let value = parts.join("/");
    set.master().cli(&["SET", "lockkit:k", &value, "KEEPTTL"]);
    let scripts = || set.master().commandstats().get("evalsha").copied();
    let before = scripts();
    proxy.cut();
    // The second copy finds the record, and waits for the replica like the first one.
    wait::eventually("the second copy waits for the replica", async || {
        scripts() > before && super::waiting(set.master()) == 1
    })
    .await;
    assert_eq!(handle.record_outcome(), Some(RecordOutcome::Background));
    replica.cont();
    release.await.expect("no panic").expect("held");
    assert_eq!(handle.record_outcome(), Some(RecordOutcome::Stored));
    assert!(replica.get("lockkit:k").is_some());
}

#[tokio::test]
async fn a_record_that_the_keeper_repeats_is_not_acknowledged_by_an_older_write() {
    needs!(redis);
    let set = replica_set(1);
    let locks = manager(set.master(), 1).await;
    let answered = async |handle: &LockHandle| {
        wait::eventually("the store has answered", async || {
            handle.record_outcome() != Some(RecordOutcome::Background)
        })
        .await;
        handle.record_outcome()
    };
    // The keeper's connection exists, and its last write is acknowledged.
    let guard = taken(&locks, "first", long()).await;
    guard.remember("the answer", long()).expect("in bounds");
    let first = guard.handle();
    drop(guard);
    assert_eq!(answered(&first).await, Some(RecordOutcome::Stored));
    let guard = taken(&locks, "k", long()).await;
    guard.remember("the answer", long()).expect("in bounds");
    let handle = guard.handle();
    let replica = &set.servers()[1];
    replica.stop();
    let released = guard.release_within(Duration::from_millis(50)).await;
    assert!(released.is_none(), "the replica is stopped");
    let outcome = answered(&handle).await;
    assert_eq!(outcome, Some(RecordOutcome::Unacknowledged));
    replica.cont();
}

#[tokio::test]
async fn a_promoted_replica_has_the_record() {
    needs!(redis);
    let apart = super::Apart::start();
    let locks = manager(&apart.master, 1).await;
    let outcome = finished(&locks, "k").await;
    assert_eq!(outcome, Some(RecordOutcome::Stored));
    apart.promote();
    let locks = crate::steps::manager(&apart.replica.url()).await;
    let refused = locks.lock("k").acquire().await.expect_err("taken");
    assert_eq!(refused.record(), Some(&b"the answer"[..]));
}
