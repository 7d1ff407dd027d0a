//! Helpers: a payment's requests, its handlers, and answers that were read to their end.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use lock_core::LockManager;
use lock_tower::{
    KeyTemplate, LockLayer, Rejection, RejectionKind, Replay, Replayed, Replaying, RequestBody,
};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::common::Body;

pub(crate) type Received = Request<RequestBody<Body>>;

/// The user that the authentication has found.
#[derive(Clone)]
pub(crate) struct User(pub(crate) &'static str);

pub(crate) fn per_user() -> KeyTemplate {
    KeyTemplate::new("pay:<ext.user>:<idempotency-key>").extension("user", |user: &User| user.0)
}

pub(crate) fn paying(locks: &LockManager, replay: Replay) -> LockLayer<Replaying> {
    let layer = LockLayer::template(locks.clone(), per_user()).expect("a template that parses");
    layer.replay(replay).expect("settings within bounds")
}

/// Makes the request of `alice` with the idempotency key `k1`.
pub(crate) fn pay(body: &'static str) -> Request<Body> {
    request("alice", "k1", body)
}

pub(crate) fn request(user: &'static str, key: &str, body: &'static str) -> Request<Body> {
    Request::post("/payments")
        .header("idempotency-key", key)
        .extension(User(user))
        .body(Body::from(body))
        .expect("a request")
}

/// A response that was read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) trailers: Option<HeaderMap>,
    pub(crate) kind: Option<RejectionKind>,
    /// The layer has marked it as the answer of an earlier request.
    pub(crate) replayed: bool,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Asserts that a handler has answered with this text.
    #[track_caller]
    pub(crate) fn is_first(&self, text: &str) {
        assert_eq!((self.text.as_str(), self.kind), (text, None), "{self:?}");
        assert!(!self.replayed && self.header("idempotency-replayed").is_none());
    }

    /// Asserts that it is the answer of an earlier request.
    #[track_caller]
    pub(crate) fn is_replay(&self, text: &str) {
        assert_eq!((self.text.as_str(), self.kind), (text, None), "{self:?}");
        assert!(self.replayed, "{self:?}");
        assert_eq!(self.header("idempotency-replayed"), Some("true"));
    }

    #[track_caller]
    pub(crate) fn is_refused(&self, kind: RejectionKind) {
        assert_eq!(self.kind, Some(kind), "{self:?}");
        assert!(!self.replayed);
    }
}

/// Sends a request to a clone of the service, as a server does.
pub(crate) async fn send<S, Q, B>(service: &S, request: Request<Q>) -> Reply
where
    S: Service<Request<Q>, Response = Response<B>, Error = Infallible> + Clone,
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let response = service.clone().oneshot(request).await;
    read(response.unwrap_or_else(|never| match never {})).await
}

pub(crate) async fn read<B>(response: Response<B>) -> Reply
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let (parts, body) = response.into_parts();
    let body = body.collect().await.expect("a body");
    let trailers = body.trailers().cloned();
    Reply {
        status: parts.status,
        headers: parts.headers,
        text: String::from_utf8(body.to_bytes().to_vec()).expect("text"),
        trailers,
        kind: parts.extensions.get().map(Rejection::kind),
        replayed: parts.extensions.get::<Replayed>().is_some(),
    }
}

/// Counts the runs of a handler.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<AtomicUsize>);

impl Runs {
    /// Counts one more run, and returns its number.
    pub(crate) fn begin(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Makes a handler that reads the body and answers with 201 and the number of its run.
pub(crate) fn numbered(
    runs: &Runs,
) -> impl Service<Received, Response = Response<Body>, Error = Infallible, Future: Send>
+ Clone
+ Send
+ 'static {
    let runs = runs.clone();
    service_fn(move |request: Received| {
        let run = runs.begin();
        async move {
            request.into_body().collect().await.expect("a body");
            Ok(created(&format!("payment {run}")))
        }
    })
}

pub(crate) fn created(text: &str) -> Response<Body> {
    let mut response = Response::new(Full::from(text.to_owned()));
    *response.status_mut() = StatusCode::CREATED;
    response
}

/// Puts a layer around a handler that decides its answer from the request.
pub(crate) fn answering<F, B>(
    layer: &LockLayer<Replaying>,
    handler: F,
) -> impl Service<
    Request<Body>,
    Response = Response<impl http_body::Body<Data = Bytes, Error = B::Error>>,
    Error = Infallible,
    Future: Send,
> + Clone
+ Send
+ 'static
where
    F: Fn(&Received) -> Response<B> + Clone + Send + 'static,
    B: http_body::Body<Error: Send> + Send + 'static,
{
    layer.layer(service_fn(move |request: Received| {
        let response = handler(&request);
        async { Ok(response) }
    }))
}
