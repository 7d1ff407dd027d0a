//! A lease while a contender asks for it.

use std::sync::Arc;
use std::task::Waker;

use super::ActiveLease;
use crate::base::clock::Moment;
use crate::base::fence::FencingToken;
use crate::base::sync::lock;
use crate::lease::Phase;
use crate::lease::cohort::Cohort;
use crate::store::{AcquireCommand, Queueing, Replaced};

impl ActiveLease {
    pub(crate) fn ask(&self, overdue: Moment) {
        lock(&self.state).lease.ask(overdue);
    }

    /// Notes the store's grant. `false`: the grant came too late to count.
    #[must_use]
    pub(crate) fn grant(&self, sent: Moment, fence: FencingToken) -> bool {
        let now = self.now();
        let mut state = lock(&self.state);
        state.fence = Some(fence);
        state.granted_at = now;
        state.cohort = Cohort::new(now);
        state.lease.grant(sent, now)
    }

    /// Notes that the store has handed the key to this lease until `deadline`. `false`: that is too soon to
    /// count.
    #[must_use]
    pub(crate) fn take_over(&self, deadline: Moment, fence: FencingToken) -> bool {
        let now = self.now();
        let mut state = lock(&self.state);
        let counts = state.lease.take_over(deadline, now);
        if counts {
            state.fence = Some(fence);
            state.granted_at = now;
            state.cohort = Cohort::new(now);
        }
        counts
    }

    pub(crate) fn acquire(
        &self,
        queueing: Queueing,
        replaces: Option<Replaced>,
        repeated: bool,
    ) -> AcquireCommand {
        AcquireCommand {
            key: Arc::clone(&self.key),
            token: self.token,
            ttl: self.ttl(),
            queueing,
            replaces,
            repeated,
        }
    }

    /// Returns whether another task has ended the lease.
    pub(crate) fn is_closed(&self) -> bool {
        self.noticed_phase() == Phase::Closed
    }

    /// Returns the wakers of the future that asks for the lease, to find out whether it is polled. `None`: it
    /// was not polled since the last call.
    pub(crate) fn probe(&self) -> Option<Vec<(u32, Waker)>> {
        let mut state = lock(&self.state);
        let asked_before = std::mem::replace(&mut state.unpolled, true);
        (!asked_before).then(|| state.waiting.take())
    }

    /// Returns whether the future was not polled since [`probe`](Self::probe).
    pub(crate) fn is_unpolled(&self) -> bool {
        lock(&self.state).unpolled
    }

    pub(crate) fn note_late_duplicate(&self) {
        lock(&self.state).late_duplicate = true;
    }

    pub(crate) fn has_late_duplicate(&self) -> bool {
        lock(&self.state).late_duplicate
    }
}
