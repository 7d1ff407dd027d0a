//! The loss of one key of a lock is the loss of all of them.

use crate::active::ActiveLease;
use crate::engine::Engine;
use crate::lease::Phase;

impl Engine {
    /// Loses the other leases of the lock with this one, which is lost. Their keys stay in the store until the owner has
    /// ended.
    pub(in crate::engine) fn lose_others(&self, lease: &ActiveLease) {
        let Phase::Lost(loss) = lease.noticed_phase() else {
            return;
        };
        for other in lease.others() {
            if other.lose_with(loss.of_the_others()) {
                self.keeper.disarm(&other);
                self.queue.abandon(&other);
            }
        }
    }

    /// Returns the phase of a lock of several keys whose first lease is held.
    pub(in crate::engine) fn phase_of_all(&self, leader: &ActiveLease) -> Phase {
        for other in leader.followers() {
            let (phase, lost) = other.observe();
            if lost {
                self.queue.abandon(other);
            }
            if let Phase::Lost(_) = phase {
                self.lose_others(other);
            }
        }
        leader.noticed_phase()
    }
}
