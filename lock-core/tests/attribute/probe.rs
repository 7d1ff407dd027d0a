//! A value whose drop records whether the lock was still held.

use std::sync::{Arc, Mutex};

use lock_core::LockManager;

/// The records of one test's probes, in the order of their drops.
#[derive(Clone)]
pub(crate) struct Watch {
    locks: LockManager,
    is_held: fn(&LockManager) -> bool,
    seen: Arc<Mutex<Vec<(&'static str, bool)>>>,
}

impl Watch {
    /// The probes ask the manager, which gives a key up before it sends the release.
    pub(crate) fn new(locks: &LockManager) -> Watch {
        Watch {
            locks: locks.clone(),
            is_held: |locks| !locks.held().is_empty(),
            seen: Arc::default(),
        }
    }

    /// The probes ask the store, which also knows of lost locks before their release.
    #[cfg(feature = "test-util")]
    pub(crate) fn of_the_store(locks: &LockManager) -> Watch {
        Watch {
            is_held: |locks| locks.test_store().expect("an embedded store").taken() > 0,
            ..Watch::new(locks)
        }
    }

    pub(crate) fn probe(&self, name: &'static str) -> Probe {
        Probe {
            name,
            watch: self.clone(),
        }
    }

    /// Returns the names of the dropped probes, which must all have had the lock.
    #[track_caller]
    pub(crate) fn all_under_the_lock(&self) -> Vec<&'static str> {
        let seen = self.seen.lock().expect("no probe panics");
        for (name, held) in seen.iter() {
            assert!(held, "`{name}` outlived the lock: {seen:?}");
        }
        drop(seen);
        self.names()
    }

    /// Returns the names of the dropped probes, in their order.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let seen = self.seen.lock().expect("no probe panics");
        seen.iter().map(|(name, _)| *name).collect()
    }
}

pub(crate) struct Probe {
    name: &'static str,
    watch: Watch,
}

impl Drop for Probe {
    fn drop(&mut self) {
        let held = (self.watch.is_held)(&self.watch.locks);
        self.watch
            .seen
            .lock()
            .expect("no probe panics")
            .push((self.name, held));
    }
}
