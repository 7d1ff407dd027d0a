//! The metrics of locks (feature `metrics`), without a key, a token or a namespace in a label.
//!
//! The keeper's thread counts too, so the recorder is that of the whole process, and one test runs at a time.
#![allow(clippy::disallowed_methods, reason = "tests run on the real machine")]

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::LazyLock;
use std::task::Poll;
use std::time::Duration;

use lock_core::test_util::{ManualClock, TestStore};
use lock_core::{Error, ErrorKind, LockManager, Renew, Wait};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinSet;

const KEY: &str = "account:alice";
const TTL: Duration = Duration::from_secs(30);

/// The series since the beginning of a test, as `name{label=value}`.
///
/// The value of a histogram is the number of its values.
struct Series {
    _turn: MutexGuard<'static, ()>,
    values: BTreeMap<String, f64>,
}

static SNAPSHOTS: LazyLock<Snapshotter> = LazyLock::new(|| {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().expect("the first recorder");
    snapshotter
});

impl Series {
    async fn begin() -> Series {
        static TURN: Mutex<()> = Mutex::const_new(());
        let turn = TURN.lock().await;
        SNAPSHOTS.snapshot();
        Series {
            _turn: turn,
            values: BTreeMap::new(),
        }
    }

    fn value(&mut self, series: &str) -> f64 {
        for (key, _, _, value) in SNAPSHOTS.snapshot().into_vec() {
            let key = key.key();
            let labels = key.labels();
            let labels = labels.map(|label| format!("{}={}", label.key(), label.value()));
            let labels = labels.collect::<Vec<_>>().join(",");
            let name = match labels.is_empty() {
                true => key.name().to_owned(),
                false => format!("{}{{{labels}}}", key.name()),
            };
            // Each snapshot holds the changes since the one before.
            *self.values.entry(name).or_default() += match value {
                DebugValue::Counter(count) => count as f64,
                DebugValue::Gauge(value) => value.into_inner(),
                DebugValue::Histogram(values) => values.len() as f64,
            };
        }
        self.values.get(series).copied().unwrap_or_default()
    }

