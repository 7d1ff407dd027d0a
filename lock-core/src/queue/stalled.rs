//! Waiters whose futures are not polled, and how the other waiters go on without them.
//!
//! A future may be polled once and then left alone, as in a `select!` whose other branch is running. By then
//! it may be the contender, with a place in the store's queue, a question in flight, or the key itself; or
//! another task may have handed it a lease. A waiter whose turn has come has a moment to act. After that the
//! next waiter of its process that is polled takes its turn, and steps over its lease. A waiter that was only
//! slow keeps its place and stands in line again where it stood. A waiter that lets a release of its process arrive before its
//! next question keeps its turn. Shares stand in several lines, and those of another line wait
//! for it as the waiters of other processes do.
//!
//! The keeper checks for stalled waiters. It wakes the waiters behind, and takes no turn away while they can
//! do so. If all tasks of a runtime stand still, none of them loses its turn.
//!
//! The future of a release may be left alone too. Its owner then does not hear the store's answer, after which the next
//! waiter asks. So the keeper has the next waiter ask when a release takes longer than a moment.

use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use super::contender::{Contender, PlaceInLine};
use super::ended::{ReleaseState, Supersede};
use super::handoff::{Handoff, hand_over};
use super::slot::{ContenderState, KeyState, Slot};
use super::{Queue, Verdict};
use crate::active::ActiveLease;
use crate::base::clock::Moment;
use crate::base::sync::{lock, wake_all};
use crate::lease::Phase;
use crate::lease::deadline::GRANT;
use crate::store::Lane;

/// The time that a waiter has to act on its turn, while others of its process wait and are polled. Other
/// processes wait no longer than [`GRANT`] for it.
const PATIENCE_WITH_UNPOLLED: Duration = Duration::from_millis(50);

impl ContenderState {
    /// Returns whether another waiter may take its turn.
    fn is_stalled(&self, now: Moment) -> bool {
        now >= self.due + PATIENCE_WITH_UNPOLLED
            && self.in_flight().is_none_or(|lease| lease.is_unpolled())
    }

    /// Returns the wakers of a contender whose question is in flight: it cannot act, but it can be polled.
    /// `None`: it was probed before, or there is no such question.
    fn probe(&mut self, now: Moment) -> Option<Vec<(u32, Waker)>> {
        let wakers = self.in_flight()?.probe()?;
        self.due = now;
        Some(wakers)
    }

    fn in_flight(&self) -> Option<&Arc<ActiveLease>> {
        let (lease, _) = self.asks_for.as_ref()?;
        self.in_flight.then_some(lease)
    }
}

impl Slot {
    /// Plans a check for stalled waiters. `None`: it is planned already, or needless.
    #[must_use]
    pub(super) fn plan_check(&mut self) -> Option<Moment> {
        let behind = !self.queue.is_empty();
        let at = match (&self.contender, &self.known) {
            (Some(contender), _) if behind => contender.due + PATIENCE_WITH_UNPOLLED,
            (None, KeyState::Held(lease)) => match lease.in_handoff_since() {
                Some(since) if !behind => since + GRANT,
                Some(since) => since + PATIENCE_WITH_UNPOLLED,
                None if behind => self.left_at? + PATIENCE_WITH_UNPOLLED,
                None => return None,
            },
            _ => return None,
        };
        self.plan_check_at(at)
    }

    /// Returns whether a lease was handed to a waiter that does not pick it up.
    pub(super) fn is_not_picked_up(&self, now: Moment) -> bool {
        let since = self.lease().and_then(|lease| lease.in_handoff_since());
        since.is_some_and(|since| now >= since + PATIENCE_WITH_UNPOLLED)
    }

    /// Returns, once, whether the owner ended a moment ago and its release is not answered.
    fn is_left(&mut self, now: Moment) -> bool {
        let overdue = |left: &mut Moment| now >= *left + PATIENCE_WITH_UNPOLLED;
        // Bodies inside may go on with the lease.
        self.left_at.take_if(overdue).is_some()
            && self
                .lease()
                .is_some_and(|lease| lease.noticed_phase() != Phase::Held)
    }

    fn plan_check_at(&mut self, at: Moment) -> Option<Moment> {
        let earlier = self.next_check.is_none_or(|planned| at < planned);
        if earlier {
            self.next_check = Some(at);
        }
        earlier.then_some(at)
    }

    fn wakers_behind(&mut self) -> Vec<Waker> {
        let queue = self.queue.values_mut();
        queue.filter_map(|waiter| waiter.waker.take()).collect()
    }

    /// Takes the turn from the contender, which finds out when it is polled.
    pub(super) fn displace(&mut self) -> Option<DisplacedContender> {
        let deferred = self.steps_over_nothing();
        let mut contender = self.contender.take()?;
        if let Some((lease, _)) = &contender.asks_for
            && lease.token.share().is_none()
        {
            // The next contender steps over the lease if the store has it.
            self.note_ended(lease.replaced(), ReleaseState::Steppable(None));
        }
        Some(DisplacedContender {
            in_flight: contender.in_flight,
            waker: contender.waker.take(),
            lease: contender.asks_for,
            deferred,
        })
    }
}

/// The question and the lease of a contender that has lost its turn.
#[must_use = "what it has asked for is to be undone"]
pub(super) struct DisplacedContender {
    lease: Option<(Arc<ActiveLease>, Lane)>,
    in_flight: bool,
    deferred: Option<Arc<dyn Supersede>>,
    waker: Option<Waker>,
}

