//! Tests the interface for operators: metrics, the shutdown, and a probe at the start.

#[cfg(feature = "metrics")]
use std::collections::BTreeMap;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::post;
use lock_core::LockManager;
use lock_tests::{RedisServer, needs, wait};
use lock_tower::{Disconnect, LockLayer, Outage, ProbeError, probe};
#[cfg(feature = "metrics")]
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tower::Layer as _;

use super::client::{Leaves, VERSIONS, Version, WAYS};
use super::{Gate, Server, key, layer, nothing_is_left};
use crate::shop::code;

#[cfg(feature = "metrics")]
/// The test has one thread, so that the recorder of this thread sees the servers' tasks too.
#[tokio::test(flavor = "current_thread")]
async fn each_request_is_counted_by_its_outcome_and_no_label_is_a_value() {
    needs!(redis);
    for (version, leaves) in [
        (Version::Http1, Leaves::WithReset),
        (Version::Http2, Leaves::ResettingItsStream),
    ] {
        let recorder = DebuggingRecorder::new();
        let _this_thread = metrics::set_default_local_recorder(&recorder);
        let redis = RedisServer::start();
        let locks = LockManager::connect(&redis.url()).await.expect("a manager");
        let cooling = layer(&locks).cooldown(Duration::from_secs(60));
        let serve = |name, told: fn(LockLayer) -> LockLayer, gate: &Gate| {
            let layer = told(cooling.clone().name(name));
            let (locks, gate) = (locks.clone(), gate.clone());
            async move { Server::start(locks, layer, &gate).await }
        };
        let (open, closed) = (Gate::open(), Gate::closed());
        let orders = serve("orders", |layer| layer, &open).await;
        let shadow = serve("shadow", LockLayer::shadow, &open).await;
        let pass = serve("pass", |layer| layer.on_outage(Outage::Pass), &open).await;
        let dropping = |layer: LockLayer| layer.on_disconnect(Disconnect::Release);
        let leaving = serve("leaving", dropping, &closed).await;
        let alone = |layer: LockLayer| layer.on_outage(Outage::Fallback(LockManager::in_memory()));
        let fallback = serve("fallback", alone, &open).await;

        let client = leaves.click(&leaving, "bob").await;
        closed.entered(1).await;
        client.leave();
        leaving.left(1).await;
        wait::eventually("the lock is released", async || {
            redis.get(&key("bob")).is_none()
        })
        .await;
        for (server, user, status) in [
            (&orders, "alice", 201),
            (&orders, "alice", 409),
            (&orders, "", 400),
            (&shadow, "alice", 201),
        ] {
            assert_eq!(version.click(server, user).await.status, status);
        }
        redis.kill();
        for (server, status) in [(&orders, 503), (&pass, 201), (&fallback, 201)] {
            assert_eq!(version.click(server, "carol").await.status, status);
        }

        let seen = series(&recorder.snapshotter());
        for (name, labels, value) in [
            (
                "requests_total",
                "orders,outcome=granted,action=locked",
                1.0,
            ),
            (
                "requests_total",
                "orders,outcome=lock_cooling_down,action=refused",
                1.0,
            ),
            (
                "requests_total",
                "orders,outcome=lock_key_missing,action=refused",
                1.0,
            ),
            (
                "requests_total",
                "orders,outcome=lock_unavailable,action=refused",
                1.0,
            ),
            (
                "requests_total",
                "shadow,outcome=lock_cooling_down,action=passed",
                1.0,
            ),
            (
                "requests_total",
                "pass,outcome=lock_unavailable,action=passed",
                1.0,
            ),
            (
                "requests_total",
                "fallback,outcome=fallback,action=locked",
                1.0,
            ),
            ("acquire_seconds", "orders", 1.0),
            ("hold_seconds", "orders", 1.0),
            ("releases_total", "orders,outcome=released", 1.0),
            ("disconnects_total", "leaving", 1.0),
            ("in_flight", "leaving", 0.0),
            ("in_flight", "orders", 0.0),
        ] {
            let series = format!("lock_layer_{name}{{layer={labels}}}");
            assert_eq!(seen.get(&series), Some(&value), "{series} in {seen:#?}");
        }
        let all = format!("{seen:?}");
        for value in ["alice", "bob", "carol", "/orders", "submit", "127.0.0.1"] {
            assert!(!all.contains(value), "{value} in {all}");
        }
    }
}

/// Formats each series as `name{label=value,…}`; for a histogram, with the number of records.
fn series(snapshotter: &Snapshotter) -> BTreeMap<String, f64> {
    let snapshot = snapshotter.snapshot().into_vec();
    let named = snapshot.into_iter().map(|(key, _, _, value)| {
        let labels = key.key().labels();
        let labels = labels.map(|label| format!("{}={}", label.key(), label.value()));
        let labels = labels.collect::<Vec<_>>().join(",");
        let value = match value {
            DebugValue::Counter(count) => count as f64,
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Histogram(values) => values.len() as f64,
        };
        (format!("{}{{{labels}}}", key.key().name()), value)
    });
    named.collect()
}

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
