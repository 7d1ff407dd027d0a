//! Tests the interface for operators: the shutdown, and a probe at the start.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::post;
use lock_core::LockManager;
use lock_tests::{RedisServer, needs, wait};
use lock_tower::{LockLayer, ProbeError, probe};
use tower::Layer as _;

use super::client::{VERSIONS, WAYS};
use super::{Gate, Server, key, layer, nothing_is_left};
use crate::shop::code;

#[tokio::test]
async fn a_shutdown_waits_for_orders_whose_clients_have_gone() {
    needs!(redis);
    for how in WAYS {
        let redis = RedisServer::start();
        let gate = Gate::closed();
        let locks = LockManager::connect(&redis.url()).await.expect("a manager");
        let layer = layer(&locks);
        let orders = layer.in_flight();
        let server = Server::start(locks.clone(), layer, &gate).await;
        let client = how.click(&server, "42").await;
        gate.entered(1).await;
        let rest = client.leave();
        server.left(1).await;
        // The server has no client left and ends. The layer still counts the order.
        drop((server, rest));
        assert_eq!(orders.drain(Duration::ZERO).await, 1, "{how:?}");
        let (left, ()) = tokio::join!(orders.drain(wait::PATIENCE), async {
            assert!(redis.get(&key("42")).is_some());
            gate.let_through(1);
        });
        assert_eq!((left, gate.counts()), (0, (1, 1)), "{how:?}");
        let released = locks.drain(wait::PATIENCE).await;
        assert!(released.is_complete(), "{released:?}");
        assert_eq!(redis.get(&key("42")), None, "{how:?}");
    }
}

#[tokio::test]
async fn a_probe_at_the_start_finds_a_layer_that_would_refuse_every_request() {
    needs!(redis);
    let redis = RedisServer::start();
    let locks = LockManager::connect(&redis.url()).await.expect("a manager");
    let ran = Gate::open();
    let make = {
        let ran = ran.clone();
        move || async move { ran.pass(None).await }
    };
    let orders = || Router::new().route("/orders", post(make.clone()));
    let sample = || {
        let sample = Request::post("/orders").header("x-user-id", "42");
        sample.body(Body::empty()).expect("a request")
    };
    let inside = orders().route_layer(layer(&locks));
    let around = Router::new().fallback_service(layer(&locks).layer(orders()));
    let by_identity = LockLayer::template(locks.clone(), "k:<bearer>").expect("a template");
    let before_authentication = orders().route_layer(by_identity);

    redis.reset_stats();
    assert_eq!(probe(inside.clone(), sample()).await, Ok(()));
    assert_eq!(probe(around, sample()).await, Err(ProbeError::RouteUnknown));
    let lacks = probe(before_authentication.clone(), sample()).await;
    assert!(matches!(
        lacks,
        Err(ProbeError::NoKey {
            code: "lock_key_missing",
            ..
        })
    ));
    assert_eq!(crate::redis::asked(&redis), crate::redis::counts(&[]));
    assert_eq!(ran.counts(), (0, 0), "no handler ran");

    // The servers behave as the probes have reported.
    let good = Server::serve(locks.clone(), inside).await;
    let bad = Server::serve(locks, before_authentication).await;
    for version in VERSIONS {
        assert_eq!(version.click(&good, "42").await.status, 200);
        let refused = version.click(&bad, "42").await;
        assert_eq!(
            (refused.status, &*code(&refused)),
            (400, "lock_key_missing")
        );
    }
    nothing_is_left(&redis, &[&good, &bad]).await;
}
