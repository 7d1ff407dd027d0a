//! A release that its caller does not wait for, sent by the caller's runtime.
//!
//! The connection of that runtime is at hand, and no thread has to be woken for it. The release is not even
//! sent if the next task wants the lock at once and steps over the lease. But a runtime may be blocked, or
//! end. So the keeper takes over a release that the runtime drops, or does not finish within a moment.
//!
//! # Why it may be left out
//!
//! The question of the next task names the token of the lease and steps over it, in one script. A release
//! that was sent before on the same lane need not even be named. A runtime that is blocked, or has ended,
//! delays no waiter by more than 100 ms, because the keeper then sends the release.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use super::cleanup::Cleanup;
use crate::base::machine;
use crate::base::sync::lock;
use crate::engine::Engine;
use crate::keeper::OpenTask;
use crate::queue::Supersede;
use crate::store::{Lane, Operation, Outcome};

/// Longer than most answers take, so that few releases are sent twice, and short for the next owner.
const PATIENCE: Duration = Duration::from_millis(100);

/// A release on its way.
pub(super) struct DeferredRelease {
    /// `None` once it is done, or the keeper does it.
    cleanup: Mutex<Option<(Cleanup, OpenTask)>>,
}

/// The time at which the runtime sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Before the call returns, as far as that needs no waiting.
    Now,
    /// Behind the tasks that are ready by now, unless one of them steps over it.
    Soon,
}

impl DeferredRelease {
    /// Makes a release that the keeper takes over if it is not done within [`PATIENCE`].
    pub(super) fn new(cleanup: Cleanup) -> Arc<Self> {
        let engine = Arc::clone(cleanup.engine());
        let open = engine.keeper.open_task();
        let deferred = Arc::new(Self {
            cleanup: Mutex::new(Some((cleanup, open))),
        });
        let overdue = engine.now() + PATIENCE;
        let hurry = Waker::from(Arc::clone(&deferred));
        engine.timers.wake_at(overdue, &hurry);
        deferred
    }

    /// Has the calling task's runtime send it, by `lane`.
    pub(super) fn go(self: Arc<Self>, lane: Lane, start: Start) {
        let Some(runtime) = machine::runtime() else {
            return self.hurry();
        };
        let going = Carrier(Some(self)).carry(lane);
        match start {
            Start::Soon => drop(runtime.spawn(going)),
            Start::Now => {
                let mut going = Box::pin(going);
                let mut no_task = Context::from_waker(Waker::noop());
                if going.as_mut().poll(&mut no_task).is_pending() {
                    runtime.spawn(going);
                }
            }
        }
    }

    /// Returns the operation that ends the lease, and the engine that sends it.
    fn operation(&self) -> Option<(Arc<Engine>, Operation)> {
        let cleanup = lock(&self.cleanup);
        let (cleanup, _) = cleanup.as_ref()?;
        Some((Arc::clone(cleanup.engine()), cleanup.operation()?))
    }

    fn finish(&self, outcome: &Outcome) {
        if let Some((cleanup, open)) = self.take() {
            cleanup.note(outcome);
            cleanup.complete(open);
        }
    }

    fn take(&self) -> Option<(Cleanup, OpenTask)> {
        lock(&self.cleanup).take()
    }
}

impl Supersede for DeferredRelease {
    fn supersede(&self) {
        drop(self.take());
    }

    fn hurry(&self) {
        if let Some((cleanup, open)) = self.take() {
            cleanup.run_on_keeper(open);
        }
    }
}

impl Wake for DeferredRelease {
    fn wake(self: Arc<Self>) {
        self.hurry();
    }
}

/// Carries the release. Dropped on the way, it leaves the release to the keeper.
struct Carrier(Option<Arc<DeferredRelease>>);

impl Carrier {
    async fn carry(mut self, lane: Lane) {
        let Some(deferred) = &self.0 else {
            return;
        };
        let Some((engine, operation)) = deferred.operation() else {
            return;
        };
        if !engine.queue.sends_release(&operation, lane) {
            // A task is stepping over the lease, or has done so. If that fails, the release is remembered.
            self.0 = None;
            return;
        }
        // Any other answer is left to the keeper.
        let outcome = engine.store.execute(operation, lane).await;
        if outcome.has_ended() {
            deferred.finish(&outcome);
        }
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        if let Some(deferred) = &self.0 {
            deferred.hurry();
        }
    }
}
