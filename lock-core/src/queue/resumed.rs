//! Leases that came to this process by a ticket, and so without a contender.

use std::sync::Arc;

use super::slot::{KeyState, ReleaseState};
use super::{Queue, Slots};
use crate::active::ActiveLease;
use crate::base::sync::lock;

impl Queue {
    /// Notes a lease that the store has granted to this process without a question of a contender.
    ///
    /// A task that is the contender at this moment goes on: the store refuses it, and serves it when the lease has ended.
    pub(crate) fn hold(self: &Arc<Self>, lease: &Arc<ActiveLease>) {
        let name = lease.slot();
        let mut slots = lock(&self.slots);
        let slot = slots.open(&name);
        if slot.contender.is_some() {
            slots.beside.push(Arc::clone(lease));
            return;
        }
        let before = std::mem::replace(&mut slot.known, KeyState::Held(Arc::clone(lease)));
        if let KeyState::Held(before) = &before {
            // It has run out, or its owner still waits for the release.
            slot.note_ended(before.replaced(), ReleaseState::Known);
        }
        if slot.is_uncontended() {
            slots.forget(&name);
            slots
                .uncontended
                .insert(name.into_owned(), Arc::clone(lease));
        }
        drop(slots);
        drop(before);
    }
}

impl Slots {
    /// Forgets a lease that a contender stands beside.
    pub(super) fn leave_beside(&mut self, lease: &ActiveLease) -> Option<Arc<ActiveLease>> {
        let mut beside = self.beside.iter();
        let index = beside.position(|held| std::ptr::eq(&raw const **held, lease))?;
        let over = self.beside.swap_remove(index);
        if self.beside.is_empty() {
            self.beside.shrink_to_fit();
        }
        Some(over)
    }
}
