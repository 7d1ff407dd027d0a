//! Requests beside futures that are not polled.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use lock_core::{LockManager, Wait};
use lock_tests::{RedisServer, needs, wait};
use tower::ServiceExt;

use super::{key, layer};

fn click() -> Request<Body> {
    let request = Request::post("/orders").header("x-user-id", "42");
    request.body(Body::empty()).expect("a request")
}

async fn service(redis: &RedisServer) -> (LockManager, Router) {
    let locks = LockManager::connect(&redis.url()).await.expect("a manager");
    // Longer than a busy machine takes, and shorter than this test waits.
    let layer = layer(&locks).acquire_timeout(Duration::from_secs(5));
    let router = Router::new().route("/orders", post(async || StatusCode::CREATED));
    (locks, router.route_layer(layer))
}

#[tokio::test]
async fn a_request_that_is_not_polled_keeps_no_other_one_waiting() {
    needs!(redis);
    let redis = RedisServer::start();
    let (_locks, app) = service(&redis).await;
    // The connection is there, so that one poll sends the question.
    let first = app.clone().oneshot(click()).await.expect("an answer");
    assert_eq!(first.status(), StatusCode::CREATED);
    let mut left_alone = Box::pin(app.clone().oneshot(click()));
    let pending =
        poll_fn(|context| Poll::Ready(left_alone.as_mut().poll(context).is_pending())).await;
    assert!(pending, "it has to ask");
    wait::eventually("it is granted", async || redis.get(&key("42")).is_some()).await;
    let second = app.clone().oneshot(click()).await.expect("an answer");
    assert_eq!(second.status(), StatusCode::CREATED);
    let late = left_alone.await.expect("an answer");
    assert_eq!(
        late.status(),
        StatusCode::CREATED,
        "nobody is inside any more"
    );
}

#[tokio::test]
async fn a_waiter_that_is_not_polled_keeps_no_request_waiting() {
    needs!(redis);
    let redis = RedisServer::start();
    let (locks, app) = service(&redis).await;
    let owner = LockManager::connect(&redis.url()).await.expect("a manager");
    let submit = "submit:42:POST:/orders";
    let held = owner.lock(submit).acquire().await.expect("free");
    let mut waiter = Box::pin(locks.lock(submit).wait(Wait::Forever).acquire());
    wait::eventually("it waits", async || {
        let polled = poll_fn(|context| Poll::Ready(waiter.as_mut().poll(context).is_pending()));
        assert!(polled.await, "it has to wait");
        redis.keys().iter().any(|key| key.contains("!q"))
    })
    .await;
    held.release().await.expect("held");
    wait::eventually("a request comes through", async || {
        let answer = app.clone().oneshot(click()).await.expect("an answer");
        let status = answer.status();
        assert_ne!(status, StatusCode::SERVICE_UNAVAILABLE);
        status == StatusCode::CREATED
    })
    .await;
}
