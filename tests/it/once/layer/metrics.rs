//! The metrics of records in a database.

use lock_tower::{LockContext, Once, Remember};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

use super::stage::{Db, Stage, app, pay, request, send};
use super::staged::OnCommit;
use crate::once::sqlite::Fresh;

#[tokio::test]
async fn each_record_is_counted_by_what_became_of_it() {
    let recorder = DebuggingRecorder::new();
    let _this_thread = metrics::set_default_local_recorder(&recorder);
    for (layer, fault) in [("answer", None), ("unknown", Some(OnCommit::IsNotAnswered))] {
        let stage = Stage::<Fresh>::start().await;
        let app = app(stage.layer().name(layer), pay::<Fresh>);
        if let Some(fault) = fault {
            stage.db.on_commit(fault);
            stage.db.ends_after(1);
        }
        send(&app, request("")).await;
    }
    let stage = Stage::<Fresh>::start().await;
    let secretly = |once: Once<Db<Fresh>>, lock: LockContext, order: String| async move {
        lock.remember(Remember::Done);
        pay::<Fresh>(once, order).await
    };
    let app = app(stage.layer().name("done"), secretly);
    send(&app, request("")).await.is(201);

    let records = counted(&recorder, "lock_layer_records_total");
    let each = ["answer", "done", "unknown"].map(|outcome| {
        let labels = vec![outcome.to_owned(), outcome.to_owned()];
        (labels, DebugValue::Counter(1))
    });
    assert_eq!(records, each);
}

/// A duplicate releases its lock before the end of its request.
#[tokio::test]
async fn each_request_is_counted_as_one_release() {
    let recorder = DebuggingRecorder::new();
    let _this_thread = metrics::set_default_local_recorder(&recorder);
    let stage = Stage::<Fresh>::start().await;
    let app = app(stage.layer().name("payments"), pay::<Fresh>);
    let first = send(&app, request("tea")).await;
    first.is(201);
    send(&app, request("tea")).await.repeats(&first);
    let labels = vec!["payments".to_owned(), "released".to_owned()];
    let releases = counted(&recorder, "lock_layer_releases_total");
    assert_eq!(releases, [(labels, DebugValue::Counter(2))]);
}

/// Returns the values of the labels of each series of a metric, and its count.
fn counted(recorder: &DebuggingRecorder, metric: &str) -> Vec<(Vec<String>, DebugValue)> {
    let snapshot = recorder.snapshotter().snapshot().into_vec();
    let mut counted: Vec<(Vec<String>, DebugValue)> = Vec::new();
    for (key, _, _, value) in snapshot {
        let key = key.key();
        if key.name() == metric {
            let labels = key.labels().map(|label| label.value().to_owned());
            counted.push((labels.collect(), value));
        }
    }
    counted.sort_by(|one, two| one.0.cmp(&two.0));
    counted
}
