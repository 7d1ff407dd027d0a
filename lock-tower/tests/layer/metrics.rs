//! Metrics of requests (feature `metrics`), without a value of a request in a label.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::*;
use http::{Request, StatusCode};
use lock_core::{ErrorKind, LockManager};
use lock_tower::{Disconnect, Outage};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tower::{Layer, ServiceExt};

const HOUR: Duration = Duration::from_secs(3600);

/// Returns all series as `name{label=value,…}` with their increase since the last call. For a histogram,
/// the increase is the number of recorded values.
fn series(snapshotter: &Snapshotter) -> BTreeMap<String, f64> {
    let snapshot = snapshotter.snapshot().into_vec();
    let named = snapshot.into_iter().map(|(key, _, _, value)| {
        let key = key.key();
        let labels = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()));
        let labels = labels.collect::<Vec<_>>().join(",");
        let value = match value {
            DebugValue::Counter(count) => count as f64,
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Histogram(values) => values.len() as f64,
        };
        (format!("{}{{{labels}}}", key.name()), value)
    });
    named.collect()
}

/// Runs on one thread, so that the recorder of this thread also sees the tasks of handlers.
#[tokio::test(flavor = "current_thread")]
async fn every_request_is_counted_by_its_outcome_and_no_label_is_a_value() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _this_thread = metrics::set_default_local_recorder(&recorder);

    let (locks, store) = embedded();
    let layer = per_user_and_route(&locks).name("orders").cooldown(HOUR);
    let service = layer.clone().layer(answers(StatusCode::OK));
    send(&service, click("alice")).await;
    send(&service, click("alice")).await;
    send(
        &service,
        Request::post("/orders").body(Body::default()).unwrap(),
    )
    .await;
    let shadow = layer.clone().name("shadow").shadow();
    send(&shadow.layer(answers(StatusCode::OK)), click("alice")).await;

    let gate = Gate::closed();
    let leaving = layer
        .clone()
        .name("leaving")
        .on_disconnect(Disconnect::Release);
    let request = tokio::spawn(leaving.layer(gated(&gate)).oneshot(click("bob")));
    gate.entered(1).await;
    let while_it_ran = series(&snapshotter);
    request.abort();
    assert_eq!(leaving.in_flight().drain(HOUR).await, 0);

    store.fail(ErrorKind::Unavailable);
    send(&service, click("carol")).await;
    let local = LockManager::in_memory();
    let fallback = layer
        .clone()
        .name("fallback")
        .on_outage(Outage::Fallback(local));
    send(&fallback.layer(answers(StatusCode::OK)), click("carol")).await;
    let pass = layer.name("pass").on_outage(Outage::Pass);
    send(&pass.layer(answers(StatusCode::OK)), click("carol")).await;

    assert_eq!(while_it_ran["lock_layer_in_flight{layer=leaving}"], 1.0);
    let mut seen = while_it_ran;
    for (series, since) in series(&snapshotter) {
        *seen.entry(series).or_default() += since;
    }
    let requests = |layer: &str, outcome: &str, action: &str| {
        let name = "lock_layer_requests_total";
        format!("{name}{{layer={layer},outcome={outcome},action={action}}}")
    };
    for (series, value) in [
        (requests("orders", "granted", "locked"), 1.0),
        (requests("orders", "lock_cooling_down", "refused"), 1.0),
        (requests("orders", "lock_key_missing", "refused"), 1.0),
        (requests("orders", "lock_unavailable", "refused"), 1.0),
        (requests("shadow", "lock_cooling_down", "passed"), 1.0),
        (requests("fallback", "fallback", "locked"), 1.0),
        (requests("pass", "lock_unavailable", "passed"), 1.0),
        ("lock_layer_acquire_seconds{layer=orders}".into(), 1.0),
        ("lock_layer_hold_seconds{layer=orders}".into(), 1.0),
        (
            "lock_layer_releases_total{layer=orders,outcome=released}".into(),
            1.0,
        ),
        ("lock_layer_disconnects_total{layer=leaving}".into(), 1.0),
        ("lock_layer_in_flight{layer=leaving}".into(), 0.0),
        ("lock_layer_in_flight{layer=orders}".into(), 0.0),
    ] {
        assert_eq!(seen.get(&series), Some(&value), "{series} in {seen:#?}");
    }
    let left = |layer: &str| format!("lock_layer_disconnects_total{{layer={layer}}}");
    assert!(!seen.contains_key(&left("orders")), "they were answered");
    let all = format!("{seen:?}");
    for value in ["alice", "bob", "carol", "/orders", "submit"] {
        assert!(!all.contains(value), "{value} in {all}");
    }
}
