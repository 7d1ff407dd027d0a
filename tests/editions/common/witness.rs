//! Checks from outside that a function runs under its lock.
//!
//! Every body calls [`at_work`]. There [`locked`] stops it, checks the lock, calls the function a
//! second time and lets the first call continue.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use lock_core::LockManager;
use tokio::sync::Semaphore;

use super::errors::Answer;

/// Runs `first`, and `second` while the body of `first` runs.
///
/// The check requires that `key` is held at that time, that `second` is refused without running its
/// body, and that the key is free once `first` is done.
pub async fn locked<R: Answer>(
    key: &str,
    first: impl Future<Output = R>,
    second: impl Future<Output = R>,
) -> R {
    let output = locked_by_all(&[key], first, second).await;
    assert!(is_free(key).await, "`{}` was not released", key);
    output
}

/// Does the same as [`locked`] for a function with a `cooldown`, whose key stays taken.
pub async fn cooling<R: Answer>(
    key: &str,
    first: impl Future<Output = R>,
    second: impl Future<Output = R>,
) -> R {
    let output = locked_by_all(&[key], first, second).await;
    assert!(!is_free(key).await, "`{}` does not cool down", key);
    output
}

/// Does the same as [`locked`] with all keys that are held while the body runs, in alphabetical
/// order.
pub async fn locked_by_all<R: Answer>(
    keys: &[&str],
    first: impl Future<Output = R>,
    second: impl Future<Output = R>,
) -> R {
    let locks = manager();
    let stage = Stage::closed();
    let mut first = pin!(locks.scope(STAGE.scope(stage.clone(), first)));
    until_at_work(first.as_mut(), &stage).await;
    assert_eq!(held(), keys, "the keys that are held while the body runs");

    let other = Stage::open();
    let refused = locks.scope(STAGE.scope(other.clone(), second)).await;
    assert!(!other.is_entered(), "two bodies ran under {:?}", keys);
    assert!(
        refused.says_busy(),
        "the second call did not report that the lock is taken"
    );

    stage.gate.close();
    let output = first.await;
    assert!(locks.held().is_empty(), "a lock is still held");
    output
}

/// Checks that `second` waits while the body of `first` runs, and gets its turn after it.
pub async fn waiting<R: Answer>(
    first: impl Future<Output = R>,
    second: impl Future<Output = R>,
) -> (R, R) {
    let locks = manager();
    let (stage, other) = (Stage::closed(), Stage::open());
    let mut first = pin!(locks.scope(STAGE.scope(stage.clone(), first)));
    let mut second = pin!(locks.scope(STAGE.scope(other.clone(), second)));
    poll_fn(|context| {
        assert!(first.as_mut().poll(context).is_pending());
        if !stage.is_entered() {
            return Poll::Pending;
        }
        assert!(second.as_mut().poll(context).is_pending());
        assert!(!other.is_entered());
        Poll::Ready(())
    })
    .await;
    stage.gate.close();
    let outputs = tokio::join!(first, second);
    assert!(other.is_entered() && locks.held().is_empty());
    outputs
}

/// Drops `call` while its body runs, which releases `key`.
pub async fn cancelled(key: &str, call: impl Future) {
    let stage = Stage::closed();
    let mut call = Box::pin(manager().scope(STAGE.scope(stage.clone(), call)));
    until_at_work(call.as_mut(), &stage).await;
    assert_eq!(held(), [key], "the key that is held while the body runs");
    drop(call);
    assert!(is_free(key).await, "`{}` was not released", key);
}

/// Marks the middle of a body, which calls it.
pub async fn at_work() {
    let stage = STAGE.with(Clone::clone);
    stage.entered.store(true, Ordering::Relaxed);
    let is_closed = stage.gate.acquire().await.is_err();
    assert!(is_closed, "the gate has no permits");
}

/// Returns the manager of this test. Each test has a thread of its own.
#[must_use]
pub fn manager() -> LockManager {
    LOCKS.with(Clone::clone)
}

/// Returns whether another client could take `key`.
pub async fn is_free(key: &str) -> bool {
    let request = manager().lock(key).ttl(Duration::from_secs(10));
    let attempt = request.try_acquire().await;
    attempt.expect("the key is valid").is_some()
}

async fn until_at_work<F: Future>(mut call: Pin<&mut F>, stage: &Stage) {
    poll_fn(|context| match call.as_mut().poll(context) {
        Poll::Ready(_) => panic!("the function ended without its body"),
        Poll::Pending if stage.is_entered() => Poll::Ready(()),
        Poll::Pending => Poll::Pending,
    })
    .await;
}

/// Returns the held keys in alphabetical order.
fn held() -> Vec<String> {
    let held = manager().held();
    let mut keys: Vec<String> = held.iter().map(|lock| lock.key().to_owned()).collect();
    keys.sort_unstable();
    keys
}

thread_local! {
    static LOCKS: LockManager = LockManager::in_memory();
}

tokio::task_local! {
    static STAGE: Stage;
}

#[derive(Clone)]
struct Stage {
    entered: Arc<AtomicBool>,
    gate: Arc<Semaphore>,
}

impl Stage {
    /// Makes a closed stage, at which a body stops until the stage opens.
    fn closed() -> Self {
        Self {
            entered: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
        }
    }

    fn open() -> Self {
        let stage = Self::closed();
        stage.gate.close();
        stage
    }

    fn is_entered(&self) -> bool {
        self.entered.load(Ordering::Relaxed)
    }
}
