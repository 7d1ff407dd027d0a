//! Passing a lease from task to task of one process, without a word to the store.

use std::sync::Arc;

use super::look::look_around;
use super::slot::{Slot, Standing, Waiter};
use super::stalled::look_at;
use super::{Local, Verdict};
use crate::active::Hold;
use crate::base::clock::Moment;
use crate::base::sync::lock;
use crate::base::token::Token;
use crate::engine::release;

impl Local {
    /// The tenure ends: the lease goes to the first in line, if it may. Otherwise it is the caller's
    /// to give back, by the hold that is answered.
    pub(crate) fn pass(hold: &Arc<Hold>) -> Option<Arc<Hold>> {
        let mut hold = Arc::clone(hold);
        loop {
            let Some((waiter, next, looks)) = successor(&hold) else {
                return Some(hold);
            };
            let looking = looks.then(|| Arc::clone(&next));
            // Told outside the queue's lock. One that is gone by now leaves it to the next in line.
            match waiter.verdict.send(Verdict::Passed(Passed::new(next))) {
                Ok(()) => {
                    // Whoever comes next goes first.
                    looking.iter().for_each(|next| look_around(next));
                    return None;
                }
                Err(Verdict::Passed(mut passed)) => hold = passed.take_back()?,
                Err(_) => return Some(hold),
            }
        }
    }
}

impl Local {
    /// It was looked into the store's queue at some time after `then`: whether the lease may go on
    /// here depends on who stands in it.
    pub(crate) fn has_looked(&self, key: &str, token: Token, then: Moment, somebody_waits: bool) {
        let slots = lock(&self.slots);
        if let Some(slot) = slots.active.get(key)
            && let Standing::Held(hold) = &slot.standing
            && hold.token == token
        {
            hold.has_looked(then, somebody_waits);
        }
    }
}

/// Makes the lease that of the first living waiter. Whether it is time to look who else waits.
fn successor(hold: &Arc<Hold>) -> Option<(Waiter, Arc<Hold>, bool)> {
    let core = &hold.core;
    if core.is_draining() || !hold.cooldown().is_zero() {
        return None;
    }
    let mut slots = lock(&core.local.slots);
    let slot = slots.active.get_mut(&hold.key)?;
    if !slot.is_held_by(hold) {
        return None;
    }
    let ticket = first_in_line(slot)?;
    let (waiter, next) = hand_over(slot, hold, ticket)?;
    let looks = !slot.queue.is_empty() && next.looks_around();
    let stalled = slot.plan_look();
    drop(slots);
    is_handed_over(hold, &next);
    look_at(core, &hold.key, stalled);
    Some((waiter, next, looks))
}

fn first_in_line(slot: &mut Slot) -> Option<u64> {
    while slot.queue.first_key_value()?.1.verdict.is_closed() {
        slot.queue.pop_first();
    }
    slot.queue.first_key_value().map(|(ticket, _)| *ticket)
}

/// Makes the lease that of the waiter with this ticket, if it may be.
pub(super) fn hand_over(
    slot: &mut Slot,
    hold: &Arc<Hold>,
    ticket: u64,
) -> Option<(Waiter, Arc<Hold>)> {
    let next = hold.succeeded_by(slot.queue.get(&ticket)?.terms)?;
    let waiter = slot.queue.remove(&ticket)?;
    slot.standing = Standing::Held(Arc::clone(&next));
    Some((waiter, next))
}

/// Has the keeper look after the next lease in place of the one before. Not to be called with the queue
/// locked.
pub(super) fn is_handed_over(hold: &Arc<Hold>, next: &Arc<Hold>) {
    hold.core.keeper.disarm(hold);
    hold.core.keeper.arm(next);
    hold.wake_waiting();
}

/// A lease on its way to a waiter. Dropped on the way, it goes on to the next, or back. One that is not
/// picked up goes there without it.
pub(crate) struct Passed {
    hold: Option<Arc<Hold>>,
    is_here: bool,
}

impl Passed {
    pub(super) fn new(hold: Arc<Hold>) -> Self {
        // On its way it counts like a guard, for whoever drains.
        hold.core.keeper.guard_made();
        Self {
            hold: Some(hold),
            is_here: false,
        }
    }

    /// Its waiter takes it. `false`: that was too late, and it has gone elsewhere.
    #[must_use]
    pub(crate) fn arrives(&mut self) -> bool {
        self.is_here |= self.hold().arrives();
        self.is_here
    }

    pub(crate) fn hold(&self) -> &Arc<Hold> {
        self.hold
            .as_ref()
            .expect("only its last owner takes it out")
    }

    /// It has a guard of its own by now.
    pub(crate) fn has_a_guard(mut self) {
        drop(self.take_back());
    }

    fn take_back(&mut self) -> Option<Arc<Hold>> {
        let hold = self.hold.take()?;
        if !self.is_here && !hold.arrives() {
            return None;
        }
        hold.core.keeper.guard_ended();
        Some(hold)
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        if let Some(hold) = self.hold.take()
            && (self.is_here || hold.arrives())
        {
            release::in_background(&hold);
            hold.core.keeper.guard_ended();
        }
    }
}
