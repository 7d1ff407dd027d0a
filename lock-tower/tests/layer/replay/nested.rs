//! Lock layers around and inside a layer that repeats answers.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{all_released, context, embedded, with_clock};
use crate::replay::steps::*;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use lock_core::{ErrorKind, LockManager};
use lock_tower::{
    KeyTemplate, LockContext, LockLayer, MissingKey, OperationId, Outage, RejectionKind, Remember,
    Replay, RequestBody,
};
use tower::{Layer, service_fn};

/// A layer that locks the cart of the user, and sends a browser elsewhere while another request has it.
fn cart(locks: &LockManager) -> LockLayer {
    let key = KeyTemplate::new("cart:<ext.user>").extension("user", |user: &User| user.0);
    let layer = LockLayer::template(locks.clone(), key).unwrap();
    layer.on_reject(|_, _| {
        let mut response = Response::new(Bytes::from("elsewhere"));
        *response.status_mut() = StatusCode::SEE_OTHER;
        response
    })
}

#[tokio::test]
async fn a_refusal_of_an_inner_layer_is_not_the_answer_of_its_request() {
    for replay in [
        Replay::default(),
        Replay::default().remember_with(|_| Remember::Answer),
        Replay::default().remember_with(|_| Remember::Done),
    ] {
        let (locks, _) = embedded();
        let service = paying(&locks, replay.clone());
        let service = service.layer(cart(&locks).layer(numbered(&Runs::default())));
        let other = locks.lock("cart:alice").acquire().await.unwrap();
        for _ in 0..2 {
            let refused = send(&service, pay("")).await;
            refused.is_refused(RejectionKind::InFlight);
            assert_eq!(refused.status, StatusCode::SEE_OTHER);
        }
        other.release().await.unwrap();
        send(&service, pay("")).await.is_first("payment 1");
    }
}

#[tokio::test]
async fn a_handler_inside_another_lock_decides_about_the_layer_that_replays() {
    let (locks, store) = embedded();
    let ids = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&ids);
    let handler = service_fn(move |request: Received| {
        let lock = context(&request);
        lock.remember(Remember::Done);
        seen.lock().unwrap().push(lock.operation_id());
        async { Ok::<_, Infallible>(created("paid")) }
    });
    let service = paying(&locks, Replay::default()).layer(cart(&locks).layer(handler.clone()));
    for key in ["k1", "k2"] {
        send(&service, request("alice", key, ""))
            .await
            .is_first("paid");
        send(&service, request("alice", key, ""))
            .await
            .is_refused(RejectionKind::Done);
    }

    // An inner layer that has no lock for the request changes nothing.
    let (away, broken) = embedded();
    broken.fail(ErrorKind::Unavailable);
    let (locks, _) = embedded();
    let passing = cart(&away).on_outage(Outage::Pass).layer(handler.clone());
    let service = paying(&locks, Replay::default()).layer(passing);
    send(&service, pay("")).await.is_first("paid");
    send(&service, pay(""))
        .await
        .is_refused(RejectionKind::Done);

    // The layer that replays has no lock, and the inner one has.
    let passing = paying(&away, Replay::default()).on_outage(Outage::Pass);
    let service = passing.layer(cart(&locks).layer(handler));
    send(&service, pay("")).await.is_first("paid");

    let ids: Vec<Option<OperationId>> = ids.lock().unwrap().clone();
    assert!(ids.iter().all(Option::is_some), "{ids:?}");
    assert_ne!(ids[0], ids[1], "two keys are two operations");
    assert!(ids[2..].iter().all(|id| *id == ids[0]), "{ids:?}");
    all_released(&locks).await;
    assert_eq!(store.taken(), 2);
}

/// The number of an inner lock would be the same for two payments of one user.
#[tokio::test]
async fn a_request_without_a_key_has_no_number_inside_another_lock() {
    let (locks, _) = embedded();
    let handler = service_fn(|request: Received| {
        let id = context(&request).operation_id();
        async move { Ok::<_, Infallible>(created(&format!("{id:?}"))) }
    });
    let layer = paying(&locks, Replay::default()).on_missing_key(MissingKey::Pass);
    let service = layer.layer(cart(&locks).layer(handler));
    let mut keyless = pay("");
    keyless.headers_mut().remove("idempotency-key");
    send(&service, keyless).await.is_first("None");
}

/// A request behind two layers that repeat answers.
type Twice = Request<RequestBody<RequestBody<crate::common::Body>>>;

fn ordering(locks: &LockManager) -> LockLayer<lock_tower::Replaying> {
    let key = KeyTemplate::new("order:<ext.user>:<header.x-order>");
    let key = key.extension("user", |user: &User| user.0);
    let layer = LockLayer::template(locks.clone(), key).unwrap();
    layer.replay(Replay::default()).unwrap()
}

fn order(number: &str) -> Request<crate::common::Body> {
    let mut request = pay("");
    let number = number.parse().unwrap();
    request.headers_mut().insert("x-order", number);
    request
}

#[tokio::test]
async fn a_replay_of_an_inner_layer_is_recorded_once() {
    let (locks, store) = embedded();
    let runs = Runs::default();
    let counted = runs.clone();
    let handler = service_fn(move |_: Twice| {
        let run = counted.begin();
        async move { Ok::<_, Infallible>(created(&format!("payment {run}"))) }
    });
    let inner = paying(&locks, Replay::default()).layer(handler);
    let service = ordering(&locks).layer(inner);
    send(&service, order("1")).await.is_first("payment 1");
    send(&service, order("1")).await.is_replay("payment 1");
    // Another order with the same payment reaches the inner layer only.
    for _ in 0..2 {
        send(&service, order("2")).await.is_replay("payment 1");
    }
    all_released(&locks).await;
    assert_eq!((runs.count(), store.taken()), (1, 2));
}

