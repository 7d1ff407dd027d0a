//! The future of one request, from its key to its response.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use lock_core::{Error, OperationId};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::body::{ReadyBody, ResponseBody};
use super::body_lock::BodyLock;
use super::handler::{Handled, PendingCall};
use super::running::RunningHandler;
use crate::key::{KeyFailure, KeyFuture, RequestKeys};
use crate::lock::{Acquiring, BoxFuture, GrantedLocks, LockContext, RequestLock, operation};
use crate::policy::Policy;
use crate::probe::Probing;
use crate::rejection::Rejection;
use crate::telemetry::Stopwatch;

pin_project! {
    /// The future of [`LockService`](crate::LockService).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before the lock is granted, the handler does not run and no key
    /// stays behind. If it is dropped later,
    /// [`LockLayer::on_disconnect`](crate::LockLayer::on_disconnect) decides what happens to the
    /// handler and its lock. By default the handler runs on in a task of its own, and the lock is
    /// released when the handler has ended.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        state: FutureState<S, B>,
    }

    impl<S, B> PinnedDrop for ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        fn drop(this: Pin<&mut Self>) {
            if let FutureProjection::Handling { running } = this.project().state.project()
                && let Some(running) = running.take()
            {
                running.disconnect();
            }
        }
    }
}

pin_project! {
    #[project = FutureProjection]
    enum FutureState<S, B>
    where
        S: Service<Request<B>>,
    {
        /// The key is being made.
        MakingKey { making: KeyFuture<B>, ready: Option<ReadyService<S, B>> },
        /// The layer does not lock the method, so the request passes as without the layer.
        Passing { future: Pin<Box<S::Future>> },
        Refused { response: Option<Box<Response<Bytes>>> },
        /// The request is compared with the first one, whose answer was recorded.
        Answering { answer: BoxFuture<Response<ReadyBody>> },
        Acquiring { acquiring: Acquiring, waited: Stopwatch, call: Option<PendingCall<S, B>> },
        Handling { running: Option<RunningHandler<S::Response, S::Error>> },
        Done,
    }
}

impl<S, B> ResponseFuture<S, B>
where
    S: Service<Request<B>>,
{
    pub(crate) fn making_key(making: KeyFuture<B>, ready: ReadyService<S, B>) -> Self {
        let ready = Some(ready);
        Self {
            state: FutureState::MakingKey { making, ready },
        }
    }

    pub(crate) fn passing(future: S::Future) -> Self {
        let future = Box::pin(future);
        Self {
            state: FutureState::Passing { future },
        }
    }

    pub(crate) fn refused(response: Response<Bytes>) -> Self {
        let response = Some(Box::new(response));
        Self {
            state: FutureState::Refused { response },
        }
    }
}

impl<S, B, R> ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
    R: Send + 'static,
{
    /// Continues where the key was made, or could not be made.
    pub(crate) fn with_key(
        ready: ReadyService<S, B>,
        request: Request<B>,
        keys: Result<RequestKeys, KeyFailure>,
    ) -> Self {
        Self {
            state: FutureState::with_key(ready, request, keys),
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
                FutureProjection::MakingKey { making, ready } => {
                    let (request, key) = ready!(making.as_mut().poll(context));
                    let ready = ready.take().expect("a key is made once");
                    FutureState::with_key(ready, request, key)
                }
                FutureProjection::Passing { future } => {
                    let result = ready!(future.as_mut().poll(context));
                    return Poll::Ready(result.map(untouched));
                }
                FutureProjection::Refused { response } => {
                    let response = response.take().expect(POLLED_AGAIN);
                    return Poll::Ready(Ok(response.map(ResponseBody::ready)));
                }
                FutureProjection::Answering { answer } => {
                    let response = ready!(answer.as_mut().poll(context));
                    this.state.set(FutureState::Done);
                    return Poll::Ready(Ok(response.map(ResponseBody::ready)));
                }
                FutureProjection::Acquiring {
                    acquiring,
                    waited,
                    call,
                } => {
                    let span = &call.as_ref().expect(GRANTED_ONCE).span;
                    let acquired = span.in_scope(|| Pin::new(acquiring).poll(context));
                    let acquired = ready!(acquired);
                    let call = call.take().expect(GRANTED_ONCE);
                    match acquired {
                        Ok(locks) => {
                            call.policy.telemetry.granted(locks.fell_back, *waited);
                            let running = Some(call.run(locks));
                            FutureState::Handling { running }
                        }
                        Err(error) => call.refused(&error),
                    }
                }
                FutureProjection::Handling { running } => {
                    let handling = running.as_mut().expect(POLLED_AGAIN);
                    handling.polled = true;
                    let polled = handling.handler.as_mut().poll(context);
                    handling.polled = false;
                    let Handled { result, lock } = ready!(polled);
                    let release_timeout = handling.policy.release_timeout;
                    // A drop after the response is no disconnect.
                    *running = None;
                    this.state.set(FutureState::Done);
                    return Poll::Ready(result.map(|response| {
                        let lock = lock.map(|lock| BodyLock::new(lock, release_timeout));
                        response.map(|body| ResponseBody::inner(body, lock))
                    }));
                }
                FutureProjection::Done => panic!("{POLLED_AGAIN}"),
            };
            this.state.set(next);
        }
    }
}

