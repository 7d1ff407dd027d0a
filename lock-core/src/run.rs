//! Running a body under a lock.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::error::Error;
use crate::handle::LockHandle;
use crate::lease::Loss;
use crate::options::{OnLost, ReleaseMode};
use crate::reentry::Level;
use crate::request::Taking;
use crate::store::BoxFuture;
use crate::tenure::Tenure;

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
        // Whether the output says that the work is done, and a cooldown counts.
        succeeded: fn(&F::Output) -> bool,
        on_lost: OnLost,
        release: ReleaseMode,
    }
}

pin_project! {
    #[project = StateProjection]
    // The body comes before the tenure: that is the order in which they are dropped.
    enum State<C, F: Future> {
        Taking { taking: Taking<Tenure>, body: Option<C> },
        Running { #[pin] body: Option<F>, tenure: Option<Tenure>, level: Arc<Level>, lost_seat: Option<u32> },
        Releasing { release: BoxFuture<'static, Result<(), Error>>, output: Option<F::Output> },
        Done,
    }
}

impl<C, F> Run<C, F>
where
    C: FnOnce(LockHandle) -> F,
    F: Future,
{
    pub(crate) fn new(
        taking: Taking<Tenure>,
        body: C,
        succeeded: fn(&F::Output) -> bool,
        on_lost: OnLost,
        release: ReleaseMode,
    ) -> Self {
        Self {
            state: State::Taking {
                taking,
                body: Some(body),
            },
            succeeded,
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
                StateProjection::Taking { taking, body } => {
                    let taken = ready!(taking.poll(context));
                    match (taken, body.take()) {
                        (Ok(tenure), Some(body)) => {
                            let level = tenure.level();
                            let body = level.within(|| body(tenure.handle()));
                            State::Running {
                                body: Some(body),
                                tenure: Some(tenure),
                                level,
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
                    tenure,
                    level,
                    lost_seat,
                } => {
                    let held = tenure.as_mut().expect("a running body has its tenure");
                    let polled = poll_body(body, held, level, lost_seat, *this.on_lost, context);
                    let outcome = ready!(polled);
                    let tenure = tenure.take().expect("a running body has its tenure");
                    match outcome {
                        Err(loss) => {
                            let error = tenure.loss_error(loss);
                            drop(tenure);
                            this.state.set(State::Done);
                            return Poll::Ready(Err(error));
                        }
                        Ok(output) => {
                            let succeeded = (this.succeeded)(&output);
                            match tenure.end(succeeded, *this.release) {
                                None => {
                                    this.state.set(State::Done);
                                    return Poll::Ready(Ok(output));
                                }
                                Some(release) => State::Releasing {
                                    release,
                                    output: Some(output),
                                },
                            }
                        }
                    }
                }
                StateProjection::Releasing { release, output } => {
                    if let Err(error) = ready!(release.as_mut().poll(context)) {
                        // The work is done: nothing that happens to the release changes its result.
                        tell_of(&error);
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

/// Apart, so that it is compiled once and not for every body.
#[cold]
fn tell_of(error: &Error) {
    tracing::warn!(%error, "a lock was not released as it should be");
}

/// Polls the body, having looked at the clock first. Whatever the outcome is, the body is dropped
/// when this answers it.
fn poll_body<F: Future>(
    mut body: Pin<&mut Option<F>>,
    tenure: &mut Tenure,
    level: &Arc<Level>,
    lost_seat: &mut Option<u32>,
    on_lost: OnLost,
    context: &mut Context<'_>,
) -> Poll<Result<F::Output, Loss>> {
    let lost = tenure.poll_lost(lost_seat, context);
    // A hold that reached its limit ends whatever `on_lost` says: that is what the limit is for.
    if let Some(loss) = lost.filter(|loss| on_lost == OnLost::Cancel || *loss == Loss::MaxHold) {
        drop_body(body, tenure);
        return Poll::Ready(Err(loss));
    }
    // Entered by hand and not by closures: those would be compiled anew, and several times, for every
    // body there is.
    let polled = {
        let _in_span = tenure.enter_span();
        let _inside = level.enter();
        let body = body.as_mut().as_pin_mut();
        body.expect("a body that is done is not polled again")
            .poll(context)
    };
    let output = ready!(polled);
    drop_body(body, tenure);
    tenure.forget_waker(lost_seat.take());
    Poll::Ready(Ok(output))
}

/// Before the lock is given back, always.
fn drop_body<F>(mut body: Pin<&mut Option<F>>, tenure: &Tenure) {
    let _in_span = tenure.enter_span();
    body.set(None);
}

impl<C, F: Future> fmt::Debug for Run<C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Taking { .. } => "taking",
            State::Running { .. } => "running",
            State::Releasing { .. } => "releasing",
            State::Done => "done",
        };
        f.debug_struct("Run")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
