//! Tests the metrics of the layer.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::LockManager;
use lock_tests::{RedisServer, needs, wait};
use lock_tower::{Disconnect, LockLayer, Outage};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use super::client::{Leaves, Version};
use super::{Gate, Server, key, layer};

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
