//! Running a body under a lock.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::error::Error;
use crate::guard::{LockGuard, LockHandle};
use crate::options::{OnLost, ReleaseMode};
use crate::request::Acquire;
use crate::store::BoxFuture;

pin_project! {
    /// The future of [`LockRequest::run`](crate::LockRequest::run) and
    /// [`run_with`](crate::LockRequest::run_with): acquires, polls the body, releases.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any point, the body is dropped first and the lock given back after it, in the
    /// background.
    #[must_use = "futures do nothing unless polled"]
    pub struct Run<C, F: Future> {
        #[pin]
        state: State<C, F>,
        on_lost: OnLost,
        release: ReleaseMode,
    }
}

pin_project! {
    #[project = StateProjection]
    // The body comes before the guard: that is the order in which they are dropped.
    enum State<C, F: Future> {
        Acquiring { acquire: Acquire, body: Option<C> },
        Running { #[pin] body: Option<F>, guard: Option<LockGuard>, lost_seat: Option<u32> },
        Releasing { release: BoxFuture<'static, Result<(), Error>>, output: Option<F::Output> },
        Done,
    }
}

impl<C, F> Run<C, F>
where
    C: FnOnce(LockHandle) -> F,
    F: Future,
{
    pub(crate) fn new(acquire: Acquire, body: C, on_lost: OnLost, release: ReleaseMode) -> Self {
        Self {
            state: State::Acquiring {
                acquire,
                body: Some(body),
            },
            on_lost,
            release,
        }
    }
}

impl<C, F> Future for Run<C, F>
where
    C: FnOnce(LockHandle) -> F,
    F: Future,
{
    type Output = Result<F::Output, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProjection::Acquiring { acquire, body } => {
                    let acquired = ready!(Pin::new(acquire).poll(context));
                    let body = body.take();
                    match (acquired, body) {
                        (Ok(guard), Some(body)) => {
                            let body = body(guard.handle());
                            State::Running {
                                body: Some(body),
                                guard: Some(guard),
                                lost_seat: None,
                            }
                        }
                        (Err(error), body) => {
                            // The arguments of the body go before the caller hears of it.
                            drop(body);
                            this.state.set(State::Done);
                            return Poll::Ready(Err(error));
                        }
                        (Ok(_), None) => {
                            unreachable!("the body is taken once, when the lock is there")
                        }
                    }
                }
                StateProjection::Running {
                    body,
                    guard,
                    lost_seat,
                } => {
                    let held = guard.as_ref().expect("a running body has its guard");
                    let polled = poll_body(body, held, lost_seat, *this.on_lost, context);
                    let outcome = ready!(polled);
                    let guard = guard.take().expect("a running body has its guard");
                    match (outcome, *this.release) {
                        (Err(error), _) => {
                            drop(guard);
                            this.state.set(State::Done);
                            return Poll::Ready(Err(error));
                        }
                        (Ok(output), ReleaseMode::Background) => {
                            guard.release_in_background();
                            this.state.set(State::Done);
                            return Poll::Ready(Ok(output));
                        }
                        (Ok(output), ReleaseMode::Await) => State::Releasing {
                            release: Box::pin(guard.release()),
                            output: Some(output),
                        },
                    }
                }
                StateProjection::Releasing { release, output } => {
                    if let Err(error) = ready!(release.as_mut().poll(context)) {
                        // The work is done: nothing that happens to the release changes its result.
                        tracing::warn!(%error, "a lock was not released as it should be");
                    }
                    let output = output
                        .take()
                        .expect("the output is taken once, with the release");
                    this.state.set(State::Done);
                    return Poll::Ready(Ok(output));
                }
                StateProjection::Done => panic!("`Run` was polled after it was done"),
            };
            this.state.set(next);
        }
    }
}

/// Polls the body, having looked at the clock first. Whatever the outcome is, the body is dropped
/// when this answers it.
fn poll_body<F: Future>(
    mut body: Pin<&mut Option<F>>,
    guard: &LockGuard,
    lost_seat: &mut Option<u32>,
    on_lost: OnLost,
    context: &mut Context<'_>,
) -> Poll<Result<F::Output, Error>> {
    let lost = guard.poll_lost(lost_seat, context);
    // A hold that reached its limit ends whatever `on_lost` says: that is what the limit is for.
    if let Some(loss) =
        lost.filter(|loss| on_lost == OnLost::Cancel || *loss == crate::lease::Loss::MaxHold)
    {
        drop_body(body, guard);
        return Poll::Ready(Err(guard.loss_error(loss)));
    }
    let polled = guard.in_span(|| {
        let body = body.as_mut().as_pin_mut();
        body.expect("a body that is done is not polled again")
            .poll(context)
    });
    let output = ready!(polled);
    drop_body(body, guard);
    guard.forget_waker(lost_seat.take());
    Poll::Ready(Ok(output))
}

/// Before the lock is given back, always.
fn drop_body<F>(mut body: Pin<&mut Option<F>>, guard: &LockGuard) {
    guard.in_span(|| body.set(None));
}

impl<C, F: Future> fmt::Debug for Run<C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Acquiring { .. } => "acquiring",
            State::Running { .. } => "running",
            State::Releasing { .. } => "releasing",
            State::Done => "done",
        };
        f.debug_struct("Run")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
