//! A request that has its lock: the handler, the cooldown, the release.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Request, Response};
use lock_core::LockScope;
use pin_project_lite::pin_project;
use tower_service::Service;
use tracing::{Instrument, Span};

use crate::context::LockContext;
use crate::options::ReleaseAt;
use crate::policy::Policy;
use crate::taking::BoxFuture;
use crate::tenure::Tenure;

/// What waits for the lock.
pub(crate) struct Work<S, B> {
    pub(crate) inner: S,
    pub(crate) request: Request<B>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) span: Span,
}

/// What the handler has made, and the lock, if it is held until the body's end.
pub(crate) struct Done<T, E> {
    pub(crate) result: Result<T, E>,
    pub(crate) tenure: Option<Tenure>,
}

impl<S, B, R> Work<S, B>
where
    S: Service<Request<B>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
    R: Send + 'static,
{
    /// In a box, so that it can go on elsewhere: a server drops the future of a request whose client
    /// has gone, and a handler that was dropped half way would leave an order paid and not booked.
    pub(crate) fn start(self, tenure: Tenure) -> BoxFuture<Done<Response<R>, S::Error>> {
        let Self {
            inner,
            mut request,
            policy,
            span,
        } = self;
        let context = LockContext::locked(Arc::clone(tenure.shared()));
        request.extensions_mut().insert(context);
        // Inside the lock, so that what locks the same key in there enters it.
        let handler = tenure.shared().handle.scope(Handler::Ready {
            call: Some((inner, request)),
        });
        let working = Working {
            step: Step::Handling { handler },
            tenure: Some(tenure),
            policy,
        };
        Box::pin(working.instrument(span))
    }
}

pin_project! {
    // The tenure lives here and nowhere else: as long as the handler runs, the lock is renewed, and
    // however that ends, the lock is given back after the handler was dropped: the step comes first.
    struct Working<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        step: Step<S, B>,
        tenure: Option<Tenure>,
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

impl<S, B, R> Future for Working<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Output = Done<Response<R>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.step.as_mut().project() {
                StepProjection::Handling { handler } => {
                    let result = ready!(handler.poll(context));
                    this.step.set(Step::Over);
                    let tenure = this.tenure.take().expect(POLLED_AGAIN);
                    let result = decide(result, &tenure, this.policy);
                    if this.policy.release_at == ReleaseAt::BodyEnd && result.is_ok() {
                        let tenure = Some(tenure);
                        return Poll::Ready(Done { result, tenure });
                    }
                    Step::Releasing {
                        release: Box::pin(give_back(tenure, this.policy.release_timeout)),
                        result: Some(result),
                    }
                }
                StepProjection::Releasing { release, result } => {
                    ready!(release.as_mut().poll(context));
                    let result = result.take().expect(POLLED_AGAIN);
                    this.step.set(Step::Over);
                    return Poll::Ready(Done {
                        result,
                        tenure: None,
                    });
                }
                StepProjection::Over => panic!("{POLLED_AGAIN}"),
            };
            this.step.set(next);
        }
    }
}

const POLLED_AGAIN: &str = "a handler that is done is not polled again";

/// The handler has answered: the layer's cooldown for that.
fn decide<R, E>(
    result: Result<Response<R>, E>,
    tenure: &Tenure,
    policy: &Policy,
) -> Result<Response<R>, E> {
    let response = result?;
    let held_for = tenure.shared().handle.held_for();
    let (head, body) = response.into_parts();
    tenure.decide(policy.cooldown.after(&head, held_for));
    Ok(Response::from_parts(head, body))
}

pin_project! {
    // `call` may do the work itself, before it returns a future: it belongs into the lock's scope, and
    // so into a poll.
    #[project = HandlerProjection]
    enum Handler<S, B>
    where
        S: Service<Request<B>>,
    {
        Ready { call: Option<(S, Request<B>)> },
        // On the heap: unoptimized code would copy it into every frame between here and its poll.
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
            HandlerProjection::Ready { .. } => unreachable!("it was called just now"),
        }
    }
}

/// The work is done: nothing that happens to the release changes its answer. Dropped before the
/// store has answered, the release goes on in the background.
pub(crate) async fn give_back(tenure: Tenure, patience: Duration) {
    let outcome = match tenure.shared().release_within(patience).await {
        Some(Ok(())) => "released",
        Some(Err(error)) => error.code(),
        None => "background",
    };
    tenure.shared().record.released(outcome);
}
