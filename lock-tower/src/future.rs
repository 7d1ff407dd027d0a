//! The future of one request.

use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use lock_core::Acquire;
use pin_project_lite::pin_project;
use tokio::task::{JoinError, JoinHandle};
use tower_service::Service;

use crate::body::ResponseBody;
use crate::rejection::Rejection;
use crate::work::Work;

pin_project! {
    /// The future of [`LockService`](crate::LockService).
    ///
    /// # Cancel safety
    ///
    /// Dropped before the lock is there, the handler does not run, and no key is left behind.
    /// Dropped after that, the handler runs to its end in its own task, and the lock is given back
    /// when it has.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        state: State<S, B>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, B>
    where
        S: Service<Request<B>>,
    {
        /// Not locked at all.
        Passing { #[pin] future: S::Future },
        Rejected { rejection: Option<Rejection> },
        Acquiring { acquire: Acquire, work: Option<Work<S, B>> },
        Working { task: JoinHandle<Result<S::Response, S::Error>> },
    }
}

impl<S, B> ResponseFuture<S, B>
where
    S: Service<Request<B>>,
{
    pub(crate) fn passing(future: S::Future) -> Self {
        Self {
            state: State::Passing { future },
        }
    }

    pub(crate) fn rejected(rejection: Rejection) -> Self {
        let rejection = Some(rejection);
        Self {
            state: State::Rejected { rejection },
        }
    }

    pub(crate) fn acquiring(acquire: Acquire, work: Work<S, B>) -> Self {
        let work = Some(work);
        Self {
            state: State::Acquiring { acquire, work },
        }
    }
}

impl<S, B, R> Future for ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
    R: Send + 'static,
{
    type Output = Result<Response<ResponseBody<R>>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProjection::Passing { future } => {
                    let result = ready!(future.poll(context));
                    return Poll::Ready(result.map(|response| response.map(ResponseBody::inner)));
                }
                StateProjection::Rejected { rejection } => {
                    let rejection = rejection
                        .take()
                        .expect("`ResponseFuture` was polled after it was done");
                    return Poll::Ready(Ok(rejection.into_response()));
                }
                StateProjection::Acquiring { acquire, work } => {
                    match ready!(Pin::new(acquire).poll(context)) {
                        Ok(guard) => {
                            let work = work.take().expect("the lock is granted once");
                            let task = work.start(guard);
                            State::Working { task }
                        }
                        Err(error) => {
                            let rejection = Some(Rejection::from(&error));
                            State::Rejected { rejection }
                        }
                    }
                }
                StateProjection::Working { task } => {
                    return Poll::Ready(match ready!(Pin::new(task).poll(context)) {
                        Ok(result) => result.map(|response| response.map(ResponseBody::inner)),
                        Err(error) => Ok(ended_without_answer(error).into_response()),
                    });
                }
            };
            this.state.set(next);
        }
    }
}

/// A panic goes on where it would have without this layer.
fn ended_without_answer(error: JoinError) -> Rejection {
    match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        // Nobody aborts the task: its runtime was shut down under it.
        Err(_) => Rejection::interrupted(),
    }
}

impl<S, B> fmt::Debug for ResponseFuture<S, B>
where
    S: Service<Request<B>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Passing { .. } => "passing",
            State::Rejected { .. } => "rejected",
            State::Acquiring { .. } => "acquiring",
            State::Working { .. } => "working",
        };
        f.debug_struct("ResponseFuture")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
