//! The end of a lease in the store. All of its commands are sent here, but for two that serve the waiters: of a ticket that is
//! over (`engine/tickets.rs`), and of a record that is forgotten (`api/remember.rs`).
//!
//! | way | is sent | until the store has confirmed it, the next task of this process | if a copy of the acquire may arrive late |
//! | --- | --- | --- | --- |
//! | release | the token is deleted, and the first waiter gets the key | may step over the lease; asks if the key is known to be gone | a second release |
//! | gap | as a release, and the waiters wait until clients of other libraries had their chance | may step over the lease | a second release |
//! | cooldown | the key stays closed for a while | asks, and is refused | a second release |
//! | record | the record takes the place of the token | asks, and is refused, with the record once it is there | a second release, unless the store had no memory for the record |
//! | undo | a release behind the acquire on its lane, and once more if that is not answered | may step over the lease | a second release |
//! | leave | the token leaves the queue, and a free key goes to the first waiter | asks | nothing |
//! | late duplicate | nothing at once | asks | a release |
//! | swap without an answer ([`swap`]) | a release of each of the two tokens | asks | a second release of each |
//!
//! No task steps over a share, over a lease whose owner waits for the answer, or over one whose key was deleted or taken. Such a
//! lost lease is released too, in case its key is still there.
//!
//! A release has three senders. [`awaited`] sends it for an owner that waits for the answer. [`deferred`] sends it on the owner's
//! runtime, and the owner does not wait. [`cleanup`] sends it on the keeper, which also goes on with the other two if they are
//! given up.

mod awaited;
mod cleanup;
mod deferred;
pub(super) mod swap;
mod way;

use std::sync::Arc;
use std::time::Duration;

use self::cleanup::Cleanup;
use self::deferred::{DeferredRelease, Start};
use self::way::Way;
use super::Engine;
use crate::active::ActiveLease;
use crate::base::error::Error;
use crate::base::token::Token;
use crate::lease::{Loss, Phase};
use crate::queue::{ReleaseState, Successor};
use crate::store::Lane;

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

    /// Ends the ownership of one key. `false`: bodies or kept work still run under the lease, and the last of them ends it.
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
        self.tell_later(self.end(lease));
    }

    /// Has the keeper tell the store.
    pub(crate) fn tell_later(self: &Arc<Self>, ended: (Ended, Vec<Ended>)) {
        self.tell_each(ended, Self::release_later);
    }

    /// Has the caller's runtime tell the store, if that runtime goes on.
    pub(crate) fn tell_deferred(self: &Arc<Self>, ended: (Ended, Vec<Ended>)) {
        self.tell_each(ended, Self::release_deferred);
    }

    fn tell_each(
        self: &Arc<Self>,
        (first, others): (Ended, Vec<Ended>),
        release: fn(&Arc<Self>, &Arc<ActiveLease>),
    ) {
        for ended in std::iter::once(first).chain(others) {
            match ended {
                Ended::Held(lease) => release(self, &lease),
                Ended::Lost(lease, loss) => self.discard(&lease, loss),
                Ended::Nothing => {}
            }
        }
    }

    /// Has the keeper release a lease that was held to its end.
    pub(crate) fn release_later(self: &Arc<Self>, lease: &Arc<ActiveLease>) {
        let way = Way::of(lease);
        self.queue.leave(lease, way.leaves());
        Cleanup::of(self, lease, way).submit();
    }

    fn release_deferred(self: &Arc<Self>, lease: &Arc<ActiveLease>) {
        let route = self.store.release_route();
        let Some(route) = route.filter(|_| !lease.has_late_duplicate()) else {
            return self.release_later(lease);
        };
        let way = Way::of(lease);
        let mut left = way.leaves();
        let deferred = DeferredRelease::new(Cleanup::of(self, lease, way));
        if let ReleaseState::Steppable(may_be_left_out) = &mut left {
            *may_be_left_out = Some(deferred.clone());
        }
        self.queue.leave(lease, left);
        // Among many requests that are sent together, the release and the next acquire are too.
        let start = match route.batched {
            true => Start::Now,
            false => Start::Soon,
        };
        deferred.go(route.lane, start);
    }

    /// Undoes the questions of a closed lease, which went by this lane.
    pub(super) fn undo(self: &Arc<Self>, lease: &ActiveLease, lane: Lane, in_flight: bool) {
        if in_flight {
            // Only an answer proves that no more of it will arrive.
            lease.note_late_duplicate();
        }
        Cleanup::of(self, lease, Way::Undo(lane)).submit();
    }

    /// Serves the waiters of a lost lease whose key was deleted by hand, because they do not know that it is free.
    pub(super) fn leave_a_deleted_key(self: &Arc<Self>, lease: &ActiveLease) {
        Cleanup::of(self, lease, Way::Leave).submit();
    }

    /// Gives back what the store holds for a waiter that is gone: its place in the queue, or the key itself if it was given.
    pub(super) fn give_back_for(
        self: &Arc<Self>,
        key: Arc<str>,
        token: Token,
        grant: Duration,
        given: bool,
    ) {
        Cleanup::of_a_gone_waiter(self, key, token, grant, given).submit();
    }

    /// Discards a lease that the store does not have. Returns the error for its owner.
    pub(super) fn is_not_ours(self: &Arc<Self>, lease: &Arc<ActiveLease>) -> Error {
        self.discard(lease, Loss::NotOurs);
        lease.loss_error(Loss::NotOurs)
    }

    /// Notes that a lease has ended in the store. The keeper undoes a copy of its acquire that may still
    /// arrive.
    pub(super) fn has_ended(self: &Arc<Self>, lease: &ActiveLease) {
        self.queue.leave(lease, ReleaseState::Nothing);
        if lease.has_late_duplicate() {
            Cleanup::of(self, lease, Way::LateDuplicate).submit();
        }
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
            Loss::Expired | Loss::MaxHold | Loss::OtherKey => ReleaseState::Steppable(None),
        };
        self.queue.leave(lease, left);
        Cleanup::of(self, lease, Way::Release).submit();
    }
}
