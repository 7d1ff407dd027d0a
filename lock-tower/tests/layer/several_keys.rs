//! Layers that lock several keys for each request.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;
use bytes::Bytes;
use http::{Request, StatusCode};
use lock_core::{ErrorKind, LockManager, Wait};
use lock_tower::{LockLayer, MissingKey, OperationId, Outage, RejectionKind};
use tower::{Layer, service_fn};

fn transfers(locks: &LockManager) -> LockLayer {
    let layer = LockLayer::template(locks.clone(), "account:<query.from>").expect("it parses");
    layer.and("account:<query.to>").expect("it parses")
}

fn transfer(from: &str, to: &str) -> Request<Body> {
    let request = Request::post(format!("/transfers?from={from}&to={to}"));
    request.body(Body::default()).expect("a request")
}

#[tokio::test]
async fn a_request_locks_all_its_keys_or_is_refused() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    let service = transfers(&locks).layer(gated(&gate));
    let first = service.clone();
    let first = tokio::spawn(async move { send(&first, transfer("7", "3")).await });
    gate.entered(1).await;
    assert_eq!(store.taken(), 2);
    for (from, to) in [("3", "7"), ("3", "1"), ("1", "7")] {
        let refused = send(&service, transfer(from, to)).await;
        assert_eq!(refused.status, StatusCode::CONFLICT);
        assert_eq!(refused.kind(), Some(RejectionKind::InFlight));
        assert_eq!(store.taken(), 2, "the refused request has no key");
    }
    gate.let_through(2);
    assert_eq!(
        send(&service, transfer("1", "1")).await.status,
        StatusCode::OK
    );
    assert_eq!(first.await.expect("no panic").status, StatusCode::OK);
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn transfers_in_both_directions_wait_for_each_other_and_never_deadlock() {
    let (locks, store) = embedded();
    let layer = transfers(&locks).wait(Wait::Forever);
    let service = layer.layer(answers(StatusCode::OK));
    let mut tasks = Vec::new();
    for turn in 0..20 {
        let service = service.clone();
        let (from, to) = [("1", "2"), ("2", "1"), ("2", "3"), ("3", "1")][turn % 4];
        tasks.push(tokio::spawn(async move {
            send(&service, transfer(from, to)).await
        }));
    }
    for task in tasks {
        assert_eq!(task.await.expect("no panic").status, StatusCode::OK);
    }
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn a_request_that_lacks_one_of_its_keys_has_none() {
    let (locks, store) = embedded();
    let service = transfers(&locks).layer(answers(StatusCode::OK));
    let request = || {
        Request::post("/transfers?from=7")
            .body(Body::default())
            .expect("a request")
    };
    let refused = send(&service, request()).await;
    assert_eq!(refused.kind(), Some(RejectionKind::KeyMissing));
    assert!(refused.text.contains("query.to"), "{}", refused.text);
    let passing = transfers(&locks).on_missing_key(MissingKey::Pass);
    let service = passing.layer(answers(StatusCode::OK));
    assert_eq!(send(&service, request()).await.status, StatusCode::OK);
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn each_key_cools_down() {
    let (locks, _) = embedded();
    let layer = transfers(&locks).cooldown(Duration::from_secs(60));
    let service = layer.layer(answers(StatusCode::OK));
    assert_eq!(
        send(&service, transfer("1", "2")).await.status,
        StatusCode::OK
    );
    for (from, to) in [("1", "3"), ("3", "2")] {
        let refused = send(&service, transfer(from, to)).await;
        assert_eq!(refused.kind(), Some(RejectionKind::CoolingDown));
    }
    assert_eq!(
        send(&service, transfer("3", "4")).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_template_of_the_body_may_be_one_of_several() {
    let (locks, store) = embedded();
    let layer = LockLayer::body_template(locks, "account:<form.from>", 1024).expect("it parses");
    let layer = layer.and("account:<form.to>").expect("it parses");
    let layer = layer.and("bank:<header.x-bank>").expect("it parses");
    let service = layer.layer(service_fn(
        move |_: Request<lock_tower::RequestBody<Body>>| {
            let taken = store.taken();
            async move {
                ok(if taken == 3 {
                    StatusCode::OK
                } else {
                    StatusCode::IM_A_TEAPOT
                })
            }
        },
    ));
    let request = Request::post("/transfers")
        .header("content-type", "application/x-www-form-urlencoded")
        .header("x-bank", "north")
        .body(Body::new(Bytes::from_static(b"from=7&to=3")))
        .expect("a request");
    assert_eq!(send(&service, request).await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_operation_is_known_by_all_its_keys() {
    let (locks, _) = embedded();
    let seen: Arc<Mutex<Vec<OperationId>>> = Arc::default();
    let ids = Arc::clone(&seen);
    let handler = service_fn(move |request: Request<Body>| {
        let id = context(&request).operation_id().expect("it has keys");
        ids.lock().expect("no panic").push(id);
        async { ok(StatusCode::OK) }
    });
    let service = transfers(&locks).layer(handler.clone());
    for (from, to) in [("1", "2"), ("2", "1"), ("1", "3"), ("1", "1")] {
        assert_eq!(
            send(&service, transfer(from, to)).await.status,
            StatusCode::OK
        );
    }
    let single = LockLayer::template(locks.clone(), "account:<query.from>").expect("it parses");
    send(&single.layer(handler.clone()), transfer("1", "2")).await;
    // Without its store the request runs without a lock, and has the same number.
    locks
        .test_store()
        .expect("embedded")
        .fail(ErrorKind::Unavailable);
    let passing = transfers(&locks).on_outage(Outage::Pass);
    send(&passing.layer(handler), transfer("2", "1")).await;
    let seen = seen.lock().expect("no panic").clone();
    assert_eq!(seen[0], seen[1], "the order of the keys does not matter");
    assert_ne!(seen[0], seen[2]);
    assert_ne!(seen[0], seen[3]);
    assert_eq!(seen[3], seen[4], "one key is one key");
    assert_eq!(seen[5], seen[0]);
}

#[tokio::test]
async fn an_inner_layer_with_one_of_the_keys_is_an_error() {
    let (locks, store) = embedded();
    let inner = LockLayer::template(locks.clone(), "account:<query.to>").expect("it parses");
    let service = transfers(&locks).layer(inner.layer(answers(StatusCode::OK)));
    let answer = send(&service, transfer("1", "2")).await;
    assert_eq!(answer.kind(), Some(RejectionKind::Invalid));
    assert_eq!(store.taken(), 0);
}

#[tokio::test]
async fn more_than_sixteen_keys_are_invalid() {
    let (locks, _) = embedded();
    let mut layer = LockLayer::template(locks, "k0:<query.from>").expect("it parses");
    for number in 1..16 {
        layer = layer
            .and(format!("k{number}:<query.from>").as_str())
            .expect("it parses");
    }
    let layer = layer.checked().expect("sixteen are allowed");
    let layer = layer.and("k16:<query.from>").expect("it parses");
    let error = layer.checked().expect_err("too many");
    assert!(error.to_string().contains("16"), "{error}");
}

#[tokio::test]
async fn with_a_fallback_all_keys_are_locked_in_this_process() {
    let (locks, store) = embedded();
    store.fail(ErrorKind::Unavailable);
    let local = LockManager::in_memory();
    let held = local.clone();
    let layer = transfers(&locks).on_outage(Outage::Fallback(local));
    let service = layer.layer(service_fn(move |_: Request<Body>| {
        let count = held.held().len();
        async move {
            ok(if count == 2 {
                StatusCode::OK
            } else {
                StatusCode::IM_A_TEAPOT
            })
        }
    }));
    assert_eq!(
        send(&service, transfer("1", "2")).await.status,
        StatusCode::OK
    );
}

#[cfg(feature = "replay")]
#[tokio::test]
async fn an_answer_is_not_recorded_under_several_keys() {
    let (locks, _) = embedded();
    let layer = LockLayer::template(locks, "pay:<bearer>").expect("it parses");
    let layer = layer.and("account:<query.to>").expect("it parses");
    let error = layer
        .replay(lock_tower::Replay::default())
        .expect_err("two keys");
    assert!(error.to_string().contains("several keys"), "{error}");
}
