//! Runs the handler of a request inside its lock, and then releases the lock.
//!
//! # Why the handler stays in the request's future
//!
//! The handler runs in a box that also owns the lock, so the handler is always dropped before its
//! lock is released. If the request is dropped, the layer spawns the box as a task of the request's
//! runtime, or drops it, as [`Disconnect`](crate::Disconnect) says. A task from the beginning would
//! cost every request a spawn, a wake-up and a task switch, although few requests lose their client.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use lock_core::{LockScope, OperationId};
use pin_project_lite::pin_project;
use tower_service::Service;
use tracing::{Instrument, Span};

use super::future::AnswerDuplicate;
use crate::lock::{BoxFuture, LockContext, RequestLock};
use crate::options::ReleaseAt;
use crate::policy::Policy;

/// Marks, in the extensions of a response, a body whose end the lock has to wait for.
///
/// A gRPC call has failed or succeeded when its trailers are there, so it holds its lock until then.
#[cfg(feature = "replay")]
#[derive(Clone)]
pub(crate) struct UntilBodyEnd;

/// A request that waits for its lock, and the service that will handle it.
pub(crate) struct PendingCall<S, B> {
    pub(crate) inner: S,
    pub(crate) request: Request<B>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) span: Span,
    pub(crate) answer_duplicate: Option<AnswerDuplicate<B>>,
    /// The number of a request with several keys.
    pub(crate) operation: Option<OperationId>,
}

/// The handler's result, and the lock if it is held until the end of the body.
pub(crate) struct Handled<T, E> {
    pub(crate) result: Result<T, E>,
    pub(crate) lock: Option<RequestLock>,
}

impl<S, B, R> PendingCall<S, B>
where
    S: Service<Request<B>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
    R: Send + 'static,
{
    /// Starts the handler in a box, so that it can run on after a disconnect.
    ///
    /// A server drops the future of a request when its client disconnects. A handler that was dropped
    /// halfway could leave an order paid but not recorded.
    pub(crate) fn start(self, lock: RequestLock) -> BoxFuture<Handled<Response<R>, S::Error>> {
        let Self {
            inner,
            mut request,
            policy,
            span,
            ..
        } = self;
        let context = LockContext::locked(request.extensions(), Arc::clone(lock.shared()));
        request.extensions_mut().insert(policy.completed(context));
        // The scope lets the handler enter this lock when it locks the same key again.
        let handler = lock.shared().handle.scope(Handler::Ready {
            call: Some((inner, request)),
        });
        let call = LockedCall {
            step: Step::Handling { handler },
            lock: Some(lock),
            policy,
        };
        Box::pin(call.instrument(span))
    }

    /// As [`start`](Self::start), without a lock: the handler runs on after a disconnect, and the shutdown waits for it.
    pub(crate) fn start_unlocked(self) -> BoxFuture<Handled<Response<R>, S::Error>> {
        let Self {
            inner,
            request,
            policy,
            span,
            ..
        } = self;
        let open = policy.in_flight.enter(policy.telemetry);
        let handler = Handler::Ready {
            call: Some((inner, request)),
        };
        let call = async move {
            let result = handler.await;
            drop(open);
            Handled { result, lock: None }
        };
        Box::pin(call.instrument(span))
    }
}

pin_project! {
    // The call is the only owner of the lock. It renews the lock while the handler runs. It drops
    // the handler before the lock, because the field `step` comes first.
    struct LockedCall<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        step: Step<S, B>,
        lock: Option<RequestLock>,
        policy: Arc<Policy>,
    }
}

pin_project! {
    #[project = StepProjection]
    enum Step<S, B>
    where
        S: Service<Request<B>>,
    {
        Handling { #[pin] handler: LockScope<Handler<S, B>> },
        Releasing { release: BoxFuture<()>, result: Option<Result<S::Response, S::Error>> },
        Over,
    }
}

impl<S, B, R> Future for LockedCall<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Output = Handled<Response<R>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.step.as_mut().project() {
                StepProjection::Handling { handler } => {
                    let result = ready!(handler.poll(context));
                    this.step.set(Step::Over);
                    let lock = this.lock.take().expect(POLLED_AGAIN);
                    let mut result = set_cooldown(result, &lock, this.policy);
                    if holds_until_body_end(&mut result, this.policy) {
                        let lock = Some(lock);
                        return Poll::Ready(Handled { result, lock });
                    }
                    Step::Releasing {
                        release: Box::pin(lock.release(this.policy.release_timeout)),
                        result: Some(result),
                    }
                }
                StepProjection::Releasing { release, result } => {
                    ready!(release.as_mut().poll(context));
                    let result = result.take().expect(POLLED_AGAIN);
                    this.step.set(Step::Over);
                    return Poll::Ready(Handled { result, lock: None });
                }
                StepProjection::Over => panic!("{POLLED_AGAIN}"),
            };
            this.step.set(next);
        }
    }
}

const POLLED_AGAIN: &str = "a handler is not polled after its completion";

/// Applies the layer's cooldown rule to the handler's response.
fn set_cooldown<R, E>(
    result: Result<Response<R>, E>,
    lock: &RequestLock,
    policy: &Policy,
) -> Result<Response<R>, E> {
    let response = result?;
    let (head, body) = response.into_parts();
    lock.set_rule_cooldown(policy.cooldown.after(&head));
    Ok(Response::from_parts(head, body))
}

fn holds_until_body_end<R, E>(result: &mut Result<Response<R>, E>, policy: &Policy) -> bool {
    let Ok(response) = result else {
        return false;
    };
    #[cfg(feature = "replay")]
    let marked = response.extensions_mut().remove::<UntilBodyEnd>().is_some();
    #[cfg(not(feature = "replay"))]
    let (marked, _) = (false, response);
    marked || policy.release_at == ReleaseAt::BodyEnd
}

pin_project! {
    // `call` may do work before it returns its future. That work belongs into the lock's scope, so
    // `call` runs inside the first poll.
    #[project = HandlerProjection]
    enum Handler<S, B>
    where
        S: Service<Request<B>>,
    {
        Ready { call: Option<(S, Request<B>)> },
        // The future is boxed, because an unoptimized build would copy it into every stack frame
        // between this one and its poll.
        Called { future: Pin<Box<S::Future>>, inner: S },
    }
}

impl<S, B> Future for Handler<S, B>
where
    S: Service<Request<B>>,
{
    type Output = Result<S::Response, S::Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let HandlerProjection::Ready { call } = self.as_mut().project() {
            let (mut inner, request) = call.take().expect(POLLED_AGAIN);
            let future = Box::pin(inner.call(request));
            self.set(Handler::Called { future, inner });
        }
        match self.project() {
            HandlerProjection::Called { future, .. } => future.as_mut().poll(context),
            HandlerProjection::Ready { .. } => unreachable!("the service was called above"),
        }
    }
}
