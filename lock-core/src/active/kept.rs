//! Values that keep a lease for work which outlives its owner, such as a blocking call on another thread.
//!
//! The owner and the bodies of a lease are futures, and end where they are dropped. Work on another thread goes on. So
//! the lease counts such work, and the end of its owner is put off until the count is zero.

use super::ActiveLease;
use crate::base::sync::lock;
use crate::lease::Phase;

impl ActiveLease {
    /// Counts one more value that keeps this lease, if the lease is held. Returns the phase that was noticed last.
    pub(crate) fn keep(&self) -> Phase {
        let mut state = lock(&self.state);
        let phase = state.lease.phase();
        if phase == Phase::Held {
            state.bodies().kept += 1;
        }
        phase
    }

    /// Counts one such value less. `true`: it was the last one inside and the owner had ended before it, so the caller
    /// has to end the lease.
    #[must_use]
    pub(crate) fn let_go(&self) -> bool {
        self.count_less(|bodies| bodies.kept -= 1)
    }
}
