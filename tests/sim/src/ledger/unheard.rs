//! Waiters that are not told of the end of a lease, and ask at last when an earlier, longer one would have ended.
//!
//! The server tells no waiter of a lease that ends by itself. A waiter asks when the lease ends for which it was refused. The
//! next owner may have a shorter one, and end first.

use super::{Call, Ledger};
use crate::plan::Plan;
use crate::world::{SECOND, State};

/// The longest time after which a waiter asks without a push.
pub(super) const LAST_RESORT: u64 = 31 * SECOND;
/// A renewal before the end of a process may arrive later than that.
const ON_ITS_WAY: u64 = SECOND;

impl Ledger {
    /// Returns whether the lease of a key that is free since `free` has ended by itself, because its process had ended, and
    /// another lease may have been longer.
    pub(super) fn is_end_unheard(&self, plan: &Plan, state: &State, key: usize, free: u64) -> bool {
        let ended_by_itself = |it: &Call| {
            let lasts = it.ttl + it.ttl / 50 + ON_ITS_WAY;
            let ended = || state.processes.get(it.process)?.ended;
            let end = plan.dies(it.process).or_else(ended);
            it.keys.contains(&key)
                && it.released.is_none()
                && end.is_some_and(|end| (end..end + lasts).contains(&free))
        };
        plan.ttls.len() > 1 && self.calls.iter().any(ended_by_itself)
    }
}
