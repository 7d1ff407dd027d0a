//! A body whose lock is lost.

use std::{future::pending, time::Duration};

use lock_core::{Error, ErrorKind, LockManager, distributed_lock};

use crate::probe::{Probe, Watch};

#[distributed_lock(key = "lost", ttl = "2s", manager = locks)]
async fn endless(locks: &LockManager, watch: &Watch, _argument: Probe) -> Result<(), Error> {
    let _local = watch.probe("local");
    let store = locks.test_store().expect("an embedded store");
    assert!(store.lose("lost"), "the body runs under its lock");
    pending().await
}

#[tokio::test]
async fn a_deleted_key_drops_the_body_and_the_call_returns_lost() {
    let locks = LockManager::in_memory();
    let watch = Watch::new(&locks);
    let error = endless(&locks, &watch, watch.probe("argument"))
        .await
        .expect_err("the key is gone");
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert_eq!(watch.names(), ["local", "argument"]);
}

#[distributed_lock(key = "seized", ttl = "2s", manager = locks, on_lost = ignore, guard = lock)]
async fn to_its_end(locks: &LockManager) -> Result<&'static str, Error> {
    let store = locks.test_store().expect("an embedded store");
    store.seize("seized", Duration::from_secs(60));
    lock.lost().await;
    assert!(!lock.is_valid());
    Ok("done")
}

#[tokio::test]
async fn a_body_that_ignores_the_loss_runs_to_its_end_and_keeps_the_foreign_owners_key() {
    let locks = LockManager::in_memory();
    assert_eq!(
        to_its_end(&locks).await.expect("the body's result counts"),
        "done"
    );
    let store = locks.test_store().expect("an embedded store");
    assert_eq!(store.taken(), 1);
}

#[distributed_lock(key = "first", ttl = "10s", manager = locks)]
async fn ends_first(locks: &LockManager) -> Result<&'static str, Error> {
    let store = locks.test_store().expect("an embedded store");
    store.seize("first", Duration::from_secs(60));
    Ok("done")
}

#[tokio::test]
async fn a_result_before_the_loss_is_returned() {
    let locks = LockManager::in_memory();
    assert_eq!(ends_first(&locks).await.expect("the body was done"), "done");
}

#[distributed_lock(key = "down", ttl = "10s")]
async fn unreachable(ran: &mut bool) -> Result<(), Error> {
    *ran = true;
    Ok(())
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_unavailable_and_the_body_does_not_run() {
    let locks = LockManager::in_memory();
    let store = locks.test_store().expect("an embedded store");
    store.fail(ErrorKind::Unavailable);
    let mut ran = false;
    let error = locks
        .scope(unreachable(&mut ran))
        .await
        .expect_err("the store is down");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(!ran);
}
