//! Metrics of records and replays, without a value of a request in a label.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::{Body, all_released, context, embedded};
use crate::replay::steps::*;
use lock_tower::{Remember, Replay};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tower::Layer;

#[tokio::test(flavor = "current_thread")]
async fn records_and_replays_are_counted_by_their_outcomes() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _this_thread = metrics::set_default_local_recorder(&recorder);

    let (locks, store) = embedded();
    let layer = paying(&locks, Replay::default()).name("pay");
    let service = layer.clone().layer(numbered(&Runs::default()));
    for body in ["1", "1", "2"] {
        send(&service, pay(body)).await;
    }
    let done = answering(&layer, |request| {
        context(request).remember(Remember::Done);
        created("done")
    });
    send(&done, request("alice", "k2", "")).await;
    let seizes = store.clone();
    let lost = answering(&layer, move |_: &Received| -> http::Response<Body> {
        seizes.seize("pay:alice:k3", Duration::from_secs(60));
        created("lost")
    });
    send(&lost, request("alice", "k3", "")).await;
    let hangs = store.clone();
    let late = layer.clone().release_timeout(Duration::from_millis(1));
    let late = answering(&late, move |_| {
        hangs.hang();
        created("late")
    });
    send(&late, request("alice", "k4", "")).await;
    store.recover();
    all_released(&locks).await;

    let snapshot = snapshotter.snapshot().into_vec().into_iter();
    let series: BTreeMap<String, u64> = snapshot
        .map(|(key, _, _, value)| {
            let labels = key.key().labels();
            let labels: Vec<_> = labels.map(|label| label.value().to_owned()).collect();
            let value = match value {
                DebugValue::Counter(count) => count,
                DebugValue::Gauge(value) => value.into_inner() as u64,
                DebugValue::Histogram(values) => values.len() as u64,
            };
            (format!("{} {}", key.key().name(), labels.join(" ")), value)
        })
        .collect();
    for (name, value) in [
        ("lock_layer_requests_total pay replayed replayed", 1),
        ("lock_layer_requests_total pay lock_key_reused refused", 1),
        ("lock_layer_records_total pay answer", 1),
        ("lock_layer_records_total pay done", 1),
        ("lock_layer_records_total pay lost", 1),
        ("lock_layer_records_total pay background", 1),
        ("lock_layer_record_bytes pay", 3),
    ] {
        assert_eq!(series.get(name), Some(&value), "{name} in {series:#?}");
    }
    let all = format!("{series:?}");
    assert!(!all.contains("alice") && !all.contains("k1"), "{all}");
}
