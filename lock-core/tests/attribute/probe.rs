//! A value that tells, when it is dropped, whether the lock was still held.

use std::sync::{Arc, Mutex};

use lock_core::LockManager;

/// What the probes of one test saw, in the order of their drops.
#[derive(Clone)]
pub struct Watch {
    locks: LockManager,
    seen: Arc<Mutex<Vec<(&'static str, bool)>>>,
}

impl Watch {
    pub fn new(locks: &LockManager) -> Watch {
        Watch { locks: locks.clone(), seen: Arc::default() }
    }

    pub fn probe(&self, name: &'static str) -> Probe {
        Probe { name, watch: self.clone() }
    }

    /// The names of the dropped probes; each must have been dropped under the lock.
    #[track_caller]
    pub fn all_under_the_lock(&self) -> Vec<&'static str> {
        let seen = self.seen.lock().expect("no probe panics");
        for (name, held) in seen.iter() {
            assert!(held, "`{name}` outlived the lock: {seen:?}");
        }
        seen.iter().map(|(name, _)| *name).collect()
    }
}

pub struct Probe {
    name: &'static str,
    watch: Watch,
}

impl Drop for Probe {
    fn drop(&mut self) {
        let held = !self.watch.locks.held().is_empty();
        self.watch.seen.lock().expect("no probe panics").push((self.name, held));
    }
}
