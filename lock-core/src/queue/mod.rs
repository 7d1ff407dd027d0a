//! The queue of this process: one contender per key asks the store, the others stand behind it.
//!
//! Whoever comes while a valid lease of this process holds the key, or while the store's refusal
//! still stands, is told so without a round trip. While the contender's own question is in flight
//! nothing is known: those who do not want to wait share its answer. A contender whose future is not
//! polled loses its seat to the others ([`stalled`]).

mod contender;
mod ended;
mod handoff;
mod pushes;
mod slot;
mod stalled;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use tokio::sync::oneshot;

pub(crate) use self::contender::{Contender, Displaced, Ticket};
pub(crate) use self::handoff::{Handoff, Successor};
use self::slot::{KeyState, Slot, Waiter};
pub(crate) use self::slot::{ReleaseState, Supersede, held_fact};
use crate::active::ActiveLease;
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::sync::lock;
use crate::keeper::Keeper;
use crate::lease::LeaseOptions;
use crate::store::{Lane, Refusal};

/// Whether somebody stays when the answer is no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    None,
    Waits,
}

/// The engine, to which the queue gives back what it takes from futures that are not polled.
pub(crate) trait LeaseReturns: Send + Sync {
    /// A contender has lost its turn: its question is to be undone.
    fn undo(&self, lease: &Arc<ActiveLease>, lane: Lane, in_flight: bool);

    /// A lease was passed to a waiter that does not pick it up: it goes to the next in line, or back.
    fn give_back(&self, lease: &Arc<ActiveLease>);
}

pub(crate) struct Queue {
    slots: Mutex<Slots>,
    keeper: Arc<Keeper>,
    returns: Box<dyn LeaseReturns>,
    draining: AtomicBool,
}

type ByKey<T> = HashMap<Arc<str>, T, foldhash::quality::RandomState>;

/// A table for so many keys is kept when it is empty.
const ROOM: usize = 256;

#[derive(Default)]
struct Slots {
    /// Keys that somebody wants, or whose release is under way.
    active: ByKey<Slot>,
    /// Keys that are held, and that nobody else of this process has asked for: never in `active`.
    uncontended: ByKey<Arc<ActiveLease>>,
    /// Tickets are never used twice, so that whoever leaves takes nobody else's place along.
    last_ticket: u64,
}

impl Slots {
    fn number(&mut self) -> u64 {
        self.last_ticket += 1;
        self.last_ticket
    }

    /// The slot of a key, whatever is known of it so far.
    fn open(&mut self, key: &Arc<str>) -> &mut Slot {
        let slot = self.active.entry(Arc::clone(key)).or_default();
        if let Some(lease) = self.uncontended.remove(key) {
            give_back(&mut self.uncontended);
            slot.known = KeyState::Held(lease);
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
    Contend(Contender),
    /// The lock is its own: another task of this process has passed it on.
    Handoff(Handoff),
    Busy(Refusal),
    Failed(Error),
}

/// The answer to somebody who wants a key.
pub(crate) enum Admission {
    Contend(Contender),
    Queued(Ticket),
    Busy(Refusal),
}

impl Queue {
    pub(crate) fn new(keeper: Arc<Keeper>, returns: Box<dyn LeaseReturns>) -> Arc<Self> {
        Arc::new(Self {
            slots: Mutex::default(),
            keeper,
            returns,
            draining: AtomicBool::new(false),
        })
    }

    fn now(&self) -> Moment {
        self.keeper.timers.now()
    }

    /// Whether no more locks are given out.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// `number`: its place in line, told here unless it has one.
    pub(crate) fn enter(
        self: &Arc<Self>,
        key: &Arc<str>,
        patience: Patience,
        options: LeaseOptions,
        number: &mut Option<u64>,
    ) -> Admission {
        let now = self.now();
        let mut slots = lock(&self.slots);
        let id = slots.number();
        let number = *number.get_or_insert(id);
        let slot = slots.open(key);
        if patience == Patience::None
            && let Some(refusal) = slot.fact(now)
        {
            return Admission::Busy(refusal);
        }
        if slot.contender.is_none() && !slot.is_held(now) {
            slot.admit(id, now);
            return Admission::Contend(Contender::new(self, key, id));
        }
        let (verdict, answer) = oneshot::channel();
        let waiter = Waiter {
            patience,
            options,
            verdict,
            waker: None,
        };
        slot.queue.insert(number, waiter);
        let waker = match patience {
            Patience::None => slot.asks_now(now),
            Patience::Waits => None,
        };
        let look = slot.plan_check();
        drop(slots);
        waker.into_iter().for_each(Waker::wake);
        self.check_at(key, look);
        Admission::Queued(Ticket {
            queue: Arc::clone(self),
            key: Arc::clone(key),
            number,
            answer,
        })
    }

    /// Ends every wait: no more locks are given out, and what was asked for is undone, whether or not its
    /// contender is polled.
    pub(crate) fn drain(self: &Arc<Self>, error: &Error) {
        self.draining.store(true, Ordering::SeqCst);
        let (mut waiting, mut displaced, mut in_handoff) = (Vec::new(), Vec::new(), Vec::new());
        let mut slots = lock(&self.slots);
        slots.active.retain(|_, slot| {
            waiting.extend(std::mem::take(&mut slot.queue).into_values());
            displaced.extend(slot.displace());
            if let KeyState::Held(lease) = &slot.known
                && lease.pick_up()
            {
                in_handoff.push(Arc::clone(lease));
            }
            !slot.is_idle()
        });
        drop(slots);
        for waiter in waiting {
            drop(waiter.verdict.send(Verdict::Failed(error.clone())));
        }
        for contender in displaced {
            self.undo(contender);
        }
        for lease in in_handoff {
            self.returns.give_back(&lease);
            self.keeper.guard_ended();
        }
    }

    /// The leases that this process holds.
    pub(crate) fn held(&self) -> Vec<Arc<ActiveLease>> {
        let slots = lock(&self.slots);
        let leases = slots.active.values().filter_map(|slot| match &slot.known {
            KeyState::Held(lease) => Some(lease),
            _ => None,
        });
        leases.chain(slots.uncontended.values()).cloned().collect()
    }

    /// Whether nothing is known of any key.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        let slots = lock(&self.slots);
        slots.active.is_empty() && slots.uncontended.is_empty()
    }

    /// Gives the next living waiter the seat, or forgets the key. Consumes the lock: the waiter is told
    /// outside it.
    fn promote(self: &Arc<Self>, mut slots: MutexGuard<'_, Slots>, key: &Arc<str>) {
        let id = slots.number();
        let Some(slot) = slots.active.get_mut(key) else {
            return;
        };
        let before = slot.contender.take();
        while let Some((_, waiter)) = slot.queue.pop_first() {
            if waiter.verdict.is_closed() {
                continue;
            }
            slot.admit(id, self.now());
            let look = slot.plan_check();
            drop(slots);
            drop(before);
            let contender = Contender::new(self, key, id);
            // A waiter that is gone by now drops the seat, and so passes it on.
            drop(waiter.verdict.send(Verdict::Contend(contender)));
            return self.check_at(key, look);
        }
        slots.tidy(key);
        drop(slots);
        drop(before);
    }
}
