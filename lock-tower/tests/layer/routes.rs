//! Matched routes, nested routers and the extractor in axum (feature `axum`).

use std::time::Duration;

use crate::common::*;
use axum::Router;
use axum::extract::State;
use axum::routing::post;
use http::{Method, StatusCode};
use lock_core::LockManager;
use lock_tower::{LockContext, LockLayer, MissingKey, RejectionKind};
use tokio::task::JoinSet;
use tower::ServiceExt;

fn layer(locks: &LockManager, template: &str) -> LockLayer {
    LockLayer::template(locks.clone(), template).unwrap()
}

fn held(locks: &LockManager) -> Vec<String> {
    let mut keys: Vec<_> = locks
        .held()
        .iter()
        .map(|held| held.key().to_owned())
        .collect();
    keys.sort();
    keys
}

/// Sends a POST to each path, and returns the keys that are held while all of them run.
async fn keys_of(app: Router, locks: &LockManager, gate: &Gate, paths: &[&str]) -> Vec<String> {
    let mut running = JoinSet::new();
    for path in paths {
        running.spawn(app.clone().oneshot(request(Method::POST, path, "42")));
    }
    gate.entered(paths.len()).await;
    let keys = held(locks);
    gate.let_through(paths.len());
    while let Some(response) = running.join_next().await {
        assert_eq!(response.unwrap().unwrap().status(), StatusCode::OK);
    }
    keys
}

fn gated_route(path: &str, gate: &Gate) -> Router {
    let gate = gate.clone();
    Router::new().route(path, post(move || async move { gate.pass().await }))
}

#[tokio::test]
async fn the_route_is_the_one_that_was_matched() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let app = gated_route("/orders/{id}/pay", &gate).route_layer(layer(&locks, "k:<route>"));
    let first = tokio::spawn(
        app.clone()
            .oneshot(request(Method::POST, "/orders/1/pay", "42")),
    );
    gate.entered(1).await;
    assert_eq!(held(&locks), ["k:/orders/%7Bid%7D/pay"]);
    let second = send(&app, request(Method::POST, "/orders/2/pay", "42")).await;
    assert_eq!(second.kind(), Some(RejectionKind::InFlight));
    gate.let_through(1);
    first.await.unwrap().unwrap();
}

#[tokio::test]
async fn with_the_path_two_things_of_one_route_run_together() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let app = gated_route("/orders/{id}/pay", &gate).route_layer(layer(&locks, "k:<path>"));
    let keys = keys_of(app, &locks, &gate, &["/orders/1/pay", "/orders/2/pay"]).await;
    assert_eq!(keys, ["k:/orders/1/pay", "k:/orders/2/pay"]);
}

#[tokio::test]
async fn nested_routers_do_not_collide() {
    for (template, keys) in [
        ("k:<route>", ["k:/a/orders", "k:/b/orders"]),
        ("k:<path>", ["k:/a/orders", "k:/b/orders"]),
    ] {
        let (locks, _) = embedded();
        let gate = Gate::closed();
        let inner = || gated_route("/orders", &gate).layer(layer(&locks, template));
        let app = Router::new().nest("/a", inner()).nest("/b", inner());
        assert_eq!(
            keys_of(app, &locks, &gate, &["/a/orders", "/b/orders"]).await,
            keys
        );
    }
}

#[tokio::test]
async fn around_routers_that_are_nested_the_route_is_the_whole_one() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let app = Router::new()
        .nest("/a/{tenant}", gated_route("/orders/{id}", &gate))
        .layer(layer(&locks, "k:<route>"));
    let keys = keys_of(app, &locks, &gate, &["/a/7/orders/1"]).await;
    assert_eq!(keys, ["k:/a/%7Btenant%7D/orders/%7Bid%7D"]);
}

#[tokio::test]
async fn without_a_matched_route_the_path_counts() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let at_gate = gate.clone();
    let app = Router::new()
        .fallback(move || async move { at_gate.pass().await })
        .layer(layer(&locks, "k:<route>"));
    let keys = keys_of(app, &locks, &gate, &["/users/1", "/users/2"]).await;
    assert_eq!(keys, ["k:/users/1", "k:/users/2"]);
}

#[tokio::test]
async fn a_parameter_that_is_no_text_is_malformed_and_not_missing() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    gate.let_through(1);
    let layer = layer(&locks, "k:<param.id>").on_missing_key(MissingKey::Pass);
    let app = gated_route("/orders/{id}/pay", &gate).route_layer(layer);
    let refused = send(&app, request(Method::POST, "/orders/%FF/pay", "42"));
    assert_eq!(refused.await.kind(), Some(RejectionKind::KeyInvalid));
    assert_eq!(gate.entered_so_far(), 0);
}

#[tokio::test]
async fn a_handler_takes_its_lock_as_an_argument() {
    async fn create(lock: LockContext) -> String {
        assert!(lock.is_valid());
        lock.fencing_token().expect("it is locked").to_string()
    }
    async fn either(lock: Option<LockContext>) -> &'static str {
        if lock.is_some() {
            "locked"
        } else {
            "not locked"
        }
    }
    let (locks, _) = embedded();
    let app = Router::new()
        .route("/orders", post(create).get(either))
        .route("/either", post(either))
        .layer(per_user_and_route(&locks))
        .route("/outside", post(create));

    assert!(send(&app, click("42")).await.text.parse::<u64>().is_ok());
    assert_eq!(
        send(&app, request(Method::GET, "/orders", "42")).await.text,
        "not locked"
    );
    assert_eq!(
        send(&app, request(Method::POST, "/either", "42"))
            .await
            .text,
        "locked"
    );
    let outside = send(&app, request(Method::POST, "/outside", "42")).await;
    assert_eq!(outside.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(outside.text.contains("LockLayer"), "{}", outside.text);
}

#[tokio::test]
async fn a_layer_outside_sees_the_refusal_and_adds_its_headers() {
    let (locks, _) = embedded();
    let app = Router::new()
        .route("/orders", post("made"))
        .route_layer(per_user_and_route(&locks));
    let cors = app.layer(tower::util::MapResponseLayer::new(
        |mut response: axum::response::Response| {
            let any = http::HeaderValue::from_static("*");
            response
                .headers_mut()
                .insert("access-control-allow-origin", any);
            response
        },
    ));
    let _held = locks
        .lock("submit:42:POST:/orders")
        .acquire()
        .await
        .unwrap();
    let response = cors.oneshot(click("42")).await.unwrap();
    assert_eq!(response.status(), StatusCode::CONFLICT);
    assert_eq!(response.headers()["access-control-allow-origin"], "*");
    assert_eq!(read(response).await.kind(), Some(RejectionKind::InFlight));
}

/// Only lock-tower's feature `axum` is on. No other dependency of these tests turns on
/// lock-core's.
#[tokio::test]
async fn a_handler_may_answer_with_the_locks_own_error() {
    async fn create(State(locks): State<LockManager>) -> Result<String, lock_core::Error> {
        let order = locks.lock("order").run(async { "an order" }).await?;
        Ok(order.to_owned())
    }
    let (locks, store) = embedded();
    let app = Router::new()
        .route("/orders", post(create))
        .with_state(locks);
    assert_eq!(send(&app, click("42")).await.text, "an order");
    store.seize("order", Duration::from_secs(60));
    let refused = send(&app, click("42")).await;
    assert_eq!(
        (refused.status, refused.retry_after),
        (StatusCode::CONFLICT, Some(1))
    );
}
