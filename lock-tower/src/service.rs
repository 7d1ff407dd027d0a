//! The service of a layer, which starts the future of each request.

#[cfg(feature = "replay")]
mod replaying;

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::key::{HeadOnly, KeyLookup, RequestBody, WithBody};
use crate::policy::Policy;
use crate::probe::Probing;
use crate::response::{ReadyService, ResponseBody, ResponseFuture};

#[cfg(feature = "replay")]
pub use replaying::Replaying;

/// A service behind a [`LockLayer`](crate::LockLayer), which makes it.
#[derive(Clone)]
pub struct LockService<S, K = HeadOnly> {
    inner: S,
    policy: Arc<Policy>,
    key: K,
}

impl<S, K> LockService<S, K> {
    pub(crate) fn around(inner: S, policy: Arc<Policy>, key: K) -> Self {
        Self { inner, policy, key }
    }

    /// Returns the inner service.
    #[must_use]
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns the inner service, mutably.
    #[must_use]
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Unwraps the inner service.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.inner
    }
}

/// # Panics
///
/// The future panics if it is polled outside of a tokio runtime with time enabled. A panic of the
/// handler propagates through it.
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
            return pass_method(request, |request| self.inner.call(request));
        }
        let key = self.key.lookup(request);
        continue_with(self.ready_service(), key)
    }
}

/// Passes requests with a [`RequestBody`] to the inner service.
///
/// # Panics
///
/// The future panics in the same cases as that of a layer that reads no bodies.
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
            let request = request.map(RequestBody::untouched);
            return pass_method(request, |request| self.inner.call(request));
        }
        let key = self.key.lookup(request, self.policy.body);
        continue_with(self.ready_service(), key)
    }
}

impl<S: Clone, K> LockService<S, K> {
    fn ready_service<B>(&mut self) -> ReadyService<S, B> {
        ReadyService {
            inner: self.take_ready(),
            policy: Arc::clone(&self.policy),
            answer_duplicate: None,
        }
    }

    /// Takes the service that was polled ready and leaves a clone, which need not be ready.
    fn take_ready(&mut self) -> S {
        let clone = self.inner.clone();
        mem::replace(&mut self.inner, clone)
    }
}

/// Passes a request whose method is not locked.
fn pass_method<S, B>(
    request: Request<B>,
    call: impl FnOnce(Request<B>) -> S::Future,
) -> ResponseFuture<S, B>
where
    S: Service<Request<B>>,
{
    match request.extensions().get::<Probing>() {
        Some(probing) => ResponseFuture::refused(probing.not_locked()),
        None => ResponseFuture::passing(call(request)),
    }
}

fn continue_with<S, B, R>(ready: ReadyService<S, B>, key: KeyLookup<B>) -> ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
    R: Send + 'static,
{
    match key {
        KeyLookup::Done((request, key)) => ResponseFuture::with_key(ready, request, key),
        KeyLookup::Pending(making) => ResponseFuture::making_key(making, ready),
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
