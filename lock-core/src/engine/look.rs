//! Asking the store which processes wait for a lease that passes from task to task of this one.

use std::sync::Arc;

use super::Engine;
use crate::active::ActiveLease;
use crate::base::machine;
use crate::store::{Inspect, Lane, Operation, OperatorOperation, OperatorOutcome, Outcome};

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
    let question = Operation::Operator(question);
    let answer = engine.store.execute(question, Lane::of_this_task());
    let answer = engine
        .timers
        .before(asked + engine.operation_timeout, answer);
    if let Some(Outcome::Operator(OperatorOutcome::Inspected(seen))) = answer.await
        && seen.waiter_count == 0
    {
        engine.queue.found_no_waiter(&lease, asked);
    }
}
