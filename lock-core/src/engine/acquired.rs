//! Locks that were acquired and have no guard yet.

use std::sync::Arc;

use super::Engine;
use super::attempt::Attempt;
use crate::active::ActiveLease;
use crate::queue::Handoff;

/// A lock that was acquired. Dropped before it is settled, it is undone or goes to the next waiter.
pub(crate) enum Acquired {
    FromStore(Attempt),
    FromTask(Handoff),
    /// The leases of several keys, the leader first.
    Several(Vec<Collected>),
    /// The lease that took the place of a ticket or of a writer.
    FromSwap(Collected),
}

impl Acquired {
    pub(crate) fn lease(&self) -> &Arc<ActiveLease> {
        match self {
            Acquired::FromStore(attempt) => &attempt.lease,
            Acquired::FromTask(handoff) => handoff.lease(),
            Acquired::Several(leases) => leases[0].lease(),
            Acquired::FromSwap(lease) => lease.lease(),
        }
    }

    /// Its guard looks after it from here on.
    pub(crate) fn settle(self) {
        match self {
            Acquired::FromStore(attempt) => attempt.settle(),
            Acquired::FromTask(handoff) => handoff.has_a_guard(),
            Acquired::Several(leases) => leases.into_iter().for_each(Collected::settle),
            Acquired::FromSwap(lease) => lease.settle(),
        }
    }
}

/// A held lease of a lock that has no guard yet. Dropped before it has one, it is given back like a dropped guard.
pub(crate) struct Collected {
    engine: Arc<Engine>,
    lease: Arc<ActiveLease>,
    has_a_guard: bool,
}

impl Collected {
    pub(super) fn new(engine: &Arc<Engine>, acquired: Acquired) -> Self {
        let collected = Self::of(engine, acquired.lease());
        acquired.settle();
        collected
    }

    pub(crate) fn of(engine: &Arc<Engine>, lease: &Arc<ActiveLease>) -> Self {
        // Counts like a guard, because `drain` waits for it.
        engine.keeper.guard_made();
        Self {
            engine: Arc::clone(engine),
            lease: Arc::clone(lease),
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
