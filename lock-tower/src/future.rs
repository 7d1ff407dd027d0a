//! The future of one request.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use lock_core::LockKey;
use pin_project_lite::pin_project;
use tokio::runtime::Handle;
use tower_service::Service;

use crate::body::ResponseBody;
use crate::context::LockContext;
use crate::key::{Keying, NoKey};
use crate::options::Disconnect;
use crate::policy::Policy;
use crate::probe::Probing;
use crate::record::Stopwatch;
use crate::rejection::Rejection;
use crate::streaming::Streaming;
use crate::taking::{BoxFuture, Taking};
use crate::tenure::{Shared, Tenure};
use crate::work::{Done, Work};

pin_project! {
    /// The future of [`LockService`](crate::LockService).
    ///
    /// # Cancel safety
    ///
    /// Dropped before the lock is there, the handler does not run, and no key is left behind.
    /// Dropped after that, what happens to the handler and its lock is what
    /// [`LockLayer::on_disconnect`](crate::LockLayer::on_disconnect) says; by default the handler
    /// goes on in a task of its own, and the lock is given back when it has ended.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        state: State<S, B>,
    }

    impl<S, B> PinnedDrop for ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        fn drop(this: Pin<&mut Self>) {
            if let StateProjection::Working { running } = this.project().state.project()
                && let Some(running) = running.take()
            {
                running.lose_client();
            }
        }
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, B>
    where
        S: Service<Request<B>>,
    {
        /// Its key is being made.
        Keying { keying: Keying<B>, ready: Option<Ready<S>> },
        /// Not locked at all.
        Passing { future: Pin<Box<S::Future>> },
        Refused { response: Option<Box<Response<Bytes>>> },
        Acquiring { taking: Taking, asked: Stopwatch, work: Option<Work<S, B>> },
        Working { running: Option<Running<S::Response, S::Error>> },
        Done,
    }
}

/// The handler, for as long as its request is there.
struct Running<T, E> {
    work: BoxFuture<Done<T, E>>,
    /// Where it goes on if the request is dropped, and how: only here it is known that it can.
    runtime: Option<Handle>,
    go_on: fn(&Handle, BoxFuture<Done<T, E>>),
    /// Whether it is being polled: still so when it is dropped, it has panicked.
    polled: bool,
    lock: Arc<Shared>,
    policy: Arc<Policy>,
}

impl<S, B> ResponseFuture<S, B>
where
    S: Service<Request<B>>,
{
    pub(crate) fn keying(keying: Keying<B>, ready: Ready<S>) -> Self {
        let ready = Some(ready);
        Self {
            state: State::Keying { keying, ready },
        }
    }

    pub(crate) fn passing(future: S::Future) -> Self {
        let future = Box::pin(future);
        Self {
            state: State::Passing { future },
        }
    }

    /// From where the key is known, or known not to be there.
    pub(crate) fn keyed(ready: Ready<S>, request: Request<B>, key: Result<LockKey, NoKey>) -> Self {
        Self {
            state: State::keyed(ready, request, key),
        }
    }

    pub(crate) fn refused(response: Response<Bytes>) -> Self {
        let response = Some(Box::new(response));
        Self {
            state: State::Refused { response },
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
                StateProjection::Keying { keying, ready } => {
                    let (request, key) = ready!(keying.as_mut().poll(context));
                    let ready = ready.take().expect("a key is made once");
                    State::keyed(ready, request, key)
                }
                StateProjection::Passing { future } => {
                    let result = ready!(future.as_mut().poll(context));
                    return Poll::Ready(result.map(untouched));
                }
                StateProjection::Refused { response } => {
                    let response = response.take().expect(POLLED_AGAIN);
                    return Poll::Ready(Ok(response.map(ResponseBody::refusal)));
                }
                StateProjection::Acquiring {
                    taking,
                    asked,
                    work,
                } => {
                    let waiting = work.as_ref().expect(GRANTED_ONCE);
                    let taken = waiting.span.in_scope(|| Pin::new(taking).poll(context));
                    let taken = ready!(taken);
                    let work = work.take().expect(GRANTED_ONCE);
                    match taken {
                        Ok(locks) => {
                            let policy = Arc::clone(&work.policy);
                            policy.record.granted(locks.fell_back, *asked);
                            let ticket = policy.in_flight.enter(policy.record);
                            let tenure = Tenure::new(locks, &policy, ticket, &work.request);
                            let lock = Arc::clone(tenure.shared());
                            let running = Running {
                                work: work.start(tenure),
                                runtime: Handle::try_current().ok(),
                                go_on: |runtime, work| drop(runtime.spawn(work)),
                                polled: false,
                                lock,
                                policy,
                            };
                            State::Working {
                                running: Some(running),
                            }
                        }
                        Err(error) => work.without_lock(Rejection::from(&error)),
                    }
                }
                StateProjection::Working { running } => {
                    let working = running.as_mut().expect(POLLED_AGAIN);
                    working.polled = true;
                    let polled = working.work.as_mut().poll(context);
                    working.polled = false;
                    let Done { result, tenure } = ready!(polled);
                    let release_timeout = working.policy.release_timeout;
                    // From here on it was not left by its client.
                    *running = None;
                    this.state.set(State::Done);
                    return Poll::Ready(result.map(|response| {
                        let lock = tenure.map(|tenure| Streaming::new(tenure, release_timeout));
                        response.map(|body| ResponseBody::inner(body, lock))
                    }));
                }
                StateProjection::Done => panic!("{POLLED_AGAIN}"),
            };
            this.state.set(next);
        }
    }
}

