//! A request that has its lock: the handler, the cooldown, the release.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use lock_core::{Error, LockGuard};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower_service::Service;
use tracing::Instrument;

use crate::context::LockContext;
use crate::policy::Policy;

/// What waits for the lock.
pub(crate) struct Work<S, B> {
    pub(crate) inner: S,
    pub(crate) request: Request<B>,
    pub(crate) policy: Arc<Policy>,
}

impl<S, B, R> Work<S, B>
where
    S: Service<Request<B>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
    R: Send + 'static,
{
    /// In a task of its own: a server drops the future of a request whose client has gone, and a
    /// handler that was dropped half way would leave an order paid and not booked.
    pub(crate) fn start(self, guard: LockGuard) -> JoinHandle<Result<Response<R>, S::Error>> {
        tokio::spawn(self.run(guard).in_current_span())
    }

    /// The guard lives here and nowhere else: as long as the handler runs, the lock is renewed, and
    /// however the task ends, the lock is given back after the handler was dropped.
    async fn run(self, guard: LockGuard) -> Result<Response<R>, S::Error> {
        let Self {
            mut inner,
            mut request,
            policy,
        } = self;
        request
            .extensions_mut()
            .insert(LockContext::new(guard.handle()));
        // `call` may do the work itself, before it returns a future: it belongs under the lock too.
        let result = inner.call(request).await;
        drop(inner);
        if result.as_ref().is_ok_and(has_succeeded) {
            guard.cooldown(policy.cooldown);
        }
        give_back(guard.release(), policy.release_timeout).await;
        result
    }
}

/// 303 is how a form's handler says "done, look there". Other redirects, and errors, say that the
/// work was not done here: the next try is welcome. gRPC says so in a header, under the status 200.
fn has_succeeded<R>(response: &Response<R>) -> bool {
    let status = response.status();
    let by_status = status.is_success() || status == StatusCode::SEE_OTHER;
    let grpc_status = response.headers().get("grpc-status");
    by_status && grpc_status.is_none_or(|code| code == "0")
}

/// The work is done: nothing that happens to the release changes its answer. Dropped before the
/// store has answered, the release goes on in the background.
async fn give_back(release: impl Future<Output = Result<(), Error>>, patience: Duration) {
    match timeout(patience, release).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(
                code = error.code(),
                "the lock of a request was not released as it should be"
            );
        }
        Err(_) => tracing::debug!("the lock of a request is released in the background"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_release_that_hangs_holds_the_answer_back_no_longer_than_its_bound() {
        give_back(std::future::pending(), Duration::from_millis(1)).await;
    }

    fn succeeded(status: u16, grpc_status: Option<&str>) -> bool {
        let mut response = Response::builder().status(status);
        if let Some(code) = grpc_status {
            response = response.header("grpc-status", code);
        }
        has_succeeded(&response.body(()).unwrap())
    }

    #[test]
    fn only_2xx_and_303_are_followed_by_a_cooldown() {
        let successes: Vec<u16> = (100..600)
            .filter(|&status| succeeded(status, None))
            .collect();
        let expected: Vec<u16> = (200..300).chain([303]).collect();
        assert_eq!(successes, expected);
    }

    #[test]
    fn a_grpc_error_under_the_status_200_is_followed_by_none() {
        assert!(succeeded(200, Some("0")));
        assert!(!succeeded(200, Some("5")));
    }
}
