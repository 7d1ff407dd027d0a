//! The inner service of a layer with replay, which records the answer of the handler.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::RecordedBody;
use super::recording::Recording;
use crate::key::RequestBody;
use crate::lock::{BoxFuture, LockContext};
use crate::policy::Policy;
use crate::rejection::Rejection;

/// Records the answers of the inner service, inside the lock of each request.
///
/// It is a part of the service that a layer with [replay](crate::LockLayer::replay) makes.
#[derive(Clone)]
pub struct Recorder<S> {
    inner: S,
    policy: Arc<Policy>,
}

impl<S> Recorder<S> {
    pub(crate) fn new(inner: S, policy: Arc<Policy>) -> Self {
        Self { inner, policy }
    }
}

impl<S, B, R> Service<Request<RequestBody<B>>> for Recorder<S>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body,
    R: Body<Error: Send> + Send + 'static,
{
    type Response = Response<RecordedBody<R>>;
    type Error = S::Error;
    type Future = BoxFuture<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<RequestBody<B>>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let context: Option<&LockContext> = parts.extensions.get();
        let Some(lock) = context.and_then(LockContext::own_lock).cloned() else {
            return unrecorded(self.inner.call(Request::from_parts(parts, body)));
        };
        // A process that was paused after the grant could run beside the record of another request.
        if !lock.handle.is_valid() {
            let refusal = self.policy.refuse(Rejection::lost_before_handler(), &parts);
            return Box::pin(async { Ok(refusal.map(RecordedBody::ready)) });
        }
        let (recording, body) = Recording::begin(&self.policy, lock, &parts, body);
        let future = self.inner.call(Request::from_parts(parts, body));
        Box::pin(async { Ok(recording.record(future.await?).await) })
    }
}

/// Passes the response of a request without a lock of this layer.
pub(crate) fn unrecorded<F, R, E>(future: F) -> BoxFuture<Result<Response<RecordedBody<R>>, E>>
where
    F: Future<Output = Result<Response<R>, E>> + Send + 'static,
    R: Body,
{
    Box::pin(async { Ok(future.await?.map(RecordedBody::unrecorded)) })
}

impl<S: fmt::Debug> fmt::Debug for Recorder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
