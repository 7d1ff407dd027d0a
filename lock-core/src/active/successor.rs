//! Handing a lease from one owner to the next inside a process.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};

use super::{ActiveLease, LeaseState};
use crate::base::clock::Moment;
use crate::base::sync::{lock, wake_all};
use crate::lease::LeaseOptions;

impl ActiveLease {
    /// Makes the lease of the next owner: the same token, the next fencing token, and a window, limit and
    /// cooldown of its own. `None`: the lease has to go back to the store.
    pub(crate) fn succeeded_by(self: &Arc<Self>, options: LeaseOptions) -> Option<Arc<Self>> {
        let now = self.now();
        let mut state = lock(&self.state);
        let bodies = state.bodies.as_ref().is_some_and(|bodies| bodies.is_open());
        let fence = state.fence?.next()?;
        let cohort = state.cohort.passed(now)?;
        if bodies || state.is_checked || state.leaves_a_gap(now) {
            return None;
        }
        // The queue is locked, so `close` notices the loss: it is counted by the recorder of the application.
        if state.lease.remaining(now).is_zero() {
            return None;
        }
        let lease = state.lease.pass(options, now)?;
        Some(Arc::new(Self {
            key: Arc::clone(&self.key),
            token: self.token,
            clock: self.clock.clone(),
            state: Mutex::new(LeaseState {
                fence: Some(fence),
                granted_at: now,
                cohort,
                late_duplicate: state.late_duplicate,
                in_handoff: true,
                ..LeaseState::new(lease)
            }),
            scheduled: AtomicU64::new(Moment::FAR.0),
            group: OnceLock::new(),
        }))
    }

    /// Picks the lease up, or takes it back. `true` for the first call only.
    #[must_use]
    pub(crate) fn pick_up(&self) -> bool {
        std::mem::take(&mut lock(&self.state).in_handoff)
    }

    /// Returns the time of the hand-over if the lease was not picked up.
    pub(crate) fn in_handoff_since(&self) -> Option<Moment> {
        let state = lock(&self.state);
        state.in_handoff.then_some(state.granted_at)
    }

    /// Returns whether to ask now which processes wait for the key, at most once in each count of the cohort.
    pub(crate) fn is_to_look(&self) -> bool {
        let now = self.now();
        lock(&self.state).cohort.is_to_look(now)
    }

    /// Notes that no process waited for the key at some moment after `then`.
    pub(crate) fn found_no_waiter(&self, then: Moment) {
        lock(&self.state).cohort.found_no_waiter(then);
    }

    /// Wakes the tasks that watch the lease, because its owner has ended.
    pub(crate) fn wake_waiting(&self) {
        let waiting = lock(&self.state).waiting.take();
        wake_all(waiting);
    }
}
