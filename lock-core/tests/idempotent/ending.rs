//! Runs that end before their result: by a drop, a panic or a loss.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_core::{Error, LockManager, Wait, idempotent};
use tokio::sync::Notify;
use tracing::Level;

use crate::log::Log;

#[derive(Clone)]
struct Work {
    locks: LockManager,
    runs: Arc<AtomicU64>,
    begun: Arc<Notify>,
}

enum Step {
    Hang,
    Panic,
    Lose,
    Seize,
    Return,
}

impl Work {
    fn new() -> Work {
        Work {
            locks: LockManager::in_memory(),
            runs: Arc::default(),
            begun: Arc::default(),
        }
    }

    #[idempotent(key = "work", ttl = "2s", remember = "24h", fingerprint = none, manager = self.locks)]
    async fn work(&self, step: Step) -> Result<u64, Error> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        self.begun.notify_one();
        match step {
            Step::Hang => pending().await,
            Step::Panic => panic!("on purpose"),
            Step::Lose => {
                let store = self.locks.test_store().expect("an embedded store");
                assert!(store.lose("work"));
                pending().await
            }
            Step::Seize => {
                let store = self.locks.test_store().expect("an embedded store");
                store.seize("work", Duration::from_millis(1));
                Ok(run)
            }
            Step::Return => Ok(run),
        }
    }

    #[idempotent(
        key = "work", ttl = "2s", remember = "24h", manager = self.locks, guard = lock, on_lost = ignore, max_hold = "1h",
    )]
    async fn to_its_end(&self) -> Result<bool, Error> {
        let store = self.locks.test_store().expect("an embedded store");
        assert!(store.lose("work"));
        lock.lost().await;
        Ok(lock.is_valid())
    }

    /// Waits until the background has released the lock, and then calls twice.
    async fn runs_again(&self) {
        let request = self.locks.lock("work").wait(Wait::Forever);
        let guard = request.acquire().await.expect("free");
        guard.release().await.expect("held");
        let runs = self.runs.load(Ordering::SeqCst);
        assert_eq!(self.work(Step::Return).await.expect("free"), runs + 1);
        assert_eq!(self.work(Step::Return).await.expect("kept"), runs + 1);
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_keeps_no_result_and_the_next_one_runs() {
    let work = Work::new();
    let call = work.work(Step::Hang);
    tokio::select! {
        _ = call => unreachable!("the body hangs"),
        () = work.begun.notified() => {}
    }
    work.runs_again().await;
}

#[tokio::test]
async fn a_body_that_panics_keeps_no_result() {
    let work = Work::new();
    let panicking = work.clone();
    let call = tokio::spawn(async move { panicking.work(Step::Panic).await });
    assert!(call.await.expect_err("a panic").is_panic());
    work.runs_again().await;
}

#[tokio::test]
async fn a_lost_lock_drops_the_body_and_keeps_no_result() {
    let work = Work::new();
    let error = work.work(Step::Lose).await.expect_err("lost");
    assert!(error.is_lost());
    work.runs_again().await;
}

#[tokio::test]
async fn a_result_that_the_store_did_not_take_is_returned_and_reported() {
    let (log, _guard) = Log::begin(Level::WARN);
    let work = Work::new();
    assert_eq!(work.work(Step::Seize).await.expect("the body was done"), 1);
    let text = log.text();
    assert!(
        text.contains("was not kept") && text.contains("ending::work"),
        "{text}"
    );
    work.runs_again().await;
}

#[tokio::test]
async fn a_body_that_ignores_the_loss_returns_its_own_result() {
    let (log, _guard) = Log::begin(Level::WARN);
    let work = Work::new();
    assert!(!work.to_its_end().await.expect("the body was done"));
    assert!(log.text().contains("the lock was lost before the release"));
}