const POLLED_AGAIN: &str = "`ResponseFuture` was polled after it was done";
const GRANTED_ONCE: &str = "the lock is granted once";

/// The service that was found ready, while the key of its request is made.
pub(crate) struct Ready<S> {
    pub(crate) inner: S,
    pub(crate) policy: Arc<Policy>,
}

impl<S, B> State<S, B>
where
    S: Service<Request<B>>,
{
    fn keyed(ready: Ready<S>, request: Request<B>, key: Result<LockKey, NoKey>) -> Self {
        let Ready { inner, policy } = ready;
        let (parts, body) = request.into_parts();
        if let Some(probing) = parts.extensions.get::<Probing>() {
            let response = Some(Box::new(probing.answer(&policy, &parts, key)));
            return Self::Refused { response };
        }
        policy.watch(&parts, &key);
        let taking = match (policy.fault(), key) {
            (Some(error), _) => Err(Rejection::from(error)),
            (None, Ok(key)) if policy.holds_already(&parts, &key) => Err(policy.record.twice()),
            (None, Ok(key)) => Ok(policy.take(key)),
            (None, Err(no_key)) => Err(Rejection::from(no_key)),
        };
        let work = Work {
            span: policy.span(),
            policy,
            inner,
            request: Request::from_parts(parts, body),
        };
        match taking {
            Ok(taking) => Self::Acquiring {
                taking,
                asked: Stopwatch::start(),
                work: Some(work),
            },
            Err(rejection) => work.without_lock(rejection),
        }
    }
}

impl<S, B> Work<S, B>
where
    S: Service<Request<B>>,
{
    /// Refused, or run as if the layer were not there.
    fn without_lock(mut self, rejection: Rejection) -> State<S, B> {
        let (mut parts, body) = self.request.into_parts();
        if let Some(response) = self.policy.judge(rejection, &parts) {
            let response = Some(Box::new(response));
            return State::Refused { response };
        }
        let context = LockContext::unlocked(&parts.extensions);
        parts.extensions.insert(context);
        let future = Box::pin(self.inner.call(Request::from_parts(parts, body)));
        State::Passing { future }
    }
}

impl<T, E> Running<T, E> {
    /// The request was dropped while its handler ran, or while its answer was on the way.
    fn lose_client(self) {
        if self.polled {
            // A panic goes on where it would have without this layer; its handler is gone already.
            return;
        }
        self.policy.record.disconnected();
        match (self.policy.disconnect, self.runtime) {
            (Disconnect::RunToEnd, Some(runtime)) => (self.go_on)(&runtime, self.work),
            // Without a runtime there is nobody to run it.
            (Disconnect::RunToEnd, None) | (Disconnect::Release, _) => {}
            (Disconnect::HoldUntilTtl, _) => self.lock.ask_at_least(self.policy.ttl),
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
            State::Keying { .. } => "keying",
            State::Passing { .. } => "passing",
            State::Refused { .. } => "refused",
            State::Acquiring { .. } => "acquiring",
            State::Working { .. } => "working",
            State::Done => "done",
        };
        f.debug_struct("ResponseFuture")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
