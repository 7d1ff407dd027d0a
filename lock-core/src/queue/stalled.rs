//! Waiters whose futures are not polled, and how the others go on without them.
//!
//! A future may be polled once and then left alone, as in a `select!` whose other branch is running. By
//! then it may have the seat, and with it a place in the store's queue, a question in flight, or the key
//! itself; or a lease that another task has passed to it. A waiter that is due to act has a moment for it.
//! After that the next waiter of its process that is polled takes the seat, and steps over the lease of
//! the one before. A waiter that only was slow keeps its ticket, and stands in line again where it stood.
//!
//! The keeper looks for stalled waiters. It wakes those behind, and takes nothing from anybody by itself
//! for as long as they may do so: if all tasks of a runtime stand still, none of them loses its turn.

use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use super::pass::{Passed, hand_over, is_handed_over};
use super::seat::{Place, Seat};
use super::slot::{Contender, Left, Slot, Standing};
use super::{Local, Verdict, promote};
use crate::active::Hold;
use crate::base::clock::Moment;
use crate::base::sync::{lock, wake_all};
use crate::engine::Core;
use crate::engine::attempt::undo;
use crate::engine::release;
use crate::keeper::Errand;
use crate::lease::deadline::GRANT;
use crate::store::Lane;

/// How long a waiter may leave undone what it is due to do, while others of its process wait and are
/// polled. Nobody but its own process waits longer than [`GRANT`] for it.
const MOMENT: Duration = Duration::from_millis(50);

impl Contender {
    /// Whether another may take the seat.
    fn is_stalled(&self, now: Moment) -> bool {
        now >= self.due + MOMENT && self.in_flight().is_none_or(|hold| hold.is_silent())
    }

    /// A contender whose question is in flight cannot act, but it can be polled: it is woken, to see
    /// whether it is. `None`: that has been tried, or there is no such question.
    fn ask_after(&mut self, now: Moment) -> Option<Vec<(u32, Waker)>> {
        let wakers = self.in_flight()?.ask_after()?;
        self.due = now;
        Some(wakers)
    }

    fn in_flight(&self) -> Option<&Arc<Hold>> {
        let (hold, _) = self.asks_for.as_ref()?;
        self.in_flight.then_some(hold)
    }
}

impl Slot {
    /// When to look for stalled waiters. `None`: that is planned already, or needless.
    #[must_use]
    pub(super) fn plan_look(&mut self) -> Option<Moment> {
        let behind = !self.queue.is_empty();
        let at = match (&self.contender, &self.standing) {
            (Some(contender), _) if behind => contender.due + MOMENT,
            (None, Standing::Held(hold)) => {
                let since = hold.on_its_way_since()?;
                since + if behind { MOMENT } else { GRANT }
            }
            _ => return None,
        };
        self.plan_look_at(at)
    }

    /// Whether a lease has been passed to a waiter that does not pick it up.
    pub(super) fn is_left_alone(&self, now: Moment) -> bool {
        match &self.standing {
            Standing::Held(hold) => {
                let since = hold.on_its_way_since();
                since.is_some_and(|since| now >= since + MOMENT)
            }
            _ => false,
        }
    }

    fn plan_look_at(&mut self, at: Moment) -> Option<Moment> {
        let earlier = self.next_look.is_none_or(|planned| at < planned);
        if earlier {
            self.next_look = Some(at);
        }
        earlier.then_some(at)
    }

    fn wakers_behind(&mut self) -> Vec<Waker> {
        let queue = self.queue.values_mut();
        queue.filter_map(|waiter| waiter.waker.take()).collect()
    }

    /// The contender has the seat no more. It finds out when it is polled.
    pub(super) fn unseat(&mut self) -> Option<Unseated> {
        let errand = self.steps_over_nothing();
        let mut contender = self.contender.take()?;
        if let Some((hold, _)) = &contender.asks_for {
            // Whatever the store has for it, the next one steps over it.
            self.leaves(hold.replaced(), Left::Steppable);
        }
        Some(Unseated {
            in_flight: contender.in_flight,
            waker: contender.waker.take(),
            lease: contender.asks_for,
            errand,
        })
    }
}

/// What a contender leaves behind that has lost its seat.
#[must_use = "what it has asked for is to be undone"]
pub(super) struct Unseated {
    lease: Option<(Arc<Hold>, Lane)>,
    in_flight: bool,
    errand: Option<Arc<Errand>>,
    waker: Option<Waker>,
}

