//! The service: decides what happens to one request.

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::body::ResponseBody;
use crate::future::{Ready, ResponseFuture};
use crate::key::{Asked, HeadOnly, WithBody};
use crate::policy::Policy;
use crate::probe::Probing;
use crate::request_body::RequestBody;

/// A service behind a [`LockLayer`](crate::LockLayer), which makes it.
pub struct LockService<S, K = HeadOnly> {
    inner: S,
    policy: Arc<Policy>,
    key: K,
}

impl<S, K> LockService<S, K> {
    pub(crate) fn new(inner: S, policy: Arc<Policy>, key: K) -> Self {
        Self { inner, policy, key }
    }

    /// The service inside.
    #[must_use]
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The service inside.
    #[must_use]
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The service inside.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.inner
    }
}

/// # Panics
///
/// The future panics if it is polled outside a tokio runtime with time enabled, and where the
/// handler panicked.
impl<S, B, R> Service<Request<B>> for LockService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
    R: Send + 'static,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if !self.policy.locks_method(request.method()) {
            return self.pass_method(request);
        }
        let asked = self.key.ask(request);
        self.go_on(asked)
    }
}

/// The inner service's requests have a [`RequestBody`]: what the client sent, read for the key or
/// not.
///
/// # Panics
///
/// As of a layer that reads no bodies.
impl<S, B, R> Service<Request<B>> for LockService<S, WithBody>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Error: Send> + Send + 'static,
    R: Send + 'static,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, RequestBody<B>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if !self.policy.locks_method(request.method()) {
            return self.pass_method(request.map(RequestBody::untouched));
        }
        let asked = self.key.ask(request, self.policy.body);
        self.go_on(asked)
    }
}

impl<S: Clone, K> LockService<S, K> {
    /// A method that is not locked.
    fn pass_method<B>(&mut self, request: Request<B>) -> ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        match request.extensions().get::<Probing>() {
            Some(probing) => ResponseFuture::refused(probing.not_locked()),
            None => ResponseFuture::passing(self.inner.call(request)),
        }
    }

    fn go_on<B>(&mut self, asked: Asked<B>) -> ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        match asked {
            Asked::Known((request, key)) => ResponseFuture::keyed(self.take_ready(), request, key),
            Asked::Waiting(keying) => ResponseFuture::keying(keying, self.take_ready()),
        }
    }

    /// The service that was asked whether it is ready is the one that is called: a clone of it need
    /// not be ready.
    fn take_ready(&mut self) -> Ready<S> {
        let clone = self.inner.clone();
        Ready {
            inner: mem::replace(&mut self.inner, clone),
            policy: Arc::clone(&self.policy),
        }
    }
}

// By hand: the policy is shared, whatever `S` is.
impl<S: Clone, K: Clone> Clone for LockService<S, K> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            policy: Arc::clone(&self.policy),
            key: self.key.clone(),
        }
    }
}

impl<S: fmt::Debug, K> fmt::Debug for LockService<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockService")
            .field("inner", &self.inner)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
