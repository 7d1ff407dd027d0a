//! Handing a lease from task to task of one process, without a request to the store.

use std::sync::Arc;

use super::slot::{KeyState, Slot, Waiter};
use super::{Queue, Verdict};
use crate::active::ActiveLease;
use crate::base::clock::Moment;
use crate::base::sync::lock;
use crate::base::token::Token;

/// Where a lease goes whose owner has ended.
pub(crate) enum Successor {
    /// Another waiter of this process owns it, by this lease. `check_waiters`: it is time to ask the store
    /// whether other processes wait.
    Waiter {
        lease: Arc<ActiveLease>,
        check_waiters: bool,
    },
    /// It is to be given back to the store, by this lease.
    Store(Arc<ActiveLease>),
}

impl Queue {
    /// The owner has ended: the lease goes to the first in line, if it may.
    pub(crate) fn hand_on(self: &Arc<Self>, lease: &Arc<ActiveLease>) -> Successor {
        let mut lease = Arc::clone(lease);
        loop {
            let Some((waiter, next, check_waiters)) = self.successor(&lease) else {
                return Successor::Store(lease);
            };
            let handoff = Handoff::new(self, Arc::clone(&next));
            // Sent outside the queue's lock. A waiter that is gone by now leaves it to the next in line.
            match waiter.verdict.send(Verdict::Handoff(handoff)) {
                Ok(()) => {
                    return Successor::Waiter {
                        lease: next,
                        check_waiters,
                    };
                }
                Err(Verdict::Handoff(mut handoff)) => match handoff.take_back() {
                    Some(back) => lease = back,
                    // Another waiter has picked it up meanwhile.
                    None => {
                        return Successor::Waiter {
                            lease: next,
                            check_waiters: false,
                        };
                    }
                },
                Err(_) => return Successor::Store(lease),
            }
        }
    }

    /// The store's queue was read at some time after `then`: whether the lease may go on in this process
    /// depends on who stands in it.
    pub(crate) fn has_looked(&self, key: &str, token: Token, then: Moment, somebody_waits: bool) {
        let slots = lock(&self.slots);
        if let Some(slot) = slots.active.get(key)
            && let KeyState::Held(lease) = &slot.known
            && lease.token == token
        {
            lease.has_looked(then, somebody_waits);
        }
    }

    /// Makes the lease that of the first living waiter. Whether it is time to look who else waits.
    fn successor(
        self: &Arc<Self>,
        lease: &Arc<ActiveLease>,
    ) -> Option<(Waiter, Arc<ActiveLease>, bool)> {
        if self.is_draining() || !lease.cooldown().is_zero() {
            return None;
        }
        let mut slots = lock(&self.slots);
        let slot = slots.active.get_mut(&lease.key)?;
        if !slot.is_held_by(lease) {
            return None;
        }
        let number = first_in_line(slot)?;
        let (waiter, next) = hand_over(slot, lease, number)?;
        let looks = !slot.queue.is_empty() && next.looks_around();
        let stalled = slot.plan_check();
        drop(slots);
        self.track_successor(lease, &next);
        self.check_at(&lease.key, stalled);
        Some((waiter, next, looks))
    }

    /// Has the keeper look after the next lease in place of the one before. Not to be called with the queue
    /// locked.
    pub(super) fn track_successor(&self, lease: &Arc<ActiveLease>, next: &Arc<ActiveLease>) {
        self.keeper.disarm(lease);
        self.keeper.arm(next);
        lease.wake_waiting();
    }
}

fn first_in_line(slot: &mut Slot) -> Option<u64> {
    while slot.queue.first_key_value()?.1.verdict.is_closed() {
        slot.queue.pop_first();
    }
    slot.queue.first_key_value().map(|(number, _)| *number)
}

/// Makes the lease that of the waiter with this ticket, if it may be.
pub(super) fn hand_over(
    slot: &mut Slot,
    lease: &Arc<ActiveLease>,
    number: u64,
) -> Option<(Waiter, Arc<ActiveLease>)> {
    let next = lease.succeeded_by(slot.queue.get(&number)?.options)?;
    let waiter = slot.queue.remove(&number)?;
    slot.known = KeyState::Held(Arc::clone(&next));
    Some((waiter, next))
}

/// A lease on its way to a waiter. Dropped on the way, it goes on to the next, or back. One that is not
/// picked up goes there without it.
pub(crate) struct Handoff {
    queue: Arc<Queue>,
    lease: Option<Arc<ActiveLease>>,
    picked_up: bool,
}

impl Handoff {
    pub(super) fn new(queue: &Arc<Queue>, lease: Arc<ActiveLease>) -> Self {
        // On its way it counts like a guard, because `drain` waits for it.
        queue.keeper.guard_made();
        Self {
            queue: Arc::clone(queue),
            lease: Some(lease),
            picked_up: false,
        }
    }

    /// Its waiter takes it. `false`: that was too late, and it has gone elsewhere.
    #[must_use]
    pub(crate) fn pick_up(&mut self) -> bool {
        self.picked_up |= self.lease().pick_up();
        self.picked_up
    }

    pub(crate) fn lease(&self) -> &Arc<ActiveLease> {
        self.lease
            .as_ref()
            .expect("only its last owner takes it out")
    }

    /// It has a guard of its own by now.
    pub(crate) fn has_a_guard(mut self) {
        drop(self.take_back());
    }

    fn take_back(&mut self) -> Option<Arc<ActiveLease>> {
        let lease = self.lease.take()?;
        if !self.picked_up && !lease.pick_up() {
            return None;
        }
        self.queue.keeper.guard_ended();
        Some(lease)
    }
}

impl Drop for Handoff {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take()
            && (self.picked_up || lease.pick_up())
        {
            self.queue.returns.give_back(&lease);
            self.queue.keeper.guard_ended();
        }
    }
}