impl Unseated {
    /// Not to be called with the queue locked.
    pub(super) fn undo(self) {
        if let Some(errand) = self.errand {
            errand.hurry();
        }
        if let Some((hold, lane)) = &self.lease {
            hold.close();
            undo(hold, *lane, self.in_flight);
        }
        self.waker.into_iter().for_each(Waker::wake);
    }
}

impl Place {
    /// Takes what a stalled waiter before this one has; or sees to it that this one is woken when it may.
    pub(super) fn take_from_the_stalled(&self, context: &Context<'_>) -> Option<Verdict> {
        let core = &self.core;
        let now = core.keeper.clock.now();
        let mut slots = lock(&core.local.slots);
        let id = slots.ticket();
        let slot = slots.active.get_mut(&self.key)?;
        let waiter = slot.queue.get_mut(&self.ticket)?;
        waiter.waker = Some(context.waker().clone());
        let contender = slot.contender.as_ref();
        if contender.is_some_and(|contender| contender.is_stalled(now)) {
            let waiter = slot.queue.remove(&self.ticket);
            let unseated = slot.unseat();
            slot.seat(id, now);
            let look = slot.plan_look();
            drop(slots);
            drop(waiter);
            unseated.into_iter().for_each(Unseated::undo);
            look_at(core, &self.key, look);
            return Some(Verdict::Contend(Seat::new(core, &self.key, id)));
        }
        let hold = match &slot.standing {
            Standing::Held(hold) if slot.is_left_alone(now) && hold.arrives() => Arc::clone(hold),
            _ => return None,
        };
        let passed = hand_over(slot, &hold, self.ticket);
        let look = slot.plan_look();
        drop(slots);
        look_at(core, &self.key, look);
        let passed = passed.map(|(_, next)| {
            is_handed_over(&hold, &next);
            Verdict::Passed(Passed::new(next))
        });
        if passed.is_none() {
            // It is not for this one: to the next in line, or back.
            release::in_background(&hold);
        }
        core.keeper.guard_ended();
        passed
    }
}

impl Local {
    /// The question for this key is overdue: if it is not polled either, it is undone.
    pub(crate) fn is_overdue(core: &Arc<Core>, key: &Arc<str>) {
        let at = core.keeper.clock.now() + MOMENT;
        let mut slots = lock(&core.local.slots);
        let slot = slots.active.get_mut(key);
        let look = slot.and_then(|slot| slot.plan_look_at(at));
        drop(slots);
        look_at(core, key, look);
    }
}

/// The keeper's look at one key.
struct Look {
    core: Weak<Core>,
    key: Arc<str>,
}

/// Has the keeper look then. Not to be called with the queue locked.
pub(super) fn look_at(core: &Arc<Core>, key: &Arc<str>, at: Option<Moment>) {
    if let Some(at) = at {
        let look = Look {
            core: Arc::downgrade(core),
            key: Arc::clone(key),
        };
        core.keeper.wake_at(at, &Arc::new(look).into());
    }
}

impl Wake for Look {
    fn wake(self: Arc<Self>) {
        if let Some(core) = self.core.upgrade() {
            look(&core, &self.key);
        }
    }
}

fn look(core: &Arc<Core>, key: &Arc<str>) {
    let now = core.keeper.clock.now();
    let mut slots = lock(&core.local.slots);
    let Some(slot) = slots.active.get_mut(key) else {
        return;
    };
    slot.next_look = None;
    let since = match (&mut slot.contender, &slot.standing) {
        (Some(contender), _) if now < contender.due + MOMENT => None,
        (Some(contender), _) => {
            if let Some(wakers) = contender.ask_after(now) {
                let next = slot.plan_look_at(now + MOMENT);
                drop(slots);
                wake_all(wakers);
                return look_at(core, key, next);
            }
            Some(contender.due)
        }
        (None, Standing::Held(hold)) => hold.on_its_way_since(),
        (None, _) => None,
    };
    let Some(since) = since.filter(|since| now >= *since + MOMENT) else {
        let next = slot.plan_look();
        drop(slots);
        return look_at(core, key, next);
    };
    if now >= since + GRANT {
        // None of this process has come for it: others may.
        if let Some(unseated) = slot.unseat() {
            promote(slots, core, key);
            unseated.undo();
        } else if let Standing::Held(hold) = &slot.standing
            && hold.arrives()
        {
            let hold = Arc::clone(hold);
            drop(slots);
            release::in_background(&hold);
            core.keeper.guard_ended();
        }
        return;
    }
    let wakers = slot.wakers_behind();
    let next = if slot.queue.is_empty() {
        since + GRANT
    } else {
        now + MOMENT
    };
    let next = slot.plan_look_at(next);
    drop(slots);
    wakers.into_iter().for_each(Waker::wake);
    look_at(core, key, next);
}
