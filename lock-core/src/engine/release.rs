//! Giving a lease back after its owner has ended.

use std::sync::Arc;

use super::Engine;
use super::cleanup::{Cleanup, Step};
use super::deferred_release::{DeferredRelease, Start};
use crate::active::{ActiveLease, Ending};
use crate::lease::{Loss, Phase};
use crate::queue::{ReleaseState, Successor};

/// The end of an owner, as the store has to hear of it.
pub(crate) enum Ended {
    /// The lease was held to its end.
    Held(Arc<ActiveLease>),
    Lost(Arc<ActiveLease>, Loss),
    /// The store hears nothing, because the lease goes on or was never held.
    Nothing,
}

impl Engine {
    /// Ends an ownership: hands the lease to another task of this process, or closes it. Returns the end of a lock's
    /// first key, and those of its other keys.
    pub(crate) fn end(self: &Arc<Self>, lease: &Arc<ActiveLease>) -> (Ended, Vec<Ended>) {
        let (first, is_over) = self.end_one(lease);
        // While bodies or kept work run under the lock, all of its keys stay.
        let others = lease.followers().iter().filter(|_| is_over);
        (first, others.map(|other| self.end_one(other).0).collect())
    }

    /// `false`: bodies or kept work still run under the lease, and the last of them ends it.
    fn end_one(self: &Arc<Self>, lease: &Arc<ActiveLease>) -> (Ended, bool) {
        match self.queue.hand_on(lease) {
            Successor::Waiter(looks) => {
                if let Some(next) = looks {
                    self.look_for_waiters(next);
                }
                (Ended::Nothing, true)
            }
            Successor::Store(lease) => match self.close(&lease) {
                Phase::Held => (Ended::Held(lease), true),
                Phase::Lost(loss) => (Ended::Lost(lease, loss), true),
                Phase::Asking | Phase::Closed => (Ended::Nothing, false),
            },
        }
    }

    /// Ends an ownership, and tells the store in the background.
    pub(crate) fn end_in_background(self: &Arc<Self>, lease: &Arc<ActiveLease>) {
        let (first, others) = self.end(lease);
        self.tell_later(first);
        others.into_iter().for_each(|other| self.tell_later(other));
    }

    /// Has the keeper tell the store.
    pub(crate) fn tell_later(self: &Arc<Self>, ended: Ended) {
        match ended {
            Ended::Held(lease) => self.release_later(&lease),
            Ended::Lost(lease, loss) => self.discard(&lease, loss),
            Ended::Nothing => {}
        }
    }

    /// Has the keeper release a lease that was held to its end.
    pub(crate) fn release_later(self: &Arc<Self>, lease: &Arc<ActiveLease>) {
        self.queue.leave(lease, left_by(lease));
        Cleanup::of(self, lease, Step::End(lease.ending())).submit();
    }

    /// Has the caller's runtime release a lease that was held to its end, if that runtime goes on.
    pub(crate) fn release_deferred(self: &Arc<Self>, lease: &Arc<ActiveLease>) {
        let route = self.store.release_route();
        let Some(route) = route.filter(|_| !lease.has_late_duplicate()) else {
            return self.release_later(lease);
        };
        let deferred = DeferredRelease::new(Cleanup::of(self, lease, Step::End(lease.ending())));
        match left_by(lease) {
            ReleaseState::Steppable => self.queue.leave_deferred(lease, deferred.clone()),
            left => self.queue.leave(lease, left),
        }
        // Among many requests that are sent together, the release and the next acquire are too.
        let start = match route.batched {
            true => Start::Now,
            false => Start::Soon,
        };
        deferred.go(route.lane, start);
    }

    /// Discards a lost lease: deletes its key if that is still there, and hands a free key to the first
    /// waiter. With a record, the token in the store decides and not the belief of this process.
    pub(crate) fn discard(self: &Arc<Self>, lease: &Arc<ActiveLease>, loss: Loss) {
        if lease.record().is_some() {
            return self.release_later(lease);
        }
        let left = match loss {
            Loss::NotOurs | Loss::Forced => ReleaseState::Nothing,
            // The next owner need not wait for the key to run out.
            Loss::Expired | Loss::MaxHold | Loss::OtherKey => ReleaseState::Steppable,
        };
        self.queue.leave(lease, left);
        Cleanup::of(self, lease, Step::End(Ending::Release)).submit();
    }
}

/// The next owner may step over a release, but not over a cooldown or a record.
fn left_by(lease: &ActiveLease) -> ReleaseState {
    match lease.keeps_the_key() {
        true => ReleaseState::Known,
        false => ReleaseState::Steppable,
    }
}
