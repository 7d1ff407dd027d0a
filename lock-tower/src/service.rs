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
use crate::policy::Policy;
use crate::probe::Probing;
use crate::rejection::Rejection;
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
            return self.pass_method(request);
        }
        let (parts, body) = request.into_parts();
        let key = self.key.key(&parts);
        self.go_on(Request::from_parts(parts, body), key)
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

    /// From where the key is known, or known not to be there.
    fn go_on<B>(&mut self, request: Request<B>, key: Result<LockKey, NoKey>) -> ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        let policy = &self.policy;
        let (parts, body) = request.into_parts();
        if let Some(probing) = parts.extensions.get::<Probing>() {
            return ResponseFuture::refused(probing.answer(policy, &parts, key));
        }
        policy.watch(&parts, &key);
        match key {
            Ok(key) => {
                let taking = policy.take(key);
                let work = Work {
                    policy: Arc::clone(policy),
                    span: policy.span(),
                    inner: self.take_ready(),
                    request: Request::from_parts(parts, body),
                };
                ResponseFuture::acquiring(taking, work)
            }
            Err(no_key) => match policy.judge(Rejection::from(no_key), &parts) {
                Some(response) => ResponseFuture::refused(response),
                None => ResponseFuture::passing(self.inner.call(Request::from_parts(parts, body))),
            },
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
