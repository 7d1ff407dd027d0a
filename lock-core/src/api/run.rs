//! Runs a body under a lock.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::api::body::Body;
use crate::api::handle::LockHandle;
use crate::api::ownership::Ownership;
use crate::base::BoxFuture;
use crate::base::error::Error;
use crate::base::options::{OnLost, ReleaseMode};
use crate::engine::reentry::Level;
use crate::lease::Loss;
use crate::timer::Timer;

/// The future of [`LockRequest::run`](crate::LockRequest::run) and
/// [`run_with`](crate::LockRequest::run_with).
///
/// It acquires the lock, polls the body and releases the lock. The body, its arguments and its
/// output are on the heap, in two allocations. So this future stays small, and a large body needs
/// no more stack than without the lock.
///
/// # Cancel safety
///
/// If the future is dropped, the body is dropped first, and then the background releases the lock.
#[must_use = "futures do nothing unless polled"]
pub struct Run<C, F: Future> {
    // The body stands before the state, which owns the lock, because fields are dropped in the
    // order of their declaration.
    body: Body<C, F>,
    state: RunState,
    // Returns whether the output means success, after which a cooldown applies.
    succeeded: fn(&F::Output) -> bool,
    on_lost: OnLost,
    release: ReleaseMode,
}

enum RunState {
    Acquiring(BoxFuture<'static, Result<Ownership, Error>>),
    Running(Running),
    Releasing(BoxFuture<'static, Result<(), Error>>),
    Done,
}

/// Sees the lock and the output of the body before the release, and returns whether the output means success.
pub(crate) type Ended<'a, T> = &'a mut dyn FnMut(&Ownership, &T) -> bool;

/// The lock under which the body runs.
struct Running {
    ownership: Ownership,
    level: Arc<Level>,
    lost_waker: Option<u32>,
    /// Ends a body that goes on after the loss of its lock. It is set at the loss.
    limit: Option<Timer>,
}

impl<C, F: Future> Run<C, F> {
    pub(crate) fn new(
        acquiring: BoxFuture<'static, Result<Ownership, Error>>,
        body: Body<C, F>,
        succeeded: fn(&F::Output) -> bool,
        on_lost: OnLost,
        release: ReleaseMode,
    ) -> Self {
        Self {
            body,
            state: RunState::Acquiring(acquiring),
            succeeded,
            on_lost,
            release,
        }
    }

    /// Applies the request's [`cooldown`](crate::LockRequest::cooldown) only if `succeeded` accepts
    /// the body's output.
    ///
    /// Without this method every body that has ended counts as success, even one that returned an
    /// `Err`, because `run` takes bodies of any type.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use std::time::Duration;
    ///
    /// let pay = || locks.lock("pay:42").cooldown(Duration::from_secs(60));
    /// let declined = pay().run(async { Err::<(), _>("declined") }).cooldown_if(Result::is_ok).await?;
    /// assert!(declined.is_err());
    /// // The user may try another card at once.
    /// let paid = pay().run(async { Ok::<_, &str>(()) }).cooldown_if(Result::is_ok).await?;
    /// assert!(paid.is_ok());
    /// assert!(pay().try_acquire().await?.is_none());
    /// # Ok(()) }
    /// ```
    pub fn cooldown_if(mut self, succeeded: fn(&F::Output) -> bool) -> Self {
        self.succeeded = succeeded;
        self
    }
}

impl<C, F> Future for Run<C, F>
where
    C: FnOnce(LockHandle) -> F,
    F: Future,
{
    type Output = Result<F::Output, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let succeeded = this.succeeded;
        this.poll_run(&mut |_, output| succeeded(output), context)
    }
}

impl<C, F> Run<C, F>
where
    C: FnOnce(LockHandle) -> F,
    F: Future,
{
    /// Polls the run. When the body has ended, `ended` sees its output and decides whether it means success.
    pub(crate) fn poll_run(
        &mut self,
        ended: Ended<'_, F::Output>,
        context: &mut Context<'_>,
    ) -> Poll<Result<F::Output, Error>> {
        loop {
            match &mut self.state {
                RunState::Acquiring(acquiring) => match ready!(acquiring.as_mut().poll(context)) {
                    Ok(ownership) => {
                        let level = ownership.level();
                        let inside = level.enter();
                        self.body.start(ownership.handle());
                        drop(inside);
                        self.state = RunState::Running(Running {
                            ownership,
                            level,
                            lost_waker: None,
                            limit: None,
                        });
                    }
                    Err(error) => {
                        // The body's arguments are dropped before the caller gets the error.
                        self.body.discard();
                        self.state = RunState::Done;
                        return Poll::Ready(Err(error));
                    }
                },
                RunState::Running(running) => {
                    let body = &mut self.body;
                    let outcome = ready!(running.poll(body, self.on_lost, ended, context));
                    let RunState::Running(Running { ownership, .. }) =
                        std::mem::replace(&mut self.state, RunState::Done)
                    else {
                        unreachable!("the match above checked the state");
                    };
                    match outcome {
                        Err(loss) => return Poll::Ready(Err(ownership.lease().loss_error(loss))),
                        Ok(succeeded) => match ownership.end(succeeded, self.release) {
                            Some(release) => self.state = RunState::Releasing(release),
                            None => return Poll::Ready(Ok(self.body.take_output())),
                        },
                    }
                }
                RunState::Releasing(release) => {
                    if let Err(error) = ready!(release.as_mut().poll(context)) {
                        // The work is done, so a failed release does not change its result.
                        log_failed_release(&error);
                    }
                    self.state = RunState::Done;
                    return Poll::Ready(Ok(self.body.take_output()));
                }
                RunState::Done => panic!("`Run` was polled after it was done"),
            }
        }
    }
}

/// Logs a failed release, outside of the generic code so that it is compiled once.
#[cold]
fn log_failed_release(error: &Error) {
    tracing::warn!(%error, "the release of a lock failed");
}

impl Running {
    /// Reads the clock, and then polls the body.
    ///
    /// The body is dropped when this method returns an outcome. `Ok` holds whether the output means
    /// success.
    fn poll<C, F: Future>(
        &mut self,
        body: &mut Body<C, F>,
        on_lost: OnLost,
        ended: Ended<'_, F::Output>,
        context: &mut Context<'_>,
    ) -> Poll<Result<bool, Loss>> {
        let begins = self.lost_waker.is_none();
        let lost = self.ownership.poll_lost(&mut self.lost_waker, context);
        // A body that has not begun does not begin, because a process that was paused since the grant would run beside
        // the next owner. `max_hold` ends the body even with `OnLost::Ignore`, because it limits such a body too.
        let counts = |loss: &Loss| begins || on_lost == OnLost::Cancel || *loss == Loss::MaxHold;
        let counted = match lost {
            Some(loss) if counts(&loss) => Some(loss),
            Some(_) if self.is_over(context) => Some(Loss::MaxHold),
            _ => None,
        };
        if let Some(loss) = counted {
            let _in_span = self.ownership.enter_span();
            body.discard();
            return Poll::Ready(Err(loss));
        }
        let _in_span = self.ownership.enter_span();
        // The level is entered without closures, because each type of body would compile several of
        // them.
        let output = {
            let _inside = self.level.enter();
            ready!(body.poll(context))
        };
        let succeeded = ended(&self.ownership, &output);
        // The body is always dropped before the lock is released.
        body.end(output);
        let lease = self.ownership.lease();
        lease.forget_waker(self.lost_waker.take());
        Poll::Ready(Ok(succeeded))
    }
}

impl Running {
    /// Returns whether the longest hold is over for a body that goes on after the loss of its lock.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let limit = match &mut self.limit {
            Some(limit) => limit,
            None => self.limit.insert(self.ownership.limit()),
        };
        Pin::new(limit).poll(context).is_ready()
    }
}

impl<C, F: Future> fmt::Debug for Run<C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            RunState::Acquiring(_) => "acquiring",
            RunState::Running(_) => "running",
            RunState::Releasing(_) => "releasing",
            RunState::Done => "done",
        };
        f.debug_struct("Run")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
