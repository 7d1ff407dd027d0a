//! Tests the job under locks of this process. `tests/it/nightly.rs` tests whole processes.

use lock_core::ErrorKind;

use super::*;

async fn work(_: LockHandle) -> io::Result<()> {
    Ok(())
}

#[tokio::test]
async fn a_job_that_is_done_is_not_repeated_in_the_same_night() {
    let locks = LockManager::in_memory();
    assert_eq!(nightly(&locks, work).await.exit_code(), 0);
    let again = nightly(&locks, work).await;
    assert_eq!(again.exit_code(), 75);
    assert_eq!(
        again.to_string(),
        "the job has been done already, nothing to do"
    );
}

#[tokio::test]
async fn a_job_that_failed_may_be_run_by_another_machine() {
    let locks = LockManager::in_memory();
    let failing = |_| async { Err(io::Error::other("no disk space")) };
    let failed = nightly(&locks, failing).await;
    assert_eq!(failed.exit_code(), 1);
    assert_eq!(failed.to_string(), "the job failed: no disk space");
    assert_eq!(nightly(&locks, work).await.exit_code(), 0);
}

#[tokio::test]
async fn a_job_does_not_begin_while_another_machine_runs_it() {
    let locks = LockManager::in_memory();
    let other = locks.lock("nightly").acquire().await.unwrap();
    let refused = nightly(&locks, work).await;
    assert_eq!(refused.exit_code(), 75);
    assert_eq!(
        refused.to_string(),
        "another machine runs the job, nothing to do"
    );
    other.release().await.unwrap();
    assert_eq!(nightly(&locks, work).await.exit_code(), 0);
}

#[tokio::test]
async fn a_job_that_is_stopped_leaves_no_lock_behind() {
    let locks = LockManager::in_memory();
    tokio::select! {
        biased;
        _ = nightly(&locks, |_| std::future::pending()) => unreachable!("the job never ends"),
        () = async { while locks.held().is_empty() { tokio::task::yield_now().await } } => {}
    }
    let guard = locks.lock("nightly").wait(LAST_RELEASE).acquire().await;
    guard
        .expect("released in the background")
        .release()
        .await
        .unwrap();
    assert!(locks.drain(LAST_RELEASE).await.is_complete());
    let after = nightly(&locks, work).await;
    assert!(matches!(&after, Outcome::NoLock(error) if error.kind() == ErrorKind::Unavailable));
    assert_eq!(after.exit_code(), 69);
}
