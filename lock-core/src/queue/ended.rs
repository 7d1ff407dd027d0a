//! Leases of this process that have ended, until the store has confirmed the end.
//!
//! # Why the next owner may step over a lease
//!
//! `drop(guard)` followed by `try_acquire` must not be refused by its own unfinished release. So the acquire
//! names the unreleased token (`replaces`), and the store treats the key as free. The late release finds
//! another token and changes nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::slot::Slot;
use super::{Queue, give_back};
use crate::active::{ActiveLease, slot_name};
use crate::base::sync::lock;
use crate::base::token::Token;
use crate::store::{Lane, Operation, Release, Replaced};

/// A lease of this process that has ended, and that the next contender may step over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Predecessor {
    pub(crate) lease: Replaced,
    /// The lane on which its release was sent. Later requests on that lane come after the release.
    pub(crate) sent: Option<Lane>,
}

impl Predecessor {
    /// Returns whether its release was sent on this lane, before any later request.
    pub(crate) fn is_on(self, lane: Option<Lane>) -> bool {
        self.sent.is_some() && self.sent == lane
    }
}

/// The traces that an ended ownership may have left in the store.
pub(crate) enum ReleaseState {
    /// No traces.
    Nothing,
    /// Its owner, or a cleanup, still sees to it. A late push for it must not be undone by its receiver,
    /// which knows of no fencing token and no cooldown.
    Known,
    /// As `Known`, and the next contender may step over it, because its release is under way. With that release, if it may be
    /// left out then.
    Steppable(Option<Arc<dyn Supersede>>),
}

/// A lease of this process that has ended, and whose release the store has not confirmed.
pub(super) struct Unreleased {
    lease: Replaced,
    steppable: bool,
    /// The lane by which its release was sent. Later requests there find the key free.
    sent: Option<Lane>,
    /// Its release, if it may be left out.
    deferred: Option<Arc<dyn Supersede>>,
}

/// A release that is under way, and that becomes needless if the next task of this process is granted the
/// key.
pub(crate) trait Supersede: Send + Sync {
    /// Drops the release, because the key was granted since.
    fn supersede(&self);

    /// Sends the release now, because the next task did not step over the lease.
    fn hurry(&self);
}

impl Queue {
    /// Ends an ownership: the next in line contends. The token is remembered until a
    /// [`Cleanup`](crate::engine::ending::cleanup::Cleanup), which follows this call, has seen to it.
    pub(crate) fn leave(self: &Arc<Self>, lease: &ActiveLease, left: ReleaseState) {
        let name = lease.slot();
        let name = &*name;
        let mut slots = lock(&self.slots);
        slots.permits.remove(lease);
        let uncontended = slots.uncontended.get(name);
        if uncontended.is_some_and(|held| std::ptr::eq(&raw const **held, lease)) {
            let over = slots.uncontended.remove(name);
            give_back(&mut slots.uncontended);
            if !matches!(left, ReleaseState::Nothing) {
                slots.open(name).note_ended(lease.replaced(), left);
            }
            drop(slots);
            drop(over);
            return;
        }
        if let Some(slot) = slots.active.get_mut(name)
            && slot.is_held_by(lease)
        {
            let over = std::mem::take(&mut slot.known);
            slot.note_ended(lease.replaced(), left);
            self.promote(slots, name);
            drop(over);
            return;
        }
        let _over = slots.leave_beside(lease);
        // Another task is the contender since, and has noted the lease, or even holds the key.
        match left {
            ReleaseState::Known => {}
            ReleaseState::Steppable(_) => slots.open(name).note_ended(lease.replaced(), left),
            ReleaseState::Nothing => {
                if let Some(slot) = slots.active.get_mut(name) {
                    slot.forget(lease.token);
                    slots.tidy(name);
                }
            }
        }
    }

    /// Lets other tasks of this process ask the store, because the lease is lost.
    pub(crate) fn abandon(self: &Arc<Self>, lease: &ActiveLease) {
        self.leave(lease, ReleaseState::Known);
    }

    /// Notes that an acquire that was given up may have taken the key.
    pub(crate) fn note_unreleased(self: &Arc<Self>, lease: &ActiveLease) {
        let mut slots = lock(&self.slots);
        slots
            .open(&lease.slot())
            .note_ended(lease.replaced(), ReleaseState::Steppable(None));
    }

