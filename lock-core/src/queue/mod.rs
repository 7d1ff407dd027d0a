//! The queue of this process. One contender per key asks the store, and the other waiters stand behind it.
//!
//! A caller gets its refusal without a round trip while a valid lease of this process holds the key, or while
//! the store's refusal still stands. While a question is in flight nothing is known, so callers that do not
//! wait share its answer. A contender whose future is not polled loses its turn to the waiters behind it
//! ([`stalled`]).
//!
//! The queue knows nothing of the engine above it: it gives leases back through [`LeaseReturns`].

mod contender;
mod ended;
mod handoff;
#[cfg(all(test, feature = "test-util"))]
mod held_tests;
mod permits;
mod pushes;
mod resumed;
mod several;
mod shares;
#[cfg(test)]
mod shares_tests;
mod slot;
mod stalled;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use tokio::sync::{Notify, oneshot};

use self::contender::tell;
pub(crate) use self::contender::{Contender, PlaceInLine};
pub(crate) use self::ended::{ReleaseState, Supersede};
pub(crate) use self::handoff::{Handoff, Successor};
use self::permits::HeldPermits;
use self::resumed::SwappedIn;
pub(crate) use self::several::Occupied;
pub(crate) use self::slot::held_fact;
use self::slot::{KeyState, Slot, Waiter};
use crate::active::ActiveLease;
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::machine;
use crate::base::sync::lock;
use crate::base::token::Token;
use crate::keeper::Keeper;
use crate::lease::LeaseOptions;
use crate::store::{Lane, Refusal};

/// Takes back what the queue takes from futures that are not polled. The engine implements it.
pub(crate) trait LeaseReturns: Send + Sync {
    /// Undoes the question of a contender that has lost its turn.
    fn undo(&self, lease: &Arc<ActiveLease>, lane: Lane, in_flight: bool);

    /// Gives a lease to the next in line, or back to the store, because its waiter did not pick it up.
    fn give_back(&self, lease: &Arc<ActiveLease>);
}

pub(crate) struct Queue {
    slots: Mutex<Slots>,
    keeper: Arc<Keeper>,
    returns: Box<dyn LeaseReturns>,
    draining: AtomicBool,
    /// Notified when the manager begins to drain.
    drains: Notify,
    /// Notified when the store has confirmed a release, and the number of those releases.
    confirmed: Notify,
    confirmed_count: AtomicU64,
}

type ByKey<T> = HashMap<Arc<str>, T, machine::HashState>;

/// An empty table keeps room for so many keys.
const ROOM: usize = 256;

#[derive(Default)]
struct Slots {
    /// Keys that a task wants, or whose release is under way.
    active: ByKey<Slot>,
    /// Keys that are held and that no other task of this process has asked for. They are never in `active`.
    uncontended: ByKey<Arc<ActiveLease>>,
    /// Leases that came by a ticket while another task of this process was the contender of the key.
    beside: Vec<Arc<ActiveLease>>,
    /// Leases that take the place of a ticket, or of another lease, at this moment.
    swapped_in: Vec<SwappedIn>,
    permits: HeldPermits,
    /// The number of the last place. No number is used twice, so a waiter that leaves takes no other
    /// waiter's place along.
    last_place: u64,
}

impl Slots {
    fn number(&mut self) -> u64 {
        self.last_place += 1;
        self.last_place
    }

    /// Returns the slot of a key, and makes one if there is none.
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

    /// Returns the leases that this process holds in a slot, and those that came by a ticket beside its contender.
    fn held_in(&self, slot: &str) -> impl Iterator<Item = &Arc<ActiveLease>> {
        let known = self.active.get(slot).and_then(Slot::lease);
        let uncontended = self.uncontended.get(slot);
        let beside = self
            .beside
            .iter()
            .filter(move |lease| **lease.slot() == *slot);
        known.into_iter().chain(uncontended).chain(beside)
    }

    /// Returns the lease of a slot that has this token.
    fn held_with(&self, slot: &str, token: Token) -> Option<&Arc<ActiveLease>> {
        self.held_in(slot).find(|lease| lease.token == token)
    }

    /// Forgets a key of which nothing is known any more.
    fn tidy(&mut self, key: &Arc<str>) {
        if self.active.get(key).is_some_and(Slot::is_idle) {
            self.forget(key);
        }
    }
}

/// Shrinks an empty table, because very many keys at once leave a large one.
fn give_back<T>(keys: &mut ByKey<T>) {
    if keys.is_empty() && keys.capacity() > ROOM {
        keys.shrink_to(ROOM);
    }
}

/// The end of a wait.
pub(crate) enum Verdict {
    /// The waiter is the contender now and asks the store.
    Contend(Contender),
    /// Another task of this process has handed its lease to the waiter.
    Handoff(Handoff),
    Busy(Refusal),
    Failed(Error),
}

