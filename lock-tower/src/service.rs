//! The service: decides what happens to one request.

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use lock_core::LockKey;
use tower_service::Service;

use crate::body::ResponseBody;
use crate::future::ResponseFuture;
use crate::key::{HeadOnly, NoKey};
use crate::policy::{Decision, Policy};
use crate::work::Work;

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
            return ResponseFuture::passing(self.inner.call(request));
        }
        let (parts, body) = request.into_parts();
        let key = self.key.key(&parts);
        self.go_on(Request::from_parts(parts, body), key)
    }
}

impl<S: Clone, K> LockService<S, K> {
    /// From where the key is known, or known not to be there.
    fn go_on<B>(&mut self, request: Request<B>, key: Result<LockKey, NoKey>) -> ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        match self.policy.decide(key) {
            Decision::Lock(key) => {
                let work = Work {
                    inner: self.take_ready(),
                    request,
                    policy: Arc::clone(&self.policy),
                };
                ResponseFuture::acquiring(self.policy.request(key).acquire(), work)
            }
            Decision::Pass => ResponseFuture::passing(self.inner.call(request)),
            Decision::Refuse(rejection) => ResponseFuture::rejected(rejection),
        }
    }

    /// The service that was asked whether it is ready is the one that is called: a clone of it need
    /// not be ready.
    fn take_ready(&mut self) -> S {
        let clone = self.inner.clone();
        mem::replace(&mut self.inner, clone)
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
