//! A value that tells, when it is dropped, whether the lock was still held.
//!
//! With the feature `test-util` the store itself is asked, which also knows of a lock that is lost but
//! not yet released.

use std::sync::{Arc, Mutex};

use lock_core::LockManager;

/// What the probes of one test saw, in the order of their drops.
#[derive(Clone)]
pub(crate) struct Watch {
    locks: LockManager,
    seen: Arc<Mutex<Vec<(&'static str, bool)>>>,
}

impl Watch {
    pub(crate) fn new(locks: &LockManager) -> Watch {
        Watch {
            locks: locks.clone(),
            seen: Arc::default(),
        }
    }

    pub(crate) fn probe(&self, name: &'static str) -> Probe {
        Probe {
            name,
            watch: self.clone(),
        }
    }

    /// The names of the dropped probes; each must have been dropped under the lock.
    #[track_caller]
    pub(crate) fn all_under_the_lock(&self) -> Vec<&'static str> {
        let seen = self.seen.lock().expect("no probe panics");
        for (name, held) in seen.iter() {
            assert!(held, "`{name}` outlived the lock: {seen:?}");
        }
        drop(seen);
        self.names()
    }

    /// The names of the dropped probes, in their order.
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
        let held = is_held(&self.watch.locks);
        self.watch
            .seen
            .lock()
            .expect("no probe panics")
            .push((self.name, held));
    }
}

#[cfg(feature = "test-util")]
fn is_held(locks: &LockManager) -> bool {
    locks.test_store().expect("an embedded store").taken() > 0
}

#[cfg(not(feature = "test-util"))]
fn is_held(locks: &LockManager) -> bool {
    !locks.held().is_empty()
}