#[tokio::test]
async fn both_of_two_layers_that_replay_follow_the_handler() {
    for (remember, status, kept) in [
        (Remember::Done, 201, 2),
        (Remember::Nothing, 201, 0),
        (Remember::Answer, 402, 2),
    ] {
        let (locks, store) = embedded();
        let handler = service_fn(move |request: Twice| {
            context(&request).remember(remember);
            let mut response = created("answer");
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            async { Ok::<_, Infallible>(response) }
        });
        let inner = paying(&locks, Replay::default()).layer(handler);
        let service = ordering(&locks).layer(inner);
        send(&service, order("1")).await.is_first("answer");
        assert_eq!(store.taken(), kept, "{remember:?}");
        match remember {
            Remember::Done => send(&service, order("1"))
                .await
                .is_refused(RejectionKind::Done),
            Remember::Answer => send(&service, order("1")).await.is_replay("answer"),
            _ => send(&service, order("1")).await.is_first("answer"),
        }
    }
}

/// The handler has the effect, and fails. Only its decision keeps the request from running again.
#[tokio::test]
async fn a_decision_reaches_the_outer_layer_if_the_inner_one_has_no_lock() {
    let (away, broken) = embedded();
    broken.fail(ErrorKind::Unavailable);
    let passing = paying(&away, Replay::default()).on_outage(Outage::Pass);
    let (locks, _) = embedded();
    let keyless = paying(&locks, Replay::default()).on_missing_key(MissingKey::Pass);
    for (inner, has_key) in [(passing, true), (keyless, false)] {
        let (locks, _) = embedded();
        let runs = Runs::default();
        let counted = runs.clone();
        let handler = service_fn(move |request: Twice| {
            counted.begin();
            let lock = context(&request);
            lock.remember(Remember::Done);
            assert!(lock.operation_id().is_some());
            let mut response = created("paid, and failed");
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            async { Ok::<_, Infallible>(response) }
        });
        let service = ordering(&locks).layer(inner.layer(handler));
        let request = || {
            let mut request = order("1");
            if !has_key {
                request.headers_mut().remove("idempotency-key");
            }
            request
        };
        send(&service, request()).await.is_first("paid, and failed");
        send(&service, request())
            .await
            .is_refused(RejectionKind::Done);
        assert_eq!(runs.count(), 1);
    }
}

#[tokio::test]
async fn an_answer_that_is_repeated_or_a_refusal_starts_no_cooldown_of_an_outer_layer() {
    let second = Duration::from_secs(1);
    for by_response in [false, true] {
        let (locks, clock) = with_clock().await;
        let outer = KeyTemplate::new("click:<ext.user>").extension("user", |user: &User| user.0);
        let outer = LockLayer::template(locks.clone(), outer).unwrap();
        let outer = match by_response {
            true => outer.cooldown_with(move |_| 2 * second),
            false => outer.cooldown(2 * second),
        };
        let inner = paying(&locks, Replay::default());
        let inner = inner.layer(cart(&locks).layer(numbered(&Runs::default())));
        let service = outer.layer(inner);
        send(&service, pay("")).await.is_first("payment 1");
        send(&service, pay(""))
            .await
            .is_refused(RejectionKind::CoolingDown);
        clock.advance(3 * second);
        for _ in 0..2 {
            send(&service, pay("")).await.is_replay("payment 1");
        }
        let other = locks.lock("cart:alice").acquire().await.unwrap();
        for _ in 0..2 {
            send(&service, request("alice", "k2", ""))
                .await
                .is_refused(RejectionKind::InFlight);
        }
        other.release().await.unwrap();
    }
}

#[lock_core::distributed_lock(key = "stock", ttl = "5s", manager = locks)]
async fn deduct(locks: &LockManager, lock: &LockContext) -> Result<(), lock_core::Error> {
    lock.remember(Remember::Answer);
    Ok(())
}

/// The refusal of a lock of the handler is its answer, and its status is no success.
#[tokio::test]
async fn a_refused_lock_of_the_handler_is_not_remembered_and_under_its_lock_the_handler_decides() {
    let (locks, _) = embedded();
    let inside = locks.clone();
    let service = paying(&locks, Replay::default()).layer(service_fn(move |request: Received| {
        let locks = inside.clone();
        async move {
            let mut response = created("declined");
            *response.status_mut() = match deduct(&locks, &context(&request)).await {
                Ok(()) => StatusCode::PAYMENT_REQUIRED,
                Err(error) => StatusCode::from_u16(error.http_status()).unwrap(),
            };
            Ok::<_, Infallible>(response)
        }
    }));
    let other = locks.lock("stock").acquire().await.unwrap();
    for _ in 0..2 {
        let refused = send(&service, pay("")).await;
        refused.is_first("declined");
        assert_eq!(refused.status, StatusCode::CONFLICT);
    }
    other.release().await.unwrap();
    send(&service, pay("")).await.is_first("declined");
    let second = send(&service, pay("")).await;
    second.is_replay("declined");
    assert_eq!(second.status, StatusCode::PAYMENT_REQUIRED);
}
