//! Several leases that are one lock: the first one leads, and the others follow it.
//!
//! Guard and handles know the leader only. A lock of several keys is held while all its leases are held. Each lease
//! keeps its own token, deadline and renewals, and the engine loses all of them with the first one that is lost.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{ActiveLease, tell};
use crate::base::clock::Moment;
use crate::base::fence::FencingToken;
use crate::base::sync::lock;
use crate::lease::{LeaseOptions, Loss};

/// The place of a lease in its group.
pub(super) enum Membership {
    Leads(Box<[Arc<ActiveLease>]>),
    Follows(Weak<ActiveLease>),
}

impl ActiveLease {
    /// Makes the lease one of several, with the fencing token of all and the options of the lock.
    pub(crate) fn join(&self, fence: FencingToken, options: LeaseOptions) {
        let now = self.now();
        let mut state = lock(&self.state);
        state.fence = Some(fence);
        state.granted_at = now;
        state.lease.join(options, now);
    }

    /// Makes this lease the first of several.
    pub(crate) fn lead(self: &Arc<Self>, followers: Vec<Arc<Self>>) {
        for follower in &followers {
            let follows = Membership::Follows(Arc::downgrade(self));
            let _ = follower.group.set(Box::new(follows));
            // The first one warns of a very long hold.
            lock(&follower.state).lease.warn_at(Moment::FAR);
        }
        let leads = Membership::Leads(followers.into());
        let _ = self.group.set(Box::new(leads));
    }

    /// The leases that follow this one; none for a lock of one key.
    pub(crate) fn followers(&self) -> &[Arc<Self>] {
        match self.group.get().map(|membership| &**membership) {
            Some(Membership::Leads(followers)) => followers,
            Some(Membership::Follows(_)) | None => &[],
        }
    }

    /// The other leases of the same lock.
    pub(crate) fn others(&self) -> Vec<Arc<Self>> {
        match self.group.get().map(|membership| &**membership) {
            None => Vec::new(),
            Some(Membership::Leads(followers)) => followers.to_vec(),
            Some(Membership::Follows(leader)) => {
                let Some(leader) = leader.upgrade() else {
                    return Vec::new();
                };
                let followers = leader.followers().iter();
                let others = followers.filter(|other| !std::ptr::eq(&raw const ***other, self));
                let others: Vec<_> = others.cloned().collect();
                [vec![leader], others].concat()
            }
        }
    }

    /// All leases of the lock that this lease leads, itself first.
    pub(crate) fn members(self: &Arc<Self>) -> impl Iterator<Item = &Arc<Self>> {
        std::iter::once(self).chain(self.followers())
    }

    /// Returns whether the lock that this lease leads has the key.
    pub(crate) fn covers(&self, key: &str) -> bool {
        *self.key == *key || self.followers().iter().any(|other| *other.key == *key)
    }

    /// Returns how long all leases of the lock last without another renewal.
    pub(crate) fn remaining_of_all(&self) -> Duration {
        let now = self.now();
        let followers = self.followers().iter();
        let shortest = followers.map(|other| other.remaining_at(now)).min();
        let own = self.remaining_at(now);
        shortest.map_or(own, |shortest| shortest.min(own))
    }

    /// Ends the lease by the loss of another one of the lock. `true`: it was held.
    #[must_use]
    pub(crate) fn lose_with(&self, loss: Loss) -> bool {
        let mut state = lock(&self.state);
        let lost = state.lease.lose_with(loss);
        if lost {
            tell(state, false);
        }
        lost
    }
}
