//! The methods of a request that acquire its lock, and their futures.

use std::fmt;
use std::future::{Future, IntoFuture, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::api::body::Body;
use crate::api::guard::LockGuard;
use crate::api::handle::LockHandle;
use crate::api::ownership::{enter, take_guard};
use crate::api::request::LockRequest;
use crate::api::run::Run;
use crate::base::BoxFuture;
use crate::base::error::{Error, ErrorKind};
use crate::base::options::Wait;

impl LockRequest {
    /// Acquires the lock. `.await` on the request does the same.
    ///
    /// # Errors
    ///
    /// * `Busy`: another owner held the key until the end of the wait.
    /// * `Unavailable`: the store gave no answer; [`wait`](Self::wait) explains when a waiting
    ///   caller gets this error.
    /// * `Misconfigured`: the store will never accept this request.
    /// * `Invalid`: the key or the ttl is out of bounds, no manager is installed, or the calling
    ///   code already holds this lock and would wait for itself. Only [`run`](Self::run),
    ///   [`run_with`](Self::run_with) and the attribute enter a lock again.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped at any await leaves no key behind, because the background undoes
    /// what was sent. If the store cannot be reached, a key may stay for one ttl.
    ///
    /// # Panics
    ///
    /// This method never panics.
    #[doc(alias = "lock")]
    pub fn acquire(self) -> Acquire {
        Acquire(match self.spec() {
            Ok(spec) => Box::pin(take_guard(spec)),
            Err(error) => Box::pin(ready(Err(error))),
        })
    }

    /// Tries once to acquire the lock, even if `wait` is set.
    ///
    /// The result is `None` if another owner holds the key.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), without `Busy`.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    #[doc(alias = "try_lock")]
    pub fn try_acquire(self) -> TryAcquire {
        TryAcquire(self.wait(Wait::None).acquire())
    }

    /// Acquires the lock, runs `body`, and releases the lock.
    ///
    /// The body is always dropped before the release. It is dropped when it has ended, when it
    /// panics, when the lock is lost, and when this future is dropped.
    ///
    /// The options of the request apply, and `Busy` is an error here. A
    /// [`cooldown`](Self::cooldown) follows every result of the body, an `Err` too, unless
    /// [`cooldown_if`](crate::Run::cooldown_if) is set.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and `Lost` if the lock was lost while the body ran (with
    /// [`OnLost::Cancel`](crate::OnLost::Cancel)) or `max_hold` was reached. A failed release is
    /// logged and not returned, because the work is done. The loss is noticed before each poll of the body. So a body that
    /// blocks its thread until the lock is lost, and ends in the same poll, is done too.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the body is dropped first, and then the background releases the
    /// lock.
    pub fn run<F: Future>(self, body: F) -> Run<fn(LockHandle) -> F, F> {
        self.run_body(Body::made(body), |_| true)
    }

    /// Runs `body` as [`run`](Self::run) does, and passes it a handle to the lock.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// let fence = locks.lock("sku:7").run_with(|lock| async move { lock.fencing_token() }).await?;
    /// # let _ = fence; Ok(()) }
    /// ```
    pub fn run_with<C, F>(self, body: C) -> Run<C, F>
    where
        C: FnOnce(LockHandle) -> F,
        F: Future,
    {
        self.run_body(Body::new(body), |_| true)
    }

    /// Runs `body`, with a cooldown if `succeeded` accepts its output.
    pub(crate) fn run_body<C, F: Future>(
        self,
        body: Body<C, F>,
        succeeded: fn(&F::Output) -> bool,
    ) -> Run<C, F> {
        let (on_lost, release, reentrancy) = (self.on_lost, self.release, self.reentrancy);
        let acquiring: BoxFuture<'static, _> = match self.spec() {
            Ok(spec) => Box::pin(enter(spec, reentrancy)),
            Err(error) => Box::pin(ready(Err(error))),
        };
        Run::new(acquiring, body, succeeded, on_lost, release)
    }
}

/// `.await` on a request acquires its lock, as [`acquire`](LockRequest::acquire) does.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
/// # let locks = lock_core::LockManager::in_memory();
/// let guard = locks.lock("order:42").await?;
/// # drop(guard); Ok(()) }
/// ```
// `Acquire` is the future of `acquire` too, so neither way has a cost that the other lacks.
impl IntoFuture for LockRequest {
    type Output = Result<LockGuard, Error>;
    type IntoFuture = Acquire;

    fn into_future(self) -> Acquire {
        self.acquire()
    }
}

/// The future of [`LockRequest::acquire`], and of a request that is awaited.
#[must_use = "futures do nothing unless polled"]
pub struct Acquire(pub(crate) BoxFuture<'static, Result<LockGuard, Error>>);

impl Future for Acquire {
    type Output = Result<LockGuard, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Acquire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acquire")
    }
}

/// The future of [`LockRequest::try_acquire`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct TryAcquire(pub(crate) Acquire);

impl Future for TryAcquire {
    type Output = Result<Option<LockGuard>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|acquired| match acquired {
                Ok(guard) => Ok(Some(guard)),
                Err(error) if error.kind() == ErrorKind::Busy => Ok(None),
                Err(error) => Err(error),
            })
    }
}
