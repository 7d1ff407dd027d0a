//! A lease that is held while the other keys of its lock are still acquired.

use std::sync::Arc;

use crate::active::ActiveLease;
use crate::engine::Engine;
use crate::engine::acquire::Acquired;

/// One lease of a lock of several keys. Dropped before the lock has a guard, it is given back like a dropped guard.
pub(crate) struct Collected {
    engine: Arc<Engine>,
    lease: Arc<ActiveLease>,
    has_a_guard: bool,
}

impl Collected {
    pub(super) fn new(engine: &Arc<Engine>, acquired: Acquired) -> Self {
        // Counts like a guard, because `drain` waits for it.
        engine.keeper.guard_made();
        let lease = Arc::clone(acquired.lease());
        acquired.settle();
        Self {
            engine: Arc::clone(engine),
            lease,
            has_a_guard: false,
        }
    }

    pub(crate) fn lease(&self) -> &Arc<ActiveLease> {
        &self.lease
    }

    /// The guard of the lock looks after it from here on.
    pub(crate) fn settle(mut self) {
        self.has_a_guard = true;
    }
}

impl Drop for Collected {
    fn drop(&mut self) {
        if !self.has_a_guard {
            self.engine.end_in_background(&self.lease);
        }
        self.engine.keeper.guard_ended();
    }
}
