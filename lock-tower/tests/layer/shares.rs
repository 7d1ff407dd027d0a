//! Requests that share a key: readers beside readers, and a number of permits.

use std::time::Duration;

use crate::common::*;
use http::{Method, StatusCode};
use lock_core::LockManager;
use lock_tower::{Disconnect, LockLayer, RejectionKind};
use tower::{Layer, ServiceExt};

fn layer(locks: &LockManager) -> LockLayer {
    LockLayer::template(locks.clone(), "doc:<header.x-user-id>").expect("a template")
}

#[tokio::test]
async fn as_many_requests_as_permits_run_and_the_next_one_is_refused_with_429() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let service = layer(&locks).permits(2).layer(gated(&gate));
    let running: Vec<_> = (0..2)
        .map(|_| tokio::spawn(service.clone().oneshot(click("42"))))
        .collect();
    gate.entered(2).await;
    let third = send(&service, click("42")).await;
    assert_eq!(third.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(third.kind(), Some(RejectionKind::Full));
    assert_eq!(third.problem()["code"], "lock_full");
    assert_eq!(third.problem()["status"], 429);
    assert_eq!(third.retry_after, Some(1), "a hint, whatever the ttl is");
    // Another key has permits of its own.
    let other = tokio::spawn(service.clone().oneshot(click("43")));
    gate.entered(3).await;
    gate.let_through(3);
    for request in running.into_iter().chain([other]) {
        let response = request.await.expect("no panic").expect("infallible");
        assert_eq!(response.status(), StatusCode::OK);
    }
    gate.let_through(1);
    assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_status_of_a_full_key_can_be_chosen() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let layer = layer(&locks).permits(1).full_status(StatusCode::CONFLICT);
    let service = layer.layer(gated(&gate));
    let first = tokio::spawn(service.clone().oneshot(click("42")));
    gate.entered(1).await;
    let second = send(&service, click("42")).await;
    assert_eq!(second.status, StatusCode::CONFLICT);
    assert_eq!(second.problem()["code"], "lock_full");
    gate.let_through(1);
    first.await.expect("no panic").expect("infallible");
}

#[tokio::test]
async fn a_request_waits_for_a_permit_if_the_layer_waits() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let layer = layer(&locks).permits(2).wait(Duration::from_secs(30));
    let service = layer.layer(gated(&gate));
    let requests: Vec<_> = (0..6)
        .map(|_| tokio::spawn(service.clone().oneshot(click("42"))))
        .collect();
    gate.entered(2).await;
    gate.let_through(6);
    for request in requests {
        let response = request.await.expect("no panic").expect("infallible");
        assert_eq!(response.status(), StatusCode::OK);
    }
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn readers_run_beside_readers_and_no_writer_runs_beside_them() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let service = layer(&locks)
        .read_methods([Method::GET])
        .layer(gated(&gate));
    let with = |method: Method| {
        let mut request = click("42");
        *request.method_mut() = method;
        request
    };
    let readers: Vec<_> = [Method::GET, Method::HEAD, Method::GET]
        .into_iter()
        .map(|method| tokio::spawn(service.clone().oneshot(with(method))))
        .collect();
    gate.entered(3).await;
    let writer = send(&service, with(Method::PUT)).await;
    assert_eq!(writer.status, StatusCode::CONFLICT);
    assert_eq!(writer.problem()["code"], "lock_busy");
    gate.let_through(3);
    for reader in readers {
        let response = reader.await.expect("no panic").expect("infallible");
        assert_eq!(response.status(), StatusCode::OK);
    }
    let writer = tokio::spawn(service.clone().oneshot(with(Method::PUT)));
    gate.entered(4).await;
    let reader = send(&service, with(Method::GET)).await;
    assert_eq!(reader.problem()["code"], "lock_busy");
    gate.let_through(1);
    let response = writer.await.expect("no panic").expect("infallible");
    assert_eq!(response.status(), StatusCode::OK);
    gate.let_through(1);
    let reader = send(&service, with(Method::GET)).await;
    assert_eq!(reader.status, StatusCode::OK);
    // A method that the layer does not lock passes.
    gate.let_through(1);
    let options = send(&service, with(Method::OPTIONS)).await;
    assert_eq!(options.status, StatusCode::OK);
}

type Change = (&'static str, fn(LockLayer) -> LockLayer);

#[tokio::test]
async fn settings_that_shares_cannot_have_are_invalid_and_named() {
    let changes: [Change; 7] = [
        ("1 to 10000 permits", |layer| layer.permits(0)),
        ("1 to 10000 permits", |layer| layer.permits(10_001)),
        ("no cooldown", |layer| {
            layer.permits(5).cooldown(Duration::from_secs(1))
        }),
        ("no cooldown", |layer| {
            layer.permits(5).min_interval(Duration::from_secs(1))
        }),
        ("no cooldown", |layer| {
            layer.permits(5).cooldown_with(|_| Duration::from_secs(1))
        }),
        ("`HoldUntilTtl`", |layer| {
            layer.permits(5).on_disconnect(Disconnect::HoldUntilTtl)
        }),
        ("`permits` and `read_methods`", |layer| {
            layer.permits(5).read_methods([Method::GET])
        }),
    ];
    for (why, change) in changes {
        let (locks, _) = embedded();
        let error = change(layer(&locks)).checked().expect_err(why);
        assert!(error.to_string().contains(why), "{error}");
    }
}
