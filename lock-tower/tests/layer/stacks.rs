//! The layer among tower's own: buffers, limits, load shedding, timeouts, outside and inside.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::common::*;
use http::{Request, Response, StatusCode};
use lock_tower::RejectionKind;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn};

const HOUR: Duration = Duration::from_secs(3600);

async fn status<S, B>(service: &S) -> Result<StatusCode, BoxError>
where
    S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>> + Clone,
{
    let response = service.clone().oneshot(click("42")).await;
    response
        .map(|response| response.status())
        .map_err(Into::into)
}

#[tokio::test]
async fn among_buffers_limits_and_timeouts_one_click_runs() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let service = ServiceBuilder::new()
        .buffer::<Request<Body>>(8)
        .concurrency_limit(4)
        .timeout(HOUR)
        .layer(per_user_and_route(&locks))
        .buffer(8)
        .load_shed()
        .concurrency_limit(2)
        .timeout(HOUR)
        .service(gated(&gate));
    let first = tokio::spawn({
        let service = service.clone();
        async move { status(&service).await }
    });
    gate.entered(1).await;
    for _ in 0..10 {
        assert_eq!(status(&service).await.unwrap(), StatusCode::CONFLICT);
    }
    gate.let_through(2);
    assert_eq!(first.await.unwrap().unwrap(), StatusCode::OK);
    assert_eq!(status(&service).await.unwrap(), StatusCode::OK);
    assert_eq!((gate.entered_so_far(), store.taken()), (2, 0));
}

/// A permit of an inner limit is taken before the lock is acquired.
#[tokio::test]
async fn refused_requests_give_their_place_in_a_limit_inside_back() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let service = ServiceBuilder::new()
        .layer(per_user_and_route(&locks))
        .concurrency_limit(2)
        .service(gated(&gate));
    let first = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    for _ in 0..5 {
        let refused = send(&service, click("42")).await;
        assert_eq!(refused.kind(), Some(RejectionKind::InFlight));
    }
    gate.let_through(2);
    assert_eq!(send(&service, click("43")).await.status, StatusCode::OK);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
}

/// The limit is asked before the lock, because a service is ready before it is called.
#[tokio::test]
async fn a_duplicate_that_waits_keeps_its_place_in_a_limit_inside() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let service = ServiceBuilder::new()
        .layer(per_user_and_route(&locks).wait(HOUR))
        .concurrency_limit(2)
        .service(gated(&gate));
    let first = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    let mut waits = Box::pin(service.clone().oneshot(click("42")));
    assert!(poll_once(waits.as_mut()).is_pending());
    let mut other = Box::pin(service.clone().oneshot(click("43")));
    assert!(poll_once(other.as_mut()).is_pending());
    assert_eq!(
        gate.entered_so_far(),
        1,
        "there is no place for the other user"
    );
    gate.let_through(3);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(waits.await.unwrap().status(), StatusCode::OK);
    assert_eq!(other.await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_request_that_is_shed_inside_is_an_error_and_releases_the_lock() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let service = ServiceBuilder::new()
        .layer(per_user_and_route(&locks).cooldown(HOUR))
        .load_shed()
        .concurrency_limit(1)
        .service(gated(&gate));
    let first = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    let shed = service.clone().oneshot(click("43")).await.unwrap_err();
    assert!(shed.is::<tower::load_shed::error::Overloaded>(), "{shed}");
    assert_eq!(store.taken(), 1, "the first one's");
    gate.let_through(1);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_timeout_outside_leaves_the_handler_to_its_end() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let layer = per_user_and_route(&locks);
    let orders = layer.in_flight();
    let service = ServiceBuilder::new()
        .timeout(Duration::from_millis(1))
        .layer(layer)
        .service(gated(&gate));
    let late = service.oneshot(click("42")).await.unwrap_err();
    assert!(late.is::<tower::timeout::error::Elapsed>(), "{late}");
    // The lock may have been granted by then, or not yet.
    if orders.count() == 1 {
        gate.entered(1).await;
        assert_eq!(store.taken(), 1);
        gate.let_through(1);
    }
    assert_eq!(orders.drain(HOUR).await, 0);
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);
    assert_eq!(gate.entered_so_far(), gate.ended_so_far());
}

#[tokio::test]
async fn a_timeout_inside_drops_the_handler_and_releases_the_lock() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let service = ServiceBuilder::new()
        .layer(per_user_and_route(&locks).cooldown(HOUR))
        .timeout(Duration::from_millis(1))
        .service(gated(&gate));
    let late = service.oneshot(click("42")).await.unwrap_err();
    assert!(late.is::<tower::timeout::error::Elapsed>(), "{late}");
    assert_eq!((gate.ended_so_far(), store.taken()), (0, 0));
}

/// A service that fails like the worker of a buffer that has ended.
#[derive(Clone)]
struct Ended;

impl Service<Request<Body>> for Ended {
    type Response = Response<Body>;
    type Error = &'static str;
    type Future = std::future::Ready<Result<Response<Body>, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        Poll::Ready(Err("the worker has ended"))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        panic!("called without being ready")
    }
}

#[tokio::test]
async fn a_service_that_fails_to_become_ready_returns_its_error_and_locks_nothing() {
    let (locks, store) = embedded();
    let service = per_user_and_route(&locks).layer(Ended);
    let ended = service.oneshot(click("42")).await.unwrap_err();
    assert_eq!(ended, "the worker has ended");
    assert_eq!(store.taken(), 0);
}

/// Servers clone one service for each request and run all clones at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_a_hundred_clones_on_many_threads_no_two_run_at_once() {
    let (locks, store) = embedded();
    let running = Arc::new(AtomicUsize::new(0));
    let inside = Arc::clone(&running);
    let service = per_user_and_route(&locks).layer(service_fn(move |_: Request<Body>| {
        let running = Arc::clone(&inside);
        async move {
            let before = running.fetch_add(1, Ordering::SeqCst);
            assert_eq!(before, 0, "beside another one");
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            running.fetch_sub(1, Ordering::SeqCst);
            ok(StatusCode::OK)
        }
    }));
    let clicks: Vec<_> = (0..100)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move { send(&service, click("42")).await.status })
        })
        .collect();
    let mut ran = 0;
    for click in clicks {
        match click.await.expect("no handler runs beside another") {
            StatusCode::OK => ran += 1,
            refused => assert_eq!(refused, StatusCode::CONFLICT),
        }
    }
    assert!(ran >= 1);
    assert_eq!(store.taken(), 0);
}

/// The handler does not read the body.
#[tokio::test]
async fn a_handler_that_never_reads_its_body_holds_nothing_up() {
    let (locks, store) = embedded();
    let layer = lock_tower::LockLayer::body_template(locks, "k:<form.token>", 64).unwrap();
    let service = layer.layer(service_fn(
        |request: Request<lock_tower::RequestBody<Body>>| async move {
            drop(request);
            Ok::<_, Infallible>(answer(StatusCode::OK))
        },
    ));
    let mut request = click("42");
    *request.body_mut() = Body::from("token=1");
    assert_eq!(send(&service, request).await.status, StatusCode::OK);
    assert_eq!(store.taken(), 0);
}
