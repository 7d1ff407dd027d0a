//! Leases of this process that have ended, until the store has confirmed the end.
//!
//! # Why the next owner may step over a lease
//!
//! `drop(guard)` followed by `try_acquire` must not be refused by its own unfinished release. So the acquire
//! names the unreleased token (`replaces`), and the store treats the key as free. The late release finds
//! another token and changes nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::slot::{ReleaseState, Supersede};
use super::{Queue, give_back};
use crate::active::{ActiveLease, slot_name};
use crate::base::sync::lock;
use crate::store::{Lane, Operation, Release};

impl Queue {
    /// Ends an ownership: the next in line contends. The token is remembered until a
    /// [`Cleanup`](crate::engine::ending::cleanup::Cleanup), which follows this call, has seen to it.
    pub(crate) fn leave(self: &Arc<Self>, lease: &ActiveLease, left: ReleaseState) {
        self.leave_behind(lease, left, None);
    }

    /// As [`leave`](Queue::leave), for a release that may be left out if the next owner steps over the lease.
    pub(crate) fn leave_deferred(
        self: &Arc<Self>,
        lease: &ActiveLease,
        deferred: Arc<dyn Supersede>,
    ) {
        self.leave_behind(lease, ReleaseState::Steppable, Some(deferred));
    }

    fn leave_behind(
        self: &Arc<Self>,
        lease: &ActiveLease,
        left: ReleaseState,
        deferred: Option<Arc<dyn Supersede>>,
    ) {
        let name = lease.slot();
        let name = &*name;
        let mut slots = lock(&self.slots);
        slots.permits.remove(lease);
        let uncontended = slots.uncontended.get(name);
        if uncontended.is_some_and(|held| std::ptr::eq(&raw const **held, lease)) {
            let over = slots.uncontended.remove(name);
            give_back(&mut slots.uncontended);
            if left != ReleaseState::Nothing {
                let slot = slots.open(name);
                slot.note_ended_with(lease.replaced(), left, deferred);
            }
            drop(slots);
            drop(over);
            return;
        }
        if let Some(slot) = slots.active.get_mut(name)
            && slot.is_held_by(lease)
        {
            let over = std::mem::take(&mut slot.known);
            slot.note_ended_with(lease.replaced(), left, deferred);
            self.promote(slots, name);
            drop(over);
            return;
        }
        let _over = slots.leave_beside(lease);
        // Another task is the contender since, and has noted the lease, or even holds the key.
        match left {
            ReleaseState::Known => {}
            ReleaseState::Steppable => {
                let slot = slots.open(name);
                slot.note_ended_with(lease.replaced(), left, deferred);
            }
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
            .note_ended(lease.replaced(), ReleaseState::Steppable);
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
