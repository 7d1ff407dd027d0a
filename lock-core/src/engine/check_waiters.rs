//! Asking whether other processes wait for a lease that goes from task to task of this one.

use std::sync::Arc;

use super::Engine;
use crate::active::ActiveLease;
use crate::store::{Lane, Operation, Outcome, Release};

impl Engine {
    /// Asks once. Without an answer the lease is given back in good time, as if another process waited.
    ///
    /// Asks on the runtime of the owner that has ended, where its acquires go too, because the keeper's
    /// thread would come between this owner and the next.
    pub(super) fn check_waiters(self: &Arc<Self>, lease: &ActiveLease) {
        let engine = Arc::clone(self);
        let release = lease.release();
        let route = self.store.acquire_route(self.tokens.manager());
        if route.lane.runtime().is_some()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(check(engine, release, Lane::of_this_task()));
            return;
        }
        let open = self.keeper.open_task();
        self.keeper.run(Box::pin(async move {
            check(engine, release, Lane::KEEPER).await;
            drop(open);
        }));
    }
}

async fn check(engine: Arc<Engine>, release: Release, lane: Lane) {
    let asked = engine.now();
    let answer = engine.store.execute(Operation::Look(release.clone()), lane);
    let overdue = asked + engine.operation_timeout;
    if let Some(Outcome::Waiting(waits)) = engine.timers.before(overdue, answer).await {
        let queue = &engine.queue;
        queue.has_looked(&release.key, release.token, asked, waits);
    }
}
