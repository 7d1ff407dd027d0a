//! A lease that goes on from one tenure to the next inside its process, and for how long.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use super::{ActiveLease, State};
use crate::base::clock::Moment;
use crate::base::sync::{WakerSet, lock, wake_all};
use crate::lease::LeaseOptions;

impl ActiveLease {
    /// The lease goes on as another tenure's: same token, the next fencing token, a window, a limit
    /// and a cooldown of its own. `None`: it must not.
    pub(crate) fn succeeded_by(self: &Arc<Self>, options: LeaseOptions) -> Option<Arc<Self>> {
        let now = self.now();
        let mut state = lock(&self.state);
        let bodies = state.bodies.as_ref().is_some_and(|bodies| bodies.is_open());
        let fence = state.fence?.next()?;
        let cohort = state.cohort.passed(now)?;
        if bodies || state.leaves_a_gap(now) {
            return None;
        }
        let lease = state.lease.pass(options, now)?;
        Some(Arc::new(Self {
            key: Arc::clone(&self.key),
            token: self.token,
            clock: self.clock.clone(),
            state: Mutex::new(State {
                lease,
                fence: Some(fence),
                granted_at: now,
                cohort,
                gap: false,
                cooldown_millis: 0,
                late_duplicate: state.late_duplicate,
                unpolled: false,
                in_handoff: true,
                waiting: WakerSet::default(),
                bodies: None,
                watch: None,
            }),
            scheduled: AtomicU64::new(Moment::FAR.0),
        }))
    }

    /// It is picked up, or taken back: by the first who says so.
    #[must_use]
    pub(crate) fn pick_up(&self) -> bool {
        std::mem::take(&mut lock(&self.state).in_handoff)
    }

    /// When it was passed on, if it has not been picked up.
    pub(crate) fn in_handoff_since(&self) -> Option<Moment> {
        let state = lock(&self.state);
        state.in_handoff.then_some(state.granted_at)
    }

    /// Whether to look now for whoever else wants the key: once before each end of the cohort.
    #[must_use]
    pub(crate) fn looks_around(&self) -> bool {
        let now = self.now();
        lock(&self.state).cohort.check_is_due(now)
    }

    /// At some time after `then` it was looked whether anybody else waits.
    pub(crate) fn has_looked(&self, then: Moment, somebody_waits: bool) {
        let mut state = lock(&self.state);
        if !somebody_waits {
            state.cohort.restart(then);
        }
    }

    /// Those who watch it find out that its tenure is over.
    pub(crate) fn wake_waiting(&self) {
        let waiting = lock(&self.state).waiting.take();
        wake_all(waiting);
    }
}
