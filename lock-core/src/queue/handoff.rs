//! Handing a lease from task to task of one process, without a request to the store.
//!
//! # How long a lease stays in its process
//!
//! An owner that ends hands its lease to the first in line: the same token, the next fencing token, and a
//! window of its own. The store hears nothing of it. [`cohort`](crate::lease::cohort) bounds how often and
//! how long, so that a waiter of another process waits no longer than (processes ahead) × (one count + one
//! hold), and one grant for each dead process.
//!
//! A lease is not handed on if it has a cooldown or a record, another ttl, no renewal or little time left, or if the
//! manager drains. A task that gives up takes its place in the store's queue along: the next task of its
//! process asks anew, behind the processes that wait by then.

use std::sync::Arc;

use super::slot::{KeyState, Slot, Waiter};
use super::{Queue, Verdict};
use crate::active::ActiveLease;
use crate::base::clock::Moment;
use crate::base::sync::lock;

/// The destination of a lease whose owner has ended.
pub(crate) enum Successor {
    /// A waiter of this process owns it now. With its lease, if it is time to look for waiters of other processes.
    Waiter(Option<Arc<ActiveLease>>),
    /// The caller gives it back to the store, by this lease.
    Store(Arc<ActiveLease>),
}

impl Queue {
    /// Hands the lease of an owner that has ended to the first in line, if it may go on.
    pub(crate) fn hand_on(self: &Arc<Self>, lease: &Arc<ActiveLease>) -> Successor {
        let mut lease = Arc::clone(lease);
        loop {
            let Some((waiter, next)) = self.successor(&lease) else {
                return Successor::Store(lease);
            };
            let handoff = Handoff::new(self, Arc::clone(&next));
            // Sent outside the queue's lock. A waiter that is gone by now leaves the lease to the next in
            // line.
            match waiter.verdict.send(Verdict::Handoff(handoff)) {
                Ok(()) => return Successor::Waiter(next.is_to_look().then_some(next)),
                Err(Verdict::Handoff(mut handoff)) => match handoff.take_back() {
                    Some(back) => lease = back,
                    // Another waiter has picked it up meanwhile.
                    None => return Successor::Waiter(None),
                },
                Err(_) => return Successor::Store(lease),
            }
        }
    }

    /// Notes that no process waited in the store's queue at some moment after `then`, so the lease may stay here.
    pub(crate) fn found_no_waiter(&self, lease: &ActiveLease, then: Moment) {
        let slots = lock(&self.slots);
        let slot = slots.active.get(&*lease.slot());
        if let Some(KeyState::Held(held)) = slot.map(|slot| &slot.known)
            && held.token == lease.token
        {
            held.found_no_waiter(then);
        }
    }

    /// Makes the lease of the first living waiter.
    fn successor(self: &Arc<Self>, lease: &Arc<ActiveLease>) -> Option<(Waiter, Arc<ActiveLease>)> {
        if self.is_draining() {
            return None;
        }
        let mut slots = lock(&self.slots);
        let slot = slots.active.get_mut(&*lease.slot())?;
        if !slot.is_held_by(lease) {
            return None;
        }
        let number = first_in_line(slot)?;
        let passed = match lease.keeps_the_key() {
            true => None,
            false => hand_over(slot, lease, number),
        };
        slot.left_at = passed.is_none().then(|| self.now());
        let stalled = slot.plan_check();
        drop(slots);
        if let Some((_, next)) = &passed {
            self.track_successor(lease, next);
        }
        self.check_at(&lease.slot(), stalled);
        passed
    }

    /// Has the keeper renew the next lease in place of this one. The queue must not be locked.
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

/// Makes the lease of the waiter with this place, if it may go on.
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

/// A lease on its way to a waiter. Dropped on the way, it goes to the next waiter, or back to the store. The
/// queue takes a lease back that is not picked up.
pub(crate) struct Handoff {
    queue: Arc<Queue>,
    lease: Option<Arc<ActiveLease>>,
    picked_up: bool,
}

impl Handoff {
    pub(super) fn new(queue: &Arc<Queue>, lease: Arc<ActiveLease>) -> Self {
        // Counts like a guard on its way, because `drain` waits for it.
        queue.keeper.guard_made();
        Self {
            queue: Arc::clone(queue),
            lease: Some(lease),
            picked_up: false,
        }
    }

    /// Picks the lease up for its waiter. `false`: it is too late, and the lease has gone elsewhere.
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

    /// Ends the hand-over, because a guard owns the lease now.
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