const POLLED_AGAIN: &str = "`ResponseFuture` was polled after its completion";
const GRANTED_ONCE: &str = "the lock is granted once";

/// The service that was polled ready, and the policy of its layer.
pub(crate) struct ReadyService<S, B> {
    pub(crate) inner: S,
    pub(crate) policy: Arc<Policy>,
    pub(crate) answer_duplicate: Option<AnswerDuplicate<B>>,
}

/// Answers a request whose refusal carries the recorded answer, and otherwise returns the request.
pub(crate) type AnswerDuplicate<B> =
    fn(&Arc<Policy>, &Error, Request<B>) -> Result<BoxFuture<Response<ReadyBody>>, Request<B>>;

impl<S, B, R> FutureState<S, B>
where
    S: Service<Request<B>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
    R: Send + 'static,
{
    fn with_key(
        ready: ReadyService<S, B>,
        request: Request<B>,
        keys: Result<RequestKeys, KeyFailure>,
    ) -> Self {
        let ReadyService {
            inner,
            policy,
            answer_duplicate,
        } = ready;
        let (parts, body) = request.into_parts();
        if let Some(probing) = parts.extensions.get::<Probing>() {
            let response = Some(Box::new(probing.answer(&policy, &parts, keys)));
            return Self::Refused { response };
        }
        policy.check_placement(&parts, &keys);
        let operation = match &keys {
            // The error of a refused acquire names one of the keys.
            Ok(keys @ RequestKeys::All(_)) => operation::of_request(&policy.locks, keys),
            _ => None,
        };
        let acquiring = match (policy.invalid_settings(), keys) {
            (Some(error), _) => Err(Rejection::from(error)),
            (None, Ok(keys)) if policy.held_by_outer_layer(&parts, &keys) => {
                Err(policy.telemetry.held_by_outer_layer())
            }
            (None, Ok(keys)) => Ok(policy.acquire(keys, &parts.method)),
            (None, Err(failure)) => Err(Rejection::from(failure)),
        };
        let call = PendingCall {
            span: policy.span(),
            policy,
            inner,
            request: Request::from_parts(parts, body),
            answer_duplicate,
            operation,
        };
        match acquiring {
            Ok(acquiring) => Self::Acquiring {
                acquiring,
                waited: Stopwatch::start(),
                call: Some(call),
            },
            Err(rejection) => call.without_lock(rejection, None),
        }
    }
}

impl<S, B, R> PendingCall<S, B>
where
    S: Service<Request<B>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
    R: Send + 'static,
{
    /// Starts the handler, which owns the request's locks from here on.
    fn run(self, locks: GrantedLocks) -> RunningHandler<Response<R>, S::Error> {
        let policy = Arc::clone(&self.policy);
        let outer = LockContext::innermost_lock(self.request.extensions()).cloned();
        let lock = RequestLock::new(
            locks,
            &policy.locks,
            policy.telemetry,
            &policy.long_holds,
            policy.in_flight.enter(policy.telemetry),
            &self.request,
            outer.clone(),
        );
        if policy.has_waiters() {
            lock.shared().answers_waiters();
        }
        let shared = Arc::clone(lock.shared());
        RunningHandler::new(self.start(lock), Some(shared), outer, policy)
    }

    /// Handles a request that was not granted its lock.
    fn refused(mut self, error: &Error) -> FutureState<S, B> {
        if let Some(answer_duplicate) = self.answer_duplicate {
            match answer_duplicate(&self.policy, error, self.request) {
                Ok(answer) => return FutureState::Answering { answer },
                Err(request) => self.request = request,
            }
        }
        self.without_lock(Rejection::from(error), error.key())
    }

    /// Refuses the request, or runs it without a lock if the policy permits that.
    fn without_lock(mut self, rejection: Rejection, key: Option<&str>) -> FutureState<S, B> {
        let (mut parts, body) = self.request.into_parts();
        if let Some(response) = self.policy.refuse_or_pass(rejection, &parts) {
            let response = Some(Box::new(response));
            return FutureState::Refused { response };
        }
        let one_key = key.map(|key| OperationId::new(self.policy.locks.namespace(), [key]));
        // Without a key there is no error of the store.
        let operation = one_key.map(|one| self.operation.unwrap_or(one));
        let outer = LockContext::innermost_lock(&parts.extensions).cloned();
        let context = LockContext::unlocked(&parts.extensions, operation);
        let context = self.policy.completed(context);
        parts.extensions.insert(context);
        self.request = Request::from_parts(parts, body);
        let policy = Arc::clone(&self.policy);
        let running = RunningHandler::new(self.start_unlocked(), None, outer, policy);
        FutureState::Handling {
            running: Some(running),
        }
    }
}

fn untouched<R>(response: Response<R>) -> Response<ResponseBody<R>> {
    response.map(|body| ResponseBody::inner(body, None))
}

impl<S, B> fmt::Debug for ResponseFuture<S, B>
where
    S: Service<Request<B>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            FutureState::MakingKey { .. } => "making the key",
            FutureState::Passing { .. } => "passing",
            FutureState::Refused { .. } => "refused",
            FutureState::Answering { .. } => "answering",
            FutureState::Acquiring { .. } => "acquiring",
            FutureState::Handling { .. } => "handling",
            FutureState::Done => "done",
        };
        f.debug_struct("ResponseFuture")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
