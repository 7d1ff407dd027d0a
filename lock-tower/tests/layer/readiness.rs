//! The layer calls the very service that was polled ready.

use std::convert::Infallible;
use std::future::{Ready, poll_fn, ready};
use std::task::{Context, Poll, Waker};

use crate::common::*;
use http::{Method, Request, Response, StatusCode};
use tower::{Layer, Service};

/// Panics if it is called before it was ready. Its clones are not ready.
#[derive(Default)]
struct Fussy {
    ready: bool,
    polls: usize,
}

impl Clone for Fussy {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Service<Request<Body>> for Fussy {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    /// Becomes ready at the second poll.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.polls += 1;
        self.ready = self.polls > 1;
        if self.ready {
            Poll::Ready(Ok(()))
        } else {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        assert!(
            std::mem::take(&mut self.ready),
            "called without being ready"
        );
        self.polls = 0;
        ready(ok(StatusCode::OK))
    }
}

#[tokio::test]
async fn the_ready_service_is_the_one_that_is_called() {
    let (locks, _) = embedded();
    let mut service = per_user_and_route(&locks).layer(Fussy::default());
    for method in [
        Method::POST,
        Method::GET,
        Method::POST,
        Method::POST,
        Method::GET,
    ] {
        poll_fn(|context| service.poll_ready(context))
            .await
            .unwrap();
        let response = service
            .call(request(method, "/orders", "42"))
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn a_refused_request_leaves_the_service_as_it_should_be() {
    let (locks, _) = embedded();
    let mut service = per_user_and_route(&locks).layer(Fussy::default());
    let held = locks
        .lock("submit:42:POST:/orders")
        .acquire()
        .await
        .unwrap();
    poll_fn(|context| service.poll_ready(context))
        .await
        .unwrap();
    let response = service.call(click("42")).await.unwrap();
    assert_eq!(response.status(), StatusCode::CONFLICT);

    held.release().await.unwrap();
    poll_fn(|context| service.poll_ready(context))
        .await
        .unwrap();
    let response = service.call(click("42")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

#[test]
fn readiness_is_the_inner_services() {
    let (locks, _) = embedded();
    let mut service = per_user_and_route(&locks).layer(Fussy::default());
    let mut context = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut context).is_pending());
    assert!(service.poll_ready(&mut context).is_ready());
    assert!(service.get_ref().ready && service.get_mut().ready);
    assert!(service.into_inner().ready);
}
