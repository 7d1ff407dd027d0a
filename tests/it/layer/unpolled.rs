//! Tests requests beside futures that are not polled.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use lock_core::test_util::ManualClock;
use lock_core::{LockManager, Wait};
use lock_tests::{RedisServer, needs, wait};
use tower::ServiceExt;

use super::{key, layer};

fn click() -> Request<Body> {
    let request = Request::post("/orders").header("x-user-id", "42");
    request.body(Body::empty()).expect("a request")
}

/// A service whose clock the test moves.
struct Service {
    locks: LockManager,
    app: Router,
    clock: ManualClock,
    moved: Duration,
}

impl Service {
    async fn on(redis: &RedisServer) -> Self {
        let clock = ManualClock::new();
        let builder = LockManager::builder(&redis.url()).clock(clock.clone());
        let locks = builder.connect().await.expect("a manager");
        let layer = layer(&locks).acquire_timeout(Duration::from_secs(5));
        let router = Router::new().route("/orders", post(async || StatusCode::CREATED));
        Self {
            locks,
            app: router.route_layer(layer),
            clock,
            moved: Duration::ZERO,
        }
    }

    /// Returns the answer to a request that is polled while the clock goes on.
    ///
    /// In all the clock moves by less than two seconds. After that time the manager releases a lock
    /// that none of its waiters takes.
    async fn answer(&mut self) -> StatusCode {
        let request = tokio::spawn(self.app.clone().oneshot(click()));
        wait::eventually("the request is answered", async || {
            if self.moved < Duration::from_millis(1_500) {
                self.clock.advance(MOVE);
                self.moved += MOVE;
            }
            request.is_finished()
        })
        .await;
        let answer = request.await.expect("no panic").expect("an answer");
        answer.status()
    }
}

const MOVE: Duration = Duration::from_millis(5);

#[tokio::test]
async fn a_request_that_is_not_polled_blocks_no_other_request() {
    needs!(redis);
    let redis = RedisServer::start();
    let mut service = Service::on(&redis).await;
    // The connection exists already, so that one poll sends the request for the lock.
    assert_eq!(service.answer().await, StatusCode::CREATED);
    service.moved = Duration::ZERO;
    let mut left_alone = Box::pin(service.app.clone().oneshot(click()));
    let pending =
        poll_fn(|context| Poll::Ready(left_alone.as_mut().poll(context).is_pending())).await;
    assert!(pending, "the request is pending");
    wait::eventually("the lock is granted", async || {
        redis.get(&key("42")).is_some()
    })
    .await;
    assert_eq!(service.answer().await, StatusCode::CREATED);
    let late = left_alone.await.expect("an answer");
    assert_eq!(
        late.status(),
        StatusCode::CREATED,
        "no handler is inside any more"
    );
}

#[tokio::test]
async fn a_waiter_that_is_not_polled_blocks_no_request() {
    needs!(redis);
    let redis = RedisServer::start();
    let mut service = Service::on(&redis).await;
    let owner = LockManager::connect(&redis.url()).await.expect("a manager");
    let submit = "submit:42:POST:/orders";
    let held = owner.lock(submit).acquire().await.expect("free");
    let mut waiter = Box::pin(service.locks.lock(submit).wait(Wait::Forever).acquire());
    wait::eventually("the waiter waits", async || {
        let polled = poll_fn(|context| Poll::Ready(waiter.as_mut().poll(context).is_pending()));
        assert!(polled.await, "the waiter is pending");
        redis.keys().iter().any(|key| key.contains("!q"))
    })
    .await;
    held.release().await.expect("held");
    wait::eventually("a request is served", async || {
        let status = service.answer().await;
        assert_ne!(status, StatusCode::SERVICE_UNAVAILABLE);
        status == StatusCode::CREATED
    })
    .await;
}