    async fn becomes(&mut self, series: &str, value: f64) {
        let changes = async {
            while self.value(series) != value {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let changed = tokio::time::timeout(Duration::from_secs(20), changes).await;
        assert!(
            changed.is_ok(),
            "{series} is not {value}: {:#?}",
            self.values
        );
    }

    #[track_caller]
    fn are(&mut self, expected: &[(&str, f64)]) {
        for (series, value) in expected {
            let found = self.value(series);
            assert_eq!(found, *value, "{series} in {:#?}", self.values);
        }
    }
}

fn embedded() -> (LockManager, TestStore) {
    let locks = LockManager::in_memory();
    let store = locks.test_store().expect("an embedded store");
    (locks, store)
}

fn by_a_clock() -> (LockManager, TestStore, ManualClock) {
    let clock = ManualClock::new();
    let builder = LockManager::builder("memory:").clock(clock.clone());
    let locks = builder.connect_lazy().expect("a manager");
    let store = locks.test_store().expect("an embedded store");
    (locks, store, clock)
}

fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    result.map(drop).expect_err("an error").kind()
}

#[tokio::test]
async fn each_acquisition_is_counted_by_its_outcome() {
    let mut series = Series::begin().await;
    let (locks, store) = embedded();
    let owner = locks.lock(KEY).acquire().await.expect("free");
    assert_eq!(kind(locks.lock(KEY).acquire().await), ErrorKind::Busy);
    assert!(
        locks
            .lock(KEY)
            .try_acquire()
            .await
            .expect("an answer")
            .is_none()
    );
    let waits = locks.lock(KEY).wait(Duration::from_millis(1));
    assert_eq!(kind(waits.acquire().await), ErrorKind::Busy);
    {
        let mut dropped = pin!(locks.lock(KEY).wait(Wait::Forever).acquire());
        poll_fn(|context| {
            assert!(dropped.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
    }
    drop(locks.lock(KEY).acquire());
    owner.cooldown(TTL);
    owner.release().await.expect("held");
    assert_eq!(kind(locks.lock(KEY).acquire().await), ErrorKind::Busy);
    store.fail(ErrorKind::Unavailable);
    assert_eq!(
        kind(locks.lock("b").acquire().await),
        ErrorKind::Unavailable
    );
    store.fail(ErrorKind::Misconfigured);
    assert_eq!(
        kind(locks.lock("b").acquire().await),
        ErrorKind::Misconfigured
    );
    series.are(&[
        ("lock_acquisitions_total{outcome=granted}", 1.0),
        ("lock_acquisitions_total{outcome=lock_busy}", 2.0),
        ("lock_acquisitions_total{outcome=timeout}", 1.0),
        ("lock_acquisitions_total{outcome=cancelled}", 1.0),
        ("lock_acquisitions_total{outcome=lock_cooling_down}", 1.0),
        ("lock_acquisitions_total{outcome=lock_unavailable}", 1.0),
        ("lock_acquisitions_total{outcome=lock_misconfigured}", 1.0),
        ("lock_acquire_seconds", 1.0),
        ("lock_hold_seconds", 1.0),
        ("lock_held", 0.0),
        ("lock_waiting", 0.0),
    ]);
    let shown = format!("{:?}", series.values);
    assert!(!shown.contains("alice"), "{shown}");
}

#[tokio::test]
async fn held_locks_and_waiting_tasks_are_gauges() {
    let mut series = Series::begin().await;
    let name = "memory:metrics-gauges";
    let locks = LockManager::connect(name).await.expect("a manager");
    let other = LockManager::connect(name).await.expect("a manager");
    let owner = locks.lock(KEY).acquire().await.expect("free");
    let waits = |locks: &LockManager| locks.lock(KEY).wait(Wait::Forever).acquire();
    // On a slow machine the other manager may have its turn before the second waiter of the first one.
    let waiters = [waits(&locks), waits(&locks), waits(&other)];
    let mut waiters: JoinSet<_> = waiters.into_iter().collect();
    series.becomes("lock_waiting", 3.0).await;
    series.are(&[("lock_held", 1.0)]);
    owner.release().await.expect("held");
    for left in [2.0, 1.0, 0.0] {
        let waiter = waiters.join_next().await.expect("a waiter");
        let guard = waiter.expect("no panic").expect("its turn");
        series.are(&[("lock_held", 1.0)]);
        series.becomes("lock_waiting", left).await;
        guard.release().await.expect("held");
    }
    series.are(&[
        ("lock_held", 0.0),
        ("lock_waiting", 0.0),
        ("lock_acquire_seconds", 4.0),
        ("lock_hold_seconds", 4.0),
    ]);
}

#[tokio::test]
async fn a_nested_body_is_no_acquisition_of_its_own() {
    let mut series = Series::begin().await;
    let (locks, _) = embedded();
    let inner = async { locks.lock(KEY).run(async {}).await };
    locks
        .lock(KEY)
        .run(inner)
        .await
        .expect("free")
        .expect("entered");
    series.are(&[
        ("lock_acquisitions_total{outcome=granted}", 1.0),
        ("lock_hold_seconds", 1.0),
        ("lock_held", 0.0),
    ]);
}

#[tokio::test]
async fn each_loss_is_counted_once_by_its_reason() {
    let mut series = Series::begin().await;
    let (locks, store, clock) = by_a_clock();
    let deleted = locks
        .lock("deleted")
        .ttl(TTL)
        .acquire()
        .await
        .expect("free");
    let request = locks.lock("expired").ttl(TTL).renew(Renew::Off);
    let expired = request.acquire().await.expect("free");
    let request = locks.lock("unnoticed").ttl(TTL).renew(Renew::Off);
    let unnoticed = request.acquire().await.expect("free");
    let request = locks.lock("long").ttl(TTL).max_hold(TTL / 2);
    let long = request.acquire().await.expect("free");
    let kept = locks.lock("kept").ttl(TTL).acquire().await.expect("free");

    assert!(store.lose("deleted"));
    clock.advance(TTL / 3);
    deleted.lost().await;
    series
        .becomes("lock_renewals_total{outcome=renewed}", 2.0)
        .await;
    clock.advance(TTL / 3);
    long.lost().await;
    series
        .becomes("lock_renewals_total{outcome=renewed}", 3.0)
        .await;
    clock.advance(TTL / 3);
    // The owner may notice it before the keeper, in the release.
    assert_eq!(kind(unnoticed.release().await), ErrorKind::Lost);
    expired.lost().await;
    series
        .becomes("lock_losses_total{reason=expired}", 2.0)
        .await;
    for lost in [deleted, long, expired] {
        assert!(!lost.is_valid());
        assert_eq!(kind(lost.release().await), ErrorKind::Lost);
    }
    kept.release().await.expect("held");
    series.are(&[
        ("lock_losses_total{reason=not_ours}", 1.0),
        ("lock_losses_total{reason=expired}", 2.0),
        ("lock_losses_total{reason=max_hold}", 1.0),
        ("lock_held", 0.0),
        ("lock_hold_seconds", 5.0),
    ]);
}

#[tokio::test]
async fn renewals_are_counted_with_those_that_failed() {
    let mut series = Series::begin().await;
    let (locks, store, clock) = by_a_clock();
    let guards = [
        locks.lock("a").ttl(TTL).acquire().await.expect("free"),
        locks.lock("b").ttl(TTL).acquire().await.expect("free"),
    ];
    clock.advance(TTL / 3);
    series
        .becomes("lock_renewals_total{outcome=renewed}", 2.0)
        .await;
    series.are(&[("lock_renewals_total{outcome=failed}", 0.0)]);
    store.fail(ErrorKind::Unavailable);
    clock.advance(TTL / 3);
    series
        .becomes("lock_renewals_total{outcome=failed}", 2.0)
        .await;
    store.recover();
    // A renewal without an answer is repeated soon.
    clock.advance(TTL / 12);
    series
        .becomes("lock_renewals_total{outcome=renewed}", 4.0)
        .await;
    assert!(guards.iter().all(|guard| guard.is_valid()));
}
