//! The queue of this process: one contender per key asks the store, the others stand behind it.
//!
//! Whoever comes while a valid lease of this process holds the key, or while the store's refusal
//! still stands, is told so without a round trip. While the contender's own question is in flight
//! nothing is known: those who do not want to wait share its answer. A contender whose future is not
//! polled loses its seat to the others ([`stalled`]).

mod look;
mod pass;
mod seat;
mod slot;
mod stalled;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use tokio::sync::oneshot;

pub(crate) use self::look::look;
pub(crate) use self::pass::Passed;
pub(crate) use self::seat::{Place, Seat, Unseated};
pub(crate) use self::slot::{Left, held_fact};
use self::slot::{Slot, Standing, Told, Waiter};
use self::stalled::look_at;
use crate::active::Hold;
use crate::base::error::Error;
use crate::base::sync::lock;
use crate::base::token::Token;
use crate::engine::Core;
use crate::engine::release;
use crate::keeper::Errand;
use crate::lease::Terms;
use crate::lease::backoff::LONGEST;
use crate::store::{Lane, News, Operation, Refusal, Release};

/// Whether somebody stays when the answer is no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    None,
    Waits,
}

#[derive(Default)]
pub(crate) struct Local {
    slots: Mutex<Slots>,
}

type ByKey<T> = HashMap<Arc<str>, T, foldhash::quality::RandomState>;

/// A table for so many keys is kept when it is empty.
const ROOM: usize = 256;

#[derive(Default)]
struct Slots {
    /// Keys that somebody wants, or whose release is under way.
    active: ByKey<Slot>,
    /// Keys that are held, and that nobody else of this process has asked for: never in `active`.
    quiet: ByKey<Arc<Hold>>,
    /// Tickets are never used twice, so that whoever leaves takes nobody else's place along.
    last_ticket: u64,
}

impl Slots {
    fn ticket(&mut self) -> u64 {
        self.last_ticket += 1;
        self.last_ticket
    }

    /// The slot of a key, whatever is known of it so far.
    fn open(&mut self, key: &Arc<str>) -> &mut Slot {
        let slot = self.active.entry(Arc::clone(key)).or_default();
        if let Some(hold) = self.quiet.remove(key) {
            give_back(&mut self.quiet);
            slot.standing = Standing::Held(hold);
        }
        slot
    }

    fn forget(&mut self, key: &Arc<str>) {
        self.active.remove(key);
        give_back(&mut self.active);
    }

    /// Forgets a key that there is nothing to know of any more.
    fn tidy(&mut self, key: &Arc<str>) {
        if self.active.get(key).is_some_and(Slot::is_idle) {
            self.forget(key);
        }
    }
}

/// Very many keys at once leave a large table: its memory goes when they have gone.
fn give_back<T>(keys: &mut ByKey<T>) {
    if keys.is_empty() && keys.capacity() > ROOM {
        keys.shrink_to(ROOM);
    }
}

/// What becomes of a waiter.
pub(crate) enum Verdict {
    /// It is its turn to ask the store.
    Contend(Seat),
    /// The lock is its own: another task of this process has passed it on.
    Passed(Passed),
    Busy(Refusal),
    Failed(Error),
}

/// The answer to somebody who wants a key.
pub(crate) enum Entry {
    Contend(Seat),
    Queued(Place),
    Busy(Refusal),
}

impl Local {
    /// `ticket`: its place in line, told here unless it has one.
    pub(crate) fn enter(
        core: &Arc<Core>,
        key: &Arc<str>,
        patience: Patience,
        terms: Terms,
        ticket: &mut Option<u64>,
    ) -> Entry {
        let now = core.keeper.clock.now();
        let mut slots = lock(&core.local.slots);
        let id = slots.ticket();
        let ticket = *ticket.get_or_insert(id);
        let slot = slots.open(key);
        if patience == Patience::None
            && let Some(refusal) = slot.fact(now)
        {
            return Entry::Busy(refusal);
        }
        if slot.contender.is_none() && !slot.is_held(now) {
            slot.seat(id, now);
            return Entry::Contend(Seat::new(core, key, id));
        }
        let (verdict, answer) = oneshot::channel();
        let waiter = Waiter {
            patience,
            terms,
            verdict,
            waker: None,
        };
        slot.queue.insert(ticket, waiter);
        let waker = match patience {
            Patience::None => slot.asks_now(now),
            Patience::Waits => None,
        };
        let look = slot.plan_look();
        drop(slots);
        waker.into_iter().for_each(Waker::wake);
        look_at(core, key, look);
        Entry::Queued(Place {
            core: Arc::clone(core),
            key: Arc::clone(key),
            ticket,
            answer,
        })
    }

