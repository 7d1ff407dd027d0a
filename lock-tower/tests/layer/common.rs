//! Helpers for the tests of the layer: requests, readable responses, and a gate for handlers.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use lock_core::LockManager;
use lock_core::test_util::{ManualClock, TestStore};
use lock_tower::{LockContext, LockLayer, Rejection, RejectionKind};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::timeout;
use tower::{Service, ServiceExt, service_fn};

/// How long a test waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) type Body = Full<Bytes>;

pub(crate) const TEMPLATE: &str = "submit:<header.x-user-id>:<method>:<route>";

/// Makes a manager with its own store, and the means to control that store.
pub(crate) fn embedded() -> (LockManager, TestStore) {
    let locks = LockManager::in_memory();
    let store = locks.test_store().expect("an embedded store");
    (locks, store)
}

/// Makes a manager that waits for its store without a limit of its own.
pub(crate) async fn patient() -> (LockManager, TestStore) {
    let endless = Duration::from_secs(24 * 3600);
    let manager = LockManager::builder("memory:").operation_timeout(endless);
    let locks = manager.connect().await.expect("a manager");
    let store = locks.test_store().expect("an embedded store");
    (locks, store)
}

pub(crate) fn per_user_and_route(locks: &LockManager) -> LockLayer {
    LockLayer::template(locks.clone(), TEMPLATE).expect("a template that parses")
}

pub(crate) fn click(user: &str) -> Request<Body> {
    request(Method::POST, "/orders", user)
}

pub(crate) fn request(method: Method, path: &str, user: &str) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("x-user-id", user)
        .body(Body::default())
        .expect("a request")
}

pub(crate) fn answer(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::from("done"));
    *response.status_mut() = status;
    response
}

pub(crate) fn ok(status: StatusCode) -> Result<Response<Body>, Infallible> {
    Ok(answer(status))
}

/// The services of these tests, with the bounds that a server requires.
pub(crate) trait Handler:
    Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
    + Clone
    + Send
    + 'static
{
}

impl<S> Handler for S where
    S: Service<
            Request<Body>,
            Response = Response<Body>,
            Error = Infallible,
            Future: Send + 'static,
        > + Clone
        + Send
        + 'static
{
}

/// Makes a service that responds with `status`.
pub(crate) fn answers(status: StatusCode) -> impl Handler {
    service_fn(move |_| async move { ok(status) })
}

/// Makes a service that waits at the gate and then responds with 200.
pub(crate) fn gated(gate: &Gate) -> impl Handler {
    let gate = gate.clone();
    service_fn(move |_| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            ok(StatusCode::OK)
        }
    })
}

/// A response that was read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<u64>,
    pub(crate) content_type: Option<String>,
    pub(crate) rejection: Option<Rejection>,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn kind(&self) -> Option<RejectionKind> {
        self.rejection.as_ref().map(Rejection::kind)
    }

    pub(crate) fn problem(&self) -> serde_json::Value {
        serde_json::from_str(&self.text).expect("a problem in JSON")
    }
}

/// Sends a request to a clone of the service, as a server does.
pub(crate) async fn send<S, B>(service: &S, request: Request<Body>) -> Answer
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone,
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let response = service.clone().oneshot(request);
    let response = timeout(PATIENCE, response).await.expect("an answer");
    read(response.unwrap_or_else(|never| match never {})).await
}

pub(crate) async fn read<B>(response: Response<B>) -> Answer
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let (parts, body) = response.into_parts();
    let text = body.collect().await.expect("a body").to_bytes();
    let header = |name| parts.headers.get(name)?.to_str().ok();
    Answer {
        status: parts.status,
        retry_after: header(header::RETRY_AFTER).map(|value| value.parse().expect("whole seconds")),
        content_type: header(header::CONTENT_TYPE).map(str::to_owned),
        rejection: parts.extensions.get().cloned(),
        text: String::from_utf8(text.to_vec()).expect("text"),
    }
}

/// Returns the lock of a request, as its handler sees it.
pub(crate) fn context<B>(request: &Request<B>) -> LockContext {
    let context = request.extensions().get::<LockContext>();
    context
        .cloned()
        .expect("behind a lock layer a request has a context")
}

/// Makes a manager whose clock moves only when the test advances it.
pub(crate) async fn with_clock() -> (LockManager, ManualClock) {
    let clock = ManualClock::new();
    let manager = LockManager::builder("memory:").clock(clock.clone());
    (manager.connect().await.expect("a manager"), clock)
}

/// Polls a future at most `polls` times and drops it.
pub(crate) async fn polled_and_dropped<F: Future>(future: F, polls: usize) {
    let mut future = Box::pin(future);
    for _ in 0..polls {
        if poll_once(future.as_mut()).is_ready() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

pub(crate) fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Waits for what must come.
pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.expect("it comes in time")
}

pub(crate) type Sent = Result<Frame<Bytes>, &'static str>;

/// The body of a test's requests and responses.
pub(crate) struct Fed(pub(crate) mpsc::UnboundedReceiver<Sent>);

impl http_body::Body for Fed {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Sent>> {
        self.0.poll_recv(context)
    }
}

/// A body that says that its last frame is the last one.
pub(crate) struct Ends {
    pub(crate) frames: VecDeque<Frame<Bytes>>,
    pub(crate) length: Option<u64>,
}

impl http_body::Body for Ends {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.frames.pop_front().map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map(SizeHint::with_exact).unwrap_or_default()
    }
}

pub(crate) fn data(text: &'static str) -> Sent {
    Ok(Frame::data(Bytes::from_static(text.as_bytes())))
}

/// Blocks handlers until the test lets them pass, and counts them.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Inner>);

struct Inner {
    entered: watch::Sender<usize>,
    ended: watch::Sender<usize>,
    permits: Semaphore,
}

impl Gate {
    pub(crate) fn closed() -> Self {
        Self(Arc::new(Inner {
            entered: watch::Sender::new(0),
            ended: watch::Sender::new(0),
            permits: Semaphore::new(0),
        }))
    }

    /// Waits at the gate. A cancelled handler never counts as ended.
    pub(crate) async fn pass(&self) {
        self.0.entered.send_modify(|count| *count += 1);
        let permit = self.0.permits.acquire().await.expect("never closed");
        permit.forget();
        self.0.ended.send_modify(|count| *count += 1);
    }

    pub(crate) fn let_through(&self, handlers: usize) {
        self.0.permits.add_permits(handlers);
    }

    /// Waits until this many handlers have reached the gate.
    pub(crate) async fn entered(&self, handlers: usize) {
        let mut entered = self.0.entered.subscribe();
        let enough = timeout(PATIENCE, entered.wait_for(|&count| count >= handlers)).await;
        drop(enough.expect("the handlers are entered"));
    }

    pub(crate) fn entered_so_far(&self) -> usize {
        *self.0.entered.borrow()
    }

    pub(crate) fn ended_so_far(&self) -> usize {
        *self.0.ended.borrow()
    }
}

/// Waits until all locks are released, including those in the background.
pub(crate) async fn all_released(locks: &LockManager) {
    let drained = locks.drain(Duration::from_secs(60)).await;
    assert!(drained.is_complete(), "{drained:?}");
}

/// Waits until a condition holds that no event announces.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}