    /// Notes that a release is about to be sent by `lane`. `false`: it must not be sent.
    pub(crate) fn sends_release(&self, operation: &Operation, lane: Lane) -> bool {
        let (Operation::Release(release)
        | Operation::Vacate(release)
        | Operation::Cool(release, _)
        | Operation::Remember(release, _)) = operation
        else {
            return false;
        };
        let mut slots = lock(&self.slots);
        let slot = slots
            .active
            .get_mut(&**slot_name(&release.key, release.token));
        slot.is_some_and(|slot| slot.sends(release.token, lane))
    }

    /// Notes that the store has confirmed a release.
    pub(crate) fn confirm_release(&self, release: &Release) {
        let name = slot_name(&release.key, release.token);
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.active.get_mut(&*name)
            && slot.is_releasing(release.token)
        {
            slot.forget(release.token);
            slots.tidy(&name);
            // Under the lock: a refused question looks for releases under way, and then at this count.
            self.confirmed_count.fetch_add(1, Ordering::Relaxed);
            drop(slots);
            self.confirmed.notify_waiters();
        }
    }
}

impl Slot {
    /// Returns whether a release is under way.
    pub(super) fn is_unreleased(&self) -> bool {
        !self.unreleased.is_empty()
    }

    /// Returns whether the release of this token is under way.
    pub(super) fn is_releasing(&self, token: Token) -> bool {
        self.unreleased.iter().any(|one| one.lease.token == token)
    }

    /// Returns the lease that the next contender may step over. Of several it is the last, which names those
    /// before it.
    pub(super) fn predecessor(&self) -> Option<Predecessor> {
        let last = self.unreleased.last().filter(|last| last.steppable)?;
        // The earlier releases may go another way.
        let only = self.unreleased.len() == 1;
        Some(Predecessor {
            lease: last.lease,
            sent: last.sent.filter(|_| only),
        })
    }

    pub(super) fn note_ended(&mut self, lease: Replaced, left: ReleaseState) {
        self.forget(lease.token);
        let (steppable, deferred) = match left {
            ReleaseState::Nothing => return,
            ReleaseState::Known => (false, None),
            ReleaseState::Steppable(deferred) => (true, deferred),
        };
        self.unreleased.push(Unreleased {
            lease,
            steppable,
            sent: None,
            deferred,
        });
    }

    /// Notes that the release of this token is about to be sent. `false`: it must not be sent, because it was
    /// superseded, or because the contender is stepping over the lease at this moment.
    pub(super) fn sends(&mut self, token: Token, lane: Lane) -> bool {
        let contender = self.contender.as_ref();
        if contender.is_some_and(|contender| contender.steps_over == Some(token)) {
            return false;
        }
        let mut unreleased = self.unreleased.iter_mut();
        match unreleased.find(|one| one.lease.token == token) {
            Some(one) => {
                one.sent = Some(lane);
                true
            }
            None => false,
        }
    }

    pub(super) fn forget(&mut self, token: Token) {
        self.unreleased.retain(|one| one.lease.token != token);
    }

    /// Forgets all earlier leases, because a grant proves that they have ended. Returns the releases that are
    /// needless now, to be superseded outside of the lock.
    #[must_use]
    pub(super) fn forget_all(&mut self) -> Vec<Arc<dyn Supersede>> {
        let forgotten = std::mem::take(&mut self.unreleased);
        forgotten
            .into_iter()
            .filter_map(|one| one.deferred)
            .collect()
    }

    /// Notes that the contender has stepped over no lease, as far as is known. Returns the release that was
    /// left out for it, to be sent after all.
    #[must_use]
    pub(super) fn steps_over_nothing(&mut self) -> Option<Arc<dyn Supersede>> {
        let token = self.contender.as_mut()?.steps_over.take()?;
        let mut unreleased = self.unreleased.iter_mut();
        let one = unreleased.find(|one| one.lease.token == token)?;
        // A release that was sent gets its own answer.
        one.deferred.take().filter(|_| one.sent.is_none())
    }
}