    /// Ends every wait: no more locks are given out, and what was asked for is undone, whether or not its
    /// contender is polled.
    pub(crate) fn drain(&self, error: &Error) {
        let (mut waiting, mut unseated, mut on_their_way) = (Vec::new(), Vec::new(), Vec::new());
        let mut slots = lock(&self.slots);
        slots.active.retain(|_, slot| {
            waiting.extend(std::mem::take(&mut slot.queue).into_values());
            unseated.extend(slot.unseat());
            if let Standing::Held(hold) = &slot.standing
                && hold.arrives()
            {
                on_their_way.push(Arc::clone(hold));
            }
            !slot.is_idle()
        });
        drop(slots);
        for waiter in waiting {
            drop(waiter.verdict.send(Verdict::Failed(error.clone())));
        }
        for contender in unseated {
            contender.undo();
        }
        for hold in on_their_way {
            release::in_background(&hold);
            hold.core.keeper.guard_ended();
        }
    }

    /// The leases that this process holds.
    pub(crate) fn held(&self) -> Vec<Arc<Hold>> {
        let slots = lock(&self.slots);
        let holds = slots
            .active
            .values()
            .filter_map(|slot| match &slot.standing {
                Standing::Held(hold) => Some(hold),
                _ => None,
            });
        holds.chain(slots.quiet.values()).cloned().collect()
    }

    /// The tenure is over: the next in line contends. What is still to be heard of its token in the
    /// store is noted until a [`Job`](crate::keeper::Job) has seen to it, which comes after this.
    pub(crate) fn leave(&self, hold: &Hold, left: Left) {
        self.leave_behind(hold, left, None);
    }

    /// As [`leave`](Local::leave), for a lease whose release may be left out if somebody steps over it.
    pub(crate) fn leave_on_the_way(&self, hold: &Hold, errand: &Arc<Errand>) {
        self.leave_behind(hold, Left::Steppable, Some(errand));
    }

    fn leave_behind(&self, hold: &Hold, left: Left, errand: Option<&Arc<Errand>>) {
        let mut slots = lock(&self.slots);
        let quiet = slots.quiet.get(&hold.key);
        if quiet.is_some_and(|held| std::ptr::eq(&raw const **held, hold)) {
            let over = slots.quiet.remove(&hold.key);
            give_back(&mut slots.quiet);
            if left != Left::Nothing {
                let slot = slots.open(&hold.key);
                slot.leaves_with(hold.replaced(), left, errand.cloned());
            }
            drop(slots);
            drop(over);
            return;
        }
        if let Some(slot) = slots.active.get_mut(&hold.key)
            && slot.is_held_by(hold)
        {
            let over = std::mem::take(&mut slot.standing);
            slot.leaves_with(hold.replaced(), left, errand.cloned());
            promote(slots, &hold.core, &hold.key);
            drop(over);
            return;
        }
        // Somebody has taken the seat since, and noted it, or has even been granted the key.
        match left {
            Left::Known => {}
            Left::Steppable => {
                let slot = slots.open(&hold.key);
                slot.leaves_with(hold.replaced(), left, errand.cloned());
            }
            Left::Nothing => {
                if let Some(slot) = slots.active.get_mut(&hold.key) {
                    slot.forget(hold.token);
                    slots.tidy(&hold.key);
                }
            }
        }
    }

    /// The lease is lost: others of this process may ask the store, whatever its owner still does.
    pub(crate) fn abandon(&self, hold: &Hold) {
        self.leave(hold, Left::Known);
    }

    /// An acquire that nobody waits for any more may have taken the key.
    pub(crate) fn note_unreleased(&self, hold: &Hold) {
        let mut slots = lock(&self.slots);
        slots
            .open(&hold.key)
            .leaves(hold.replaced(), Left::Steppable);
    }

