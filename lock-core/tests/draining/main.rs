//! A drain between a grant and its guard. Alone in its process, because it hears the spans of a thread.
#![allow(clippy::disallowed_methods, reason = "tests run on the real machine")]

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use lock_core::{Drained, Error, LockGuard, LockManager};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Drains the manager from another thread while the span of an acquire notes the grant. The guard is made after that.
struct DrainsAtTheGrant {
    locks: LockManager,
    drained: Arc<Mutex<Option<Drained>>>,
    spans: AtomicU64,
    /// The name of a span that also begins a drain.
    at: &'static str,
}

impl DrainsAtTheGrant {
    fn drain(&self) {
        let locks = self.locks.clone();
        let draining = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(locks.drain(Duration::from_millis(100)))
        });
        *self.drained.lock().unwrap() = Some(draining.join().unwrap());
    }
}

/// Finds the outcome of a grant.
#[derive(Default)]
struct IsAcquired(bool);

impl Visit for IsAcquired {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 |= field.name() == "outcome" && format!("{value:?}") == "\"acquired\"";
    }
}

impl Subscriber for DrainsAtTheGrant {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        // A guard opens it before it counts.
        if span.metadata().name() == self.at {
            self.drain();
        }
        Id::from_u64(1 + self.spans.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut acquired = IsAcquired::default();
        values.record(&mut acquired);
        if acquired.0 {
            self.drain();
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Takes a lock while a drain comes between its grant and its guard.
fn drains(
    locks: &LockManager,
    at: &'static str,
    taking: impl Future<Output = Result<LockGuard, Error>>,
) {
    let drained = Arc::new(Mutex::new(None));
    let subscriber = DrainsAtTheGrant {
        locks: locks.clone(),
        drained: Arc::clone(&drained),
        spans: AtomicU64::new(0),
        at,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let guard = tracing::subscriber::with_default(subscriber, || runtime.block_on(taking).unwrap());
    let drained = drained.lock().unwrap().take().expect("a drain");
    assert_eq!(drained.held(), 1, "the process holds a lock: {drained:?}");
    drop(guard);
    let left = runtime.block_on(locks.drain(Duration::from_secs(10)));
    assert!(left.is_complete(), "{left:?}");
}

#[test]
fn a_drain_between_a_grant_and_its_guard_waits_for_the_guard() {
    let locks = LockManager::in_memory();
    drains(&locks, "", async { locks.lock("order:42").acquire().await });
}

#[test]
fn a_drain_between_the_answer_to_a_ticket_and_its_guard_waits_for_the_guard() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = "memory:draining";
    let (first, locks) = runtime.block_on(async {
        (
            LockManager::connect(store).await.unwrap(),
            LockManager::connect(store).await.unwrap(),
        )
    });
    let ticket = runtime.block_on(async {
        let guard = first.lock("order:42").acquire().await.unwrap();
        guard.ticket(Duration::from_secs(60)).await.unwrap()
    });
    drains(&locks, "lock.hold", locks.resume(ticket));
}
