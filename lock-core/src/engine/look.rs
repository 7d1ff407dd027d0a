//! Asking the store which processes wait for a lease that passes from task to task of this one.

use std::sync::Arc;

use super::Engine;
use crate::active::ActiveLease;
use crate::base::machine;
use crate::store::{Inspect, OperatorOperation, OperatorOutcome};

impl Engine {
    /// Asks once, in the background. Without an answer the lease is released at its limit, as if a process waited.
    ///
    /// The runtime of the owner that has ended asks, because the keeper's thread would take a core from the next owner.
    pub(super) fn look_for_waiters(self: &Arc<Self>, lease: Arc<ActiveLease>) {
        let limits = self.store.limits();
        if limits.hands_over
            && limits.long_cohorts
            && let Some(runtime) = machine::runtime()
        {
            runtime.spawn(look(Arc::clone(self), lease));
        }
    }
}

async fn look(engine: Arc<Engine>, lease: Arc<ActiveLease>) {
    let asked = engine.now();
    let question = OperatorOperation::Inspect(Inspect {
        key: Arc::clone(&lease.key),
        register: None,
    });
    if let Ok(OperatorOutcome::Inspected(seen)) = engine.operate(question).await
        && seen.waiter_count == 0
    {
        engine.queue.found_no_waiter(&lease, asked);
    }
}
