//! The body never runs without the lock.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use lock_core::{Error, ErrorKind, LockManager, distributed_lock};

#[distributed_lock(key = "job", ttl = "10s")]
async fn job(ran: &AtomicBool) -> Result<(), Error> {
    ran.store(true, Ordering::Relaxed);
    Ok(())
}

#[tokio::test]
async fn a_second_caller_is_refused_while_the_first_runs() {
    let locks = LockManager::in_memory();
    let first = locks
        .lock("job")
        .ttl(Duration::from_secs(10))
        .acquire()
        .await
        .expect("the lock is free");
    let ran = AtomicBool::new(false);
    let error = locks
        .scope(job(&ran))
        .await
        .expect_err("another owner holds the key");
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(!ran.load(Ordering::Relaxed));
    first.release().await.expect("it was held");
    assert!(locks.scope(job(&ran)).await.is_ok());
    assert!(ran.load(Ordering::Relaxed));
}

#[tokio::test]
async fn without_a_manager_the_call_is_invalid_and_the_body_does_not_run() {
    // No test of this program installs a manager, because each test has its own.
    let ran = AtomicBool::new(false);
    let error = job(&ran).await.expect_err("nothing is installed");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(!ran.load(Ordering::Relaxed));
}

const UNFILLED: &str = "has <uid> in it";

#[distributed_lock(key = UNFILLED, ttl = "10s")]
async fn bad_key(ran: &AtomicBool) -> Result<(), Error> {
    ran.store(true, Ordering::Relaxed);
    Ok(())
}

#[distributed_lock(key = "job", ttl = Duration::from_millis(1))]
async fn bad_ttl(ran: &AtomicBool) -> Result<(), Error> {
    ran.store(true, Ordering::Relaxed);
    Ok(())
}

#[tokio::test]
async fn a_key_or_a_ttl_out_of_bounds_is_invalid_and_the_body_does_not_run() {
    let locks = LockManager::in_memory();
    let ran = AtomicBool::new(false);
    for done in [
        locks.scope(bad_key(&ran)).await,
        locks.scope(bad_ttl(&ran)).await,
    ] {
        assert_eq!(
            done.expect_err("it is out of bounds").kind(),
            ErrorKind::Invalid
        );
    }
    assert!(!ran.load(Ordering::Relaxed));
}