impl Queue {
    /// Undoes the question of a contender that has lost its turn. The queue must not be locked.
    pub(super) fn undo(self: &Arc<Self>, displaced: DisplacedContender) {
        if let Some(deferred) = displaced.deferred {
            deferred.hurry();
        }
        if let Some((lease, lane)) = &displaced.lease {
            if lease.token.share().is_some() {
                // No share steps over another one, so each question waits for its end.
                self.note_unreleased(lease);
            }
            self.returns.undo(lease, *lane, displaced.in_flight);
        }
        displaced.waker.into_iter().for_each(Waker::wake);
    }
}

impl PlaceInLine {
    /// Takes the turn or the lease of a stalled waiter before this one, or sees to it that this one is woken
    /// when it may.
    pub(super) fn take_from_the_stalled(&self, context: &Context<'_>) -> Option<Verdict> {
        let queue = &self.queue;
        let now = queue.now();
        let mut slots = lock(&queue.slots);
        let id = slots.number();
        let slot = slots.active.get_mut(&self.key)?;
        let waiter = slot.queue.get_mut(&self.number)?;
        waiter.waker = Some(context.waker().clone());
        let contender = slot.contender.as_ref();
        if contender.is_some_and(|contender| contender.is_stalled(now)) {
            let waiter = slot.queue.remove(&self.number);
            let displaced = slot.displace();
            slot.admit(id, now);
            let look = slot.plan_check();
            drop(slots);
            drop(waiter);
            displaced
                .into_iter()
                .for_each(|displaced| queue.undo(displaced));
            queue.check_at(&self.key, look);
            return Some(Verdict::Contend(Contender::new(queue, &self.key, id)));
        }
        let lease = match &slot.known {
            KeyState::Held(lease) if slot.is_not_picked_up(now) && lease.pick_up() => {
                Arc::clone(lease)
            }
            _ => return None,
        };
        let passed = hand_over(slot, &lease, self.number);
        let look = slot.plan_check();
        drop(slots);
        queue.check_at(&self.key, look);
        let passed = passed.map(|(_, next)| {
            queue.track_successor(&lease, &next);
            Verdict::Handoff(Handoff::new(queue, next))
        });
        if passed.is_none() {
            // This waiter cannot have it. It goes to the next in line, or back to the store.
            queue.returns.give_back(&lease);
        }
        queue.keeper.guard_ended();
        passed
    }
}

impl Queue {
    /// Plans to undo an overdue question unless its future is polled.
    pub(crate) fn question_is_overdue(self: &Arc<Self>, lease: &ActiveLease) {
        let at = self.now() + PATIENCE_WITH_UNPOLLED;
        let mut slots = lock(&self.slots);
        let name = slots.slot_of(&lease.key, lease.token);
        let slot = slots.active.get_mut(&*name);
        let look = slot.and_then(|slot| slot.plan_check_at(at));
        drop(slots);
        self.check_at(&name, look);
    }

    /// Has the keeper check the key then. The queue must not be locked.
    pub(super) fn check_at(self: &Arc<Self>, key: &Arc<str>, at: Option<Moment>) {
        if let Some(at) = at {
            let look = StalledCheck {
                queue: Arc::downgrade(self),
                key: Arc::clone(key),
            };
            self.keeper.timers.wake_at(at, &Arc::new(look).into());
        }
    }

    fn look(self: &Arc<Self>, key: &Arc<str>) {
        let now = self.now();
        let mut slots = lock(&self.slots);
        let Some(slot) = slots.active.get_mut(key) else {
            return;
        };
        slot.next_check = None;
        if slot.contender.is_none() && slot.is_left(now) {
            return self.promote(slots, key);
        }
        let since = match (&mut slot.contender, &slot.known) {
            (Some(contender), _) if now < contender.due + PATIENCE_WITH_UNPOLLED => None,
            (Some(contender), _) => {
                if let Some(wakers) = contender.probe(now) {
                    let next = slot.plan_check_at(now + PATIENCE_WITH_UNPOLLED);
                    drop(slots);
                    wake_all(wakers);
                    return self.check_at(key, next);
                }
                Some(contender.due)
            }
            (None, KeyState::Held(lease)) => lease.in_handoff_since(),
            (None, _) => None,
        };
        let Some(since) = since.filter(|since| now >= *since + PATIENCE_WITH_UNPOLLED) else {
            let next = slot.plan_check();
            drop(slots);
            return self.check_at(key, next);
        };
        if now >= since + GRANT {
            // No task of this process has come for it, so other processes may.
            if let Some(displaced) = slot.displace() {
                self.promote(slots, key);
                self.undo(displaced);
            } else if let KeyState::Held(lease) = &slot.known
                && lease.pick_up()
            {
                let lease = Arc::clone(lease);
                drop(slots);
                self.returns.give_back(&lease);
                self.keeper.guard_ended();
            }
            return;
        }
        let wakers = slot.wakers_behind();
        let next = if slot.queue.is_empty() {
            since + GRANT
        } else {
            now + PATIENCE_WITH_UNPOLLED
        };
        let next = slot.plan_check_at(next);
        drop(slots);
        wakers.into_iter().for_each(Waker::wake);
        self.check_at(key, next);
    }
}

/// The keeper's check of one key.
struct StalledCheck {
    queue: Weak<Queue>,
    key: Arc<str>,
}

impl Wake for StalledCheck {
    fn wake(self: Arc<Self>) {
        if let Some(queue) = self.queue.upgrade() {
            queue.look(&self.key);
        }
    }
}

#[cfg(all(test, feature = "test-util"))]
#[path = "stalled_tests.rs"]
mod tests;
