//! The inner service of a layer with replay, which records the answer of the handler.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::RecordedBody;
#[cfg(feature = "once")]
use super::in_database::{InTransaction, refuse_nested};
use super::recording::Recording;
use crate::key::RequestBody;
use crate::lock::{BoxFuture, LockContext};
use crate::policy::Policy;
use crate::rejection::{Rejection, RejectionKind};

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
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Error: Send> + Send + 'static,
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
        #[cfg(feature = "once")]
        if let Some(refusal) = refuse_nested(&self.policy, &parts) {
            return Box::pin(async { Ok(refusal) });
        }
        let context: Option<&LockContext> = parts.extensions.get();
        let lock = context.and_then(LockContext::own_lock).cloned();
        // A process that was paused after the grant could run beside the record of another request.
        if lock.as_ref().is_some_and(|lock| !lock.handle.is_valid()) {
            let refusal = self
                .policy
                .refuse(Rejection::new(RejectionKind::Unavailable), &parts);
            return Box::pin(async { Ok(refusal.map(RecordedBody::ready)) });
        }
        #[cfg(feature = "once")]
        if let Some(transaction) = context.and_then(|own| InTransaction::of(&self.policy, own)) {
            // The clone need not be ready, because a recorder is called once.
            let clone = self.inner.clone();
            let handler = std::mem::replace(&mut self.inner, clone);
            return Box::pin(transaction.run(handler, Request::from_parts(parts, body)));
        }
        let Some(lock) = lock else {
            return unrecorded(self.inner.call(Request::from_parts(parts, body)));
        };
        let (recording, body) = Recording::in_key(&self.policy, lock, &parts, body);
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use bytes::Bytes;
    use http::StatusCode;
    use http_body_util::Full;
    use lock_core::test_util::ManualClock;
    use lock_core::{LockManager, Renew};
    use tower::service_fn;

    use super::*;
    use crate::lock::{GrantedLocks, RequestLock};

    #[tokio::test]
    async fn a_handler_whose_lock_is_lost_before_its_first_poll_does_not_run() {
        let clock = ManualClock::new();
        let manager = LockManager::builder("memory:").clock(clock.clone());
        let manager = manager.connect().await.unwrap();
        let guard = manager.lock("k").ttl(Duration::from_secs(1));
        let guard = guard.renew(Renew::Off).acquire().await.unwrap();
        let policy = Arc::new(Policy::new(manager));
        let locks = GrantedLocks {
            guard,
            fallback: None,
            fell_back: false,
        };
        let mut request = Request::new(RequestBody::untouched(Full::<Bytes>::default()));
        let lock = RequestLock::new(
            locks,
            &policy.locks,
            policy.telemetry,
            &policy.long_holds,
            policy.in_flight.enter(policy.telemetry),
            &request,
            None,
        );
        let context = LockContext::locked(request.extensions(), Arc::clone(lock.shared()));
        request.extensions_mut().insert(context);
        // The process is paused for longer than the ttl.
        clock.advance(Duration::from_secs(2));
        let handler = service_fn(
            |_: Request<RequestBody<Full<Bytes>>>| -> std::future::Ready<Result<Response<Full<Bytes>>, Infallible>> {
                panic!("another request may be recorded")
            },
        );
        let response = Recorder::new(handler, policy).call(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(response.headers().contains_key("retry-after"));
    }
}
