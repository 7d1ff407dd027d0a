//! Layers in the wrong place, as found by a probe and as logged from real requests.

use crate::common::*;
use crate::log::ThisThread;
use http::{Method, Request, Response, StatusCode};
use lock_core::LockManager;
use lock_tower::{LockLayer, MissingKey, ProbeError, probe};
use std::convert::Infallible;
use tower::{Layer, service_fn};

fn sample() -> Request<Body> {
    click("42")
}

#[tokio::test]
async fn a_probe_runs_no_handler_and_takes_no_lock() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    gate.let_through(2);
    let service = per_user(&locks).layer(gated(&gate));
    store.fail(lock_core::ErrorKind::Unavailable);
    probe(service.clone(), sample()).await.unwrap();
    let get = request(Method::GET, "/orders", "42");
    assert_eq!(probe(service, get).await, Err(ProbeError::MethodNotLocked));
    assert_eq!(gate.entered_so_far(), 0);
}

#[tokio::test(flavor = "current_thread")]
async fn a_layer_that_locks_none_of_its_requests_is_reported_once() {
    let (locks, _) = embedded();
    let get = || request(Method::GET, "/exports", "42");
    let words = "does not lock";
    let open =
        || service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::default())));
    let idle = per_user(&locks).permits(3).layer(open());
    let used = per_user(&locks).permits(3).layer(open());
    let log = ThisThread::listen();
    send(&used, sample()).await;
    for _ in 0..150 {
        send(&used, get()).await;
    }
    assert_eq!(log.lines(words).len(), 0);
    for _ in 0..99 {
        send(&idle, get()).await;
    }
    assert_eq!(log.lines(words).len(), 0);
    for _ in 0..150 {
        send(&idle, get()).await;
    }
    assert_eq!(log.lines(words).len(), 1);
}

#[tokio::test]
async fn a_probe_says_what_the_key_lacks_whatever_happens_to_such_requests() {
    let (locks, _) = embedded();
    for missing_key in [MissingKey::Reject, MissingKey::Pass] {
        let layer = per_user(&locks).on_missing_key(missing_key).shadow();
        let error = probe(layer.layer(answers(StatusCode::OK)), anonymous()).await;
        let error = error.unwrap_err();
        assert_eq!(
            error,
            ProbeError::NoKey {
                code: "lock_key_missing",
                source: Some("header.x-user-id".into())
            }
        );
        let text = error.to_string();
        assert!(
            text.contains("header.x-user-id") && text.contains("outermost"),
            "{text}"
        );
    }
}

/// Only a lock layer recognizes the sample, so an application without one handles it.
#[tokio::test]
async fn a_probe_of_a_route_without_a_lock_layer_runs_its_handler_and_says_that() {
    let gate = Gate::closed();
    gate.let_through(1);
    let error = probe(gated(&gate), sample()).await.unwrap_err();
    let status = Some(StatusCode::OK);
    assert_eq!(error, ProbeError::NotReached { status });
    assert_eq!(gate.ended_so_far(), 1);
    assert!(error.to_string().contains("may have run"), "{error}");
}

#[tokio::test]
async fn a_probe_that_is_answered_outside_of_the_layer_says_by_what() {
    let error = probe(answers(StatusCode::UNAUTHORIZED), sample())
        .await
        .unwrap_err();
    let status = Some(StatusCode::UNAUTHORIZED);
    assert_eq!(error, ProbeError::NotReached { status });
    assert!(error.to_string().contains("401"), "{error}");
    let fails = service_fn(|_: Request<Body>| async { Err::<Response<Body>, _>("down") });
    let error = probe(fails, sample()).await.unwrap_err();
    assert_eq!(error, ProbeError::NotReached { status: None });
}

#[tokio::test(flavor = "current_thread")]
async fn a_layer_that_no_request_gives_a_key_is_reported_once() {
    let log = ThisThread::listen();
    let (locks, _) = embedded();
    let service = per_user(&locks).layer(answers(StatusCode::OK));
    let words = "all lacked a value that the key of this lock layer is made from";
    for count in 1..=30 {
        send(&service, anonymous()).await;
        let lines = log.lines(words);
        assert_eq!(lines.len(), usize::from(count >= 10), "{count}: {lines:?}");
    }
    let line = &log.lines(words)[0];
    assert!(
        line.contains("ERROR") && line.contains("header.x-user-id"),
        "{line}"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn one_request_with_a_key_ends_the_suspicion() {
    let log = ThisThread::listen();
    let (locks, _) = embedded();
    let service = per_user(&locks).layer(answers(StatusCode::OK));
    for _ in 0..5 {
        send(&service, anonymous()).await;
    }
    send(&service, click("42")).await;
    for _ in 0..30 {
        send(&service, anonymous()).await;
    }
    assert_eq!(log.lines("ERROR"), Vec::<String>::new());
}

fn per_user(locks: &LockManager) -> LockLayer {
    LockLayer::template(locks.clone(), "k:<header.x-user-id>").unwrap()
}

fn anonymous() -> Request<Body> {
    Request::post("/orders").body(Body::default()).unwrap()
}

#[cfg(feature = "axum")]
mod in_axum {
    use super::*;
    use axum::Router;
    use axum::routing::post;

    #[tokio::test]
    async fn a_probe_knows_a_layer_that_sees_no_route() {
        let (locks, _) = embedded();
        let orders = || Router::new().route("/orders", post(async || "made"));
        let inside = orders().route_layer(per_user_and_route(&locks));
        let request = || sample().map(axum::body::Body::new);
        probe(inside, request()).await.unwrap();
        let inside = orders().layer(per_user_and_route(&locks));
        probe(inside, request()).await.unwrap();
        let outside = per_user_and_route(&locks).layer(orders());
        assert_eq!(
            probe(outside, request()).await,
            Err(ProbeError::RouteUnknown)
        );
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_layer_that_never_sees_a_route_is_reported_once() {
        let (locks, _) = embedded();
        let orders = || Router::new().route("/orders", post(async || "made"));
        let words = "axum had matched no route";
        let outside = per_user_and_route(&locks).layer(orders());
        let inside = orders().layer(per_user_and_route(&locks));
        let log = ThisThread::listen();
        for _ in 0..30 {
            send(&inside, sample()).await;
        }
        assert_eq!(log.lines(words).len(), 0);
        for _ in 0..30 {
            send(&outside, sample()).await;
        }
        assert_eq!(log.lines(words).len(), 1);
    }
}