/// The answer to a caller that wants a key.
pub(crate) enum Admission {
    Queued(PlaceInLine),
    Decided(Verdict),
}

impl Queue {
    pub(crate) fn new(keeper: Arc<Keeper>, returns: Box<dyn LeaseReturns>) -> Arc<Self> {
        Arc::new(Self {
            slots: Mutex::default(),
            keeper,
            returns,
            draining: AtomicBool::new(false),
            drains: Notify::new(),
            confirmed: Notify::new(),
            confirmed_count: AtomicU64::new(0),
        })
    }

    fn now(&self) -> Moment {
        self.keeper.timers.now()
    }

    /// Returns whether the manager gives out no more locks.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Resolves when the manager drains.
    pub(crate) async fn draining(&self) {
        let mut drains = pin!(self.drains.notified());
        drains.as_mut().enable();
        if !self.is_draining() {
            drains.await;
        }
    }

    /// Admits a caller that wants the key. `waits`: it waits when the answer is no. `number` is its place's
    /// number, set here if it has none.
    pub(crate) fn enter(
        self: &Arc<Self>,
        key: &Arc<str>,
        waits: bool,
        options: LeaseOptions,
        number: &mut Option<u64>,
    ) -> Admission {
        let now = self.now();
        let mut slots = lock(&self.slots);
        let id = slots.number();
        let number = *number.get_or_insert(id);
        let slot = slots.open(key);
        if !waits && let Some(refusal) = slot.fact(now) {
            return Admission::Decided(Verdict::Busy(refusal));
        }
        let is_open = slot.contender.is_none() && !slot.is_held(now);
        if is_open && slot.queue.is_empty() {
            slot.admit(id, now);
            let contender = Contender::new(self, key, id);
            return Admission::Decided(Verdict::Contend(contender));
        }
        let (verdict, answer) = oneshot::channel();
        let waiter = Waiter {
            waits,
            options,
            verdict,
            waker: None,
        };
        slot.queue.insert(number, waiter);
        let place = PlaceInLine {
            queue: Arc::clone(self),
            key: Arc::clone(key),
            number,
            answer,
        };
        if is_open {
            // The owner waits for the answer to its release, and those in line come first.
            self.promote(slots, key);
            return Admission::Queued(place);
        }
        let waker = match waits {
            true => None,
            false => slot.asks_now(now),
        };
        let look = slot.plan_check();
        drop(slots);
        waker.into_iter().for_each(Waker::wake);
        self.check_at(key, look);
        Admission::Queued(place)
    }

    /// Ends every wait. No more locks are given out, and every question is undone, whether or not its
    /// contender is polled.
    pub(crate) fn drain(self: &Arc<Self>, error: &Error) {
        self.draining.store(true, Ordering::SeqCst);
        self.drains.notify_waiters();
        let (mut waiting, mut displaced, mut in_handoff) = (Vec::new(), Vec::new(), Vec::new());
        let mut slots = lock(&self.slots);
        slots.active.retain(|_, slot| {
            waiting.extend(std::mem::take(&mut slot.queue).into_values());
            displaced.extend(slot.displace());
            in_handoff.extend(slot.lease().filter(|lease| lease.pick_up()).cloned());
            !slot.is_idle()
        });
        drop(slots);
        tell(waiting, || Verdict::Failed(error.clone()));
        for contender in displaced {
            self.undo(contender);
        }
        for lease in in_handoff {
            self.returns.give_back(&lease);
            self.keeper.guard_ended();
        }
    }

    /// Returns the leases that this process holds.
    pub(crate) fn held(&self) -> Vec<Arc<ActiveLease>> {
        let slots = lock(&self.slots);
        let leases = slots.active.values().filter_map(Slot::lease);
        leases
            .chain(slots.uncontended.values())
            .chain(&slots.beside)
            .cloned()
            .collect()
    }

    /// Returns the leases that this process holds of a key. A share is none of them.
    pub(crate) fn held_at(&self, key: &str) -> Vec<Arc<ActiveLease>> {
        lock(&self.slots).held_in(key).cloned().collect()
    }

    /// Returns whether nothing is known of any key.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        let slots = lock(&self.slots);
        slots.active.is_empty() && slots.uncontended.is_empty() && slots.permits.is_empty()
    }

    /// Makes the next living waiter the contender, or forgets the key. Consumes the lock, because the waiter
    /// is told outside it.
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
            // A waiter that is gone by now drops the contender, which makes the next waiter the contender.
            drop(waiter.verdict.send(Verdict::Contend(contender)));
            return self.check_at(key, look);
        }
        slots.tidy(key);
        drop(slots);
        drop(before);
    }
}
