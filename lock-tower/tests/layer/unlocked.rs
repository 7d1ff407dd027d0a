//! Requests that pass without a lock, and handlers that extract the lock nevertheless.

use crate::common::*;
use axum::Router;
use axum::routing::post;
use http::{Request, StatusCode};
use lock_core::test_util::TestStore;
use lock_core::{ErrorKind, LockManager};
use lock_tower::{LockContext, LockLayer, MissingKey, Outage, RejectionKind};
use std::time::Duration;
use tower::{Layer, service_fn};

const HOUR: Duration = Duration::from_secs(3600);

fn shop(layer: LockLayer) -> Router {
    let create = async |lock: LockContext| {
        lock.cool_down(HOUR);
        lock.skip_cooldown();
        assert!(!lock.is_locked() && !lock.is_valid() && !lock.is_lost());
        assert_eq!(
            (lock.fencing_token(), lock.remaining()),
            (None, Duration::ZERO)
        );
        assert!(poll_once(std::pin::pin!(lock.lost())).is_pending());
        lock.release_now()
            .await
            .expect("there is nothing to release");
        "an order"
    };
    let either = async |lock: Option<LockContext>| if lock.is_some() { "locked" } else { "free" };
    Router::new()
        .route("/orders", post(create))
        .route("/either", post(either))
        .route_layer(layer)
}

fn anonymous(path: &str) -> Request<Body> {
    Request::post(path).body(Body::default()).unwrap()
}

type Way = (
    &'static str,
    LockLayer,
    TestStore,
    fn(&str) -> Request<Body>,
);

/// Returns each setting that lets a request pass, with such a request.
fn ways() -> Vec<Way> {
    let named = |path: &str| request(http::Method::POST, path, "42");
    let mut ways = Vec::new();
    let mut add = |name, change: fn(LockLayer) -> LockLayer, request: fn(&str) -> Request<Body>| {
        let (locks, store) = embedded();
        for path in ["/orders", "/either"] {
            if name == "shadow" {
                store.seize(&format!("submit:42:POST:{path}"), HOUR);
            }
        }
        if name == "outage" {
            store.fail(ErrorKind::Unavailable);
        }
        ways.push((name, change(per_user_and_route(&locks)), store, request));
    };
    add("shadow", LockLayer::shadow, named);
    add("outage", |layer| layer.on_outage(Outage::Pass), named);
    add(
        "missing key",
        |layer| layer.on_missing_key(MissingKey::Pass),
        anonymous,
    );
    ways
}

#[tokio::test]
async fn a_handler_that_takes_the_lock_as_an_argument_runs_where_its_layer_takes_none() {
    for (name, layer, _store, request) in ways() {
        let app = shop(layer);
        let answer = send(&app, request("/orders")).await;
        assert_eq!(
            (answer.status, answer.text.as_str()),
            (StatusCode::OK, "an order"),
            "{name}"
        );
        assert_eq!(send(&app, request("/either")).await.text, "free", "{name}");
    }
}

#[tokio::test]
async fn a_context_says_whether_its_lock_is_lost_or_only_released() {
    for lose in [true, false] {
        let (locks, store) = embedded();
        let service =
            per_user_and_route(&locks).layer(service_fn(move |request: Request<Body>| {
                let (lock, store) = (context(&request), store.clone());
                async move {
                    assert!(lock.is_locked() && lock.is_valid() && !lock.is_lost());
                    if lose {
                        store.seize("submit:42:POST:/orders", HOUR);
                    }
                    assert_eq!(lock.release_now().await.is_err(), lose);
                    assert!(lock.is_locked() && !lock.is_valid());
                    assert!(lock.fencing_token().is_some());
                    assert!(!lock.is_lost(), "it was given back");
                    ok(StatusCode::OK)
                }
            }));
        assert_eq!(send(&service, click("42")).await.status, StatusCode::OK);
    }
}

/// The inner layer lets the request pass, and the outer layer holds another key.
#[tokio::test]
async fn behind_two_layers_the_context_is_that_of_the_inner_one() {
    let (locks, store) = embedded();
    let inner = LockLayer::template(locks.clone(), "inner:<header.x-user-id>").unwrap();
    store.seize("inner:42", HOUR);
    let service = inner.shadow().layer(service_fn(|request: Request<Body>| {
        assert!(!context(&request).is_locked());
        async { ok(StatusCode::OK) }
    }));
    let outer = per_user_and_route(&locks);
    let twice = outer.clone().layer(service.clone());
    assert_eq!(send(&twice, click("42")).await.status, StatusCode::OK);
    // The outermost lock is also known two layers further inside.
    let thrice = outer
        .clone()
        .layer(inner_of(&locks).layer(outer.layer(service)));
    let refused = send(&thrice, click("42")).await;
    assert_eq!(refused.kind(), Some(RejectionKind::Invalid));
}

fn inner_of(locks: &LockManager) -> LockLayer {
    let layer = LockLayer::template(locks.clone(), "inner:<header.x-user-id>");
    layer.unwrap().shadow()
}
