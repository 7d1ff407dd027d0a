//! The times at which leases are due.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::active::ActiveLease;
use crate::base::clock::Moment;

/// The leases, by time.
#[derive(Default)]
pub(super) struct Schedule {
    leases: BTreeMap<(Moment, Name), Arc<ActiveLease>>,
}

/// Tells a lease from all others: the random number of its token, and its address, because an owner that is downgraded has
/// one token in two leases. The entry keeps the lease alive. The number comes first, so that leases of one time are due in
/// the same order in each run of a simulation.
type Name = (u64, usize);

fn name(lease: &Arc<ActiveLease>) -> Name {
    (lease.token.seed(), Arc::as_ptr(lease).addr())
}

impl Schedule {
    /// Plans the next look at a lease, and drops its earlier entry.
    pub(super) fn set(&mut self, lease: &Arc<ActiveLease>, at: Moment) {
        self.remove(lease);
        if at < Moment::FAR {
            lease.set_scheduled(at);
            self.leases.insert((at, name(lease)), Arc::clone(lease));
        }
    }

    pub(super) fn remove(&mut self, lease: &Arc<ActiveLease>) {
        let at = lease.scheduled();
        if at < Moment::FAR {
            self.leases.remove(&(at, name(lease)));
            lease.set_scheduled(Moment::FAR);
        }
    }

    pub(super) fn next(&self) -> Moment {
        let first = self.leases.first_key_value();
        first.map_or(Moment::FAR, |((at, _), _)| *at)
    }

    /// Takes out up to `limit` leases that are due.
    pub(super) fn take_due(&mut self, now: Moment, limit: usize) -> Vec<Arc<ActiveLease>> {
        let mut due = Vec::new();
        while due.len() < limit
            && let Some(entry) = self.leases.first_entry()
            && entry.key().0 <= now
        {
            let lease = entry.remove();
            lease.set_scheduled(Moment::FAR);
            due.push(lease);
        }
        due
    }
}