    /// A release is about to be sent by `lane`. `false`: it is not to be.
    pub(crate) fn gives_back(&self, operation: &Operation, lane: Lane) -> bool {
        let (Operation::Release(release)
        | Operation::Vacate(release)
        | Operation::Cool(release, _)) = operation
        else {
            return false;
        };
        let mut slots = lock(&self.slots);
        let slot = slots.active.get_mut(&release.key);
        slot.is_some_and(|slot| slot.sends(release.token, lane))
    }

    /// A release in the background is done.
    pub(crate) fn given_back(&self, release: &Release) {
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.active.get_mut(&release.key)
            && slot.is_giving_back(release.token)
        {
            slot.forget(release.token);
            slots.tidy(&release.key);
        }
    }

    /// Whether nothing is known of any key.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        let slots = lock(&self.slots);
        slots.active.is_empty() && slots.quiet.is_empty()
    }

    /// A push for the waiter with `token`; `false` if nobody here knows of it.
    pub(crate) fn tell(core: &Arc<Core>, key: &Arc<str>, token: Token, news: News) -> bool {
        let mut slots = lock(&core.local.slots);
        let Some(slot) = slots.active.get_mut(key) else {
            let quiet = slots.quiet.get(key);
            return quiet.is_some_and(|hold| hold.token == token);
        };
        let contender = slot.contender.as_mut();
        let Some(contender) = contender.filter(|contender| contender.token() == Some(token)) else {
            // A push that comes late: the waiter was told before, and holds the key by now.
            let held = matches!(&slot.standing, Standing::Held(hold) if hold.token == token);
            return held || slot.is_giving_back(token);
        };
        // That the key is this waiter's stands until it has asked: nothing that comes later matters.
        if !matches!(contender.news, Some(News::Given(_))) {
            contender.news = Some(news);
        }
        let now = core.keeper.clock.now();
        contender.due = contender.due.min(now);
        let waker = contender.waker.take();
        slot.standing = match (news, std::mem::take(&mut slot.standing)) {
            // Another owner has it now, for so long: that is a fact for newcomers too.
            (News::Next(after), Standing::Refused { told, .. }) => {
                let refusal = Refusal {
                    remaining: Some(after),
                    ..told.refusal
                };
                Standing::Refused {
                    told: Told { refusal, at: now },
                    until: now + after.min(LONGEST),
                }
            }
            // The refusal does not stand any more.
            _ => Standing::Unknown,
        };
        let look = slot.plan_look();
        drop(slots);
        waker.into_iter().for_each(Waker::wake);
        look_at(core, key, look);
        true
    }

    /// Every contender asks again, at once or after a while. What it was told before is no fact any more.
    pub(crate) fn tell_all(core: &Arc<Core>, news: News) {
        let now = core.keeper.clock.now();
        let (mut wakers, mut looks) = (Vec::new(), Vec::new());
        let mut slots = lock(&core.local.slots);
        for (key, slot) in &mut slots.active {
            if let Some(contender) = &mut slot.contender {
                contender.news = Some(news);
                contender.due = contender.due.min(now);
                wakers.extend(contender.waker.take());
                if let Standing::Refused { told, .. } = &mut slot.standing {
                    told.refusal.pushed = false;
                }
                looks.push((Arc::clone(key), slot.plan_look()));
            }
        }
        drop(slots);
        wakers.into_iter().for_each(Waker::wake);
        for (key, look) in looks {
            look_at(core, &key, look);
        }
    }
}

/// Gives the next living waiter the seat, or forgets the key. Consumes the lock: the waiter is told
/// outside it.
fn promote(mut slots: MutexGuard<'_, Slots>, core: &Arc<Core>, key: &Arc<str>) {
    let id = slots.ticket();
    let Some(slot) = slots.active.get_mut(key) else {
        return;
    };
    let before = slot.contender.take();
    while let Some((_, waiter)) = slot.queue.pop_first() {
        if waiter.verdict.is_closed() {
            continue;
        }
        slot.seat(id, core.keeper.clock.now());
        let look = slot.plan_look();
        drop(slots);
        drop(before);
        let seat = Seat::new(core, key, id);
        // A waiter that is gone by now drops the seat, and so passes it on.
        drop(waiter.verdict.send(Verdict::Contend(seat)));
        return look_at(core, key, look);
    }
    slots.tidy(key);
    drop(slots);
    drop(before);
}
