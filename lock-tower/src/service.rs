//! The service: decides what happens to one request.

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use crate::body::ResponseBody;
use crate::future::ResponseFuture;
use crate::key::NoKey;
use crate::policy::{MissingKey, Policy};
use crate::rejection::Rejection;
use crate::work::Work;

/// A service behind a [`LockLayer`](crate::LockLayer), which makes it.
pub struct LockService<S> {
    inner: S,
    policy: Arc<Policy>,
}

impl<S> LockService<S> {
    pub(crate) fn new(inner: S, policy: Arc<Policy>) -> Self {
        Self { inner, policy }
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
            return ResponseFuture::passing(self.inner.call(request));
        }
        let (parts, body) = request.into_parts();
        let key = self.policy.key.key(&parts);
        let request = Request::from_parts(parts, body);
        match key {
            Ok(key) => {
                let work = Work {
                    inner: self.take_ready(),
                    request,
                    policy: Arc::clone(&self.policy),
                };
                ResponseFuture::acquiring(self.policy.request(key).acquire(), work)
            }
            Err(NoKey::Missing(_)) if self.policy.missing_key == MissingKey::Pass => {
                ResponseFuture::passing(self.inner.call(request))
            }
            Err(no_key) => ResponseFuture::rejected(Rejection::from(no_key)),
        }
    }
}

impl<S: Clone> LockService<S> {
    /// The service that was asked whether it is ready is the one that is called: a clone of it need
    /// not be ready.
    fn take_ready(&mut self) -> S {
        let clone = self.inner.clone();
        mem::replace(&mut self.inner, clone)
    }
}

// By hand: the policy is shared, whatever `S` is.
impl<S: Clone> Clone for LockService<S> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            policy: Arc::clone(&self.policy),
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for LockService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockService")
            .field("inner", &self.inner)
            .field("policy", &self.policy)
            .finish()
    }
}
