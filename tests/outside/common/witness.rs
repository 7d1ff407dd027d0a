//! Sees from the outside that a function runs under its lock.
//!
//! Every body calls [`at_work`], where [`locked`] stops it, looks at the lock, calls the function a
//! second time and lets the first go on.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use lock_core::LockManager;
use tokio::sync::Semaphore;

use super::errors::Answer;

/// Runs `first`, and `second` while the body of `first` runs: `key` is what is held then, `second`
/// must be refused without its body having run, and once `first` is done the key is free.
pub async fn locked<R: Answer>(
    key: &str,
    first: impl Future<Output = R>,
    second: impl Future<Output = R>,
) -> R {
    let output = locked_by_all(&[key], first, second).await;
    assert!(is_free(key).await, "`{}` was not released", key);
    output
}

/// [`locked`] with a `cooldown`: the key stays taken.
pub async fn cooling<R: Answer>(
    key: &str,
    first: impl Future<Output = R>,
    second: impl Future<Output = R>,
) -> R {
    let output = locked_by_all(&[key], first, second).await;
    assert!(!is_free(key).await, "`{}` does not cool down", key);
    output
}

/// [`locked`] with every key that is held while the body runs, in their alphabetical order.
pub async fn locked_by_all<R: Answer>(
    keys: &[&str],
    first: impl Future<Output = R>,
    second: impl Future<Output = R>,
) -> R {
    let locks = manager();
    let stage = Stage::closed();
    let mut first = pin!(locks.scope(STAGE.scope(stage.clone(), first)));
    until_at_work(first.as_mut(), &stage).await;
    assert_eq!(held(), keys, "these are held while the body runs");

    let other = Stage::open();
    let refused = locks.scope(STAGE.scope(other.clone(), second)).await;
    assert!(!other.is_entered(), "two bodies ran under {:?}", keys);
    assert!(refused.says_busy(), "the second call was not told so");

    stage.gate.close();
    let output = first.await;
    assert!(locks.held().is_empty(), "something is still held");
    output
}

/// `second` waits while the body of `first` runs, and gets its turn after it.
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

/// Drops `call` while its body runs, which gives `key` back.
pub async fn cancelled(key: &str, call: impl Future) {
    let stage = Stage::closed();
    let mut call = Box::pin(manager().scope(STAGE.scope(stage.clone(), call)));
    until_at_work(call.as_mut(), &stage).await;
    assert_eq!(held(), [key], "this is held while the body runs");
    drop(call);
    assert!(is_free(key).await, "`{}` was not released", key);
}

/// What a body calls in its middle.
pub async fn at_work() {
    let stage = STAGE.with(Clone::clone);
    stage.entered.store(true, Ordering::Relaxed);
    let is_closed = stage.gate.acquire().await.is_err();
    assert!(is_closed, "the gate has no permits");
}

/// The manager of this test: tests run on a thread of their own.
#[must_use]
pub fn manager() -> LockManager {
    LOCKS.with(Clone::clone)
}

/// Whether a stranger could have `key`.
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

/// In their alphabetical order.
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
    /// A body stops there until the gate is closed for good, which lets it go.
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
