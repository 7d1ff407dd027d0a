//! Hints of the store that the key of a lease was changed.

use std::time::Duration;

use super::ActiveLease;
use crate::base::sync::lock;

/// All leases are renewed within this time when the store has lost track of their keys.
const SPREAD_MILLIS: u64 = 1_000;

impl ActiveLease {
    /// Makes a renewal due soon, because the store says that the key was changed. The engine has to arm the lease.
    pub(crate) fn hint(&self) {
        let now = self.now();
        lock(&self.state).lease.hint(now);
    }

    /// Makes a renewal due within a second, because the store does not watch the key any more. The engine has to arm the
    /// lease.
    pub(crate) fn watch_again(&self) {
        let at = self.now() + Duration::from_millis(self.token.seed() % SPREAD_MILLIS);
        lock(&self.state).lease.watch_again(at);
    }
}
