//! Leases that came to this process by a ticket, and so without a contender.

use std::sync::Arc;

use super::ended::ReleaseState;
use super::slot::KeyState;
use super::{Queue, Slots};
use crate::active::ActiveLease;
use crate::base::sync::lock;
use crate::base::token::Token;

/// A swap by which a lease gets a key, until the store's answer is noted.
pub(crate) struct SwappingIn {
    queue: Arc<Queue>,
    token: Token,
}

/// The token of such a lease, and whether an operator has freed the key from it. The process may hear of that before it
/// hears of the swap.
pub(super) struct SwappedIn {
    token: Token,
    freed: bool,
}

impl Queue {
    /// Notes that the store is about to be asked for this lease in place of a ticket, or of another lease.
    pub(crate) fn swaps_in(self: &Arc<Self>, lease: &ActiveLease) -> SwappingIn {
        let token = lease.token;
        let freed = false;
        lock(&self.slots)
            .swapped_in
            .push(SwappedIn { token, freed });
        SwappingIn {
            queue: Arc::clone(self),
            token,
        }
    }
}

impl SwappingIn {
    /// Notes a lease that the store has granted to this process without a question of a contender. The lease is lost at
    /// once if an operator has freed it by now.
    pub(crate) fn granted(self, lease: &Arc<ActiveLease>) {
        self.queue.hold(lease);
        let slots = lock(&self.queue.slots);
        let mut swapped_in = slots.swapped_in.iter();
        let freed = swapped_in.any(|it| it.token == self.token && it.freed);
        drop(slots);
        if freed && lease.force() {
            self.queue.abandon(lease);
        }
    }
}

impl Drop for SwappingIn {
    fn drop(&mut self) {
        let mut slots = lock(&self.queue.slots);
        slots.swapped_in.retain(|it| it.token != self.token);
        if slots.swapped_in.is_empty() {
            slots.swapped_in.shrink_to_fit();
        }
    }
}

impl Queue {
    /// A task that is the contender at this moment goes on: the store refuses it, and serves it when the lease has ended.
    fn hold(self: &Arc<Self>, lease: &Arc<ActiveLease>) {
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
    /// Notes that an operator has freed a key from a lease whose swap is not answered.
    pub(super) fn free_swapped_in(&mut self, token: Token) {
        let mut swapped_in = self.swapped_in.iter_mut();
        if let Some(swapped_in) = swapped_in.find(|it| it.token == token) {
            swapped_in.freed = true;
        }
    }

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
