//! The contender, which asks the store, and the places of the waiters behind it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::oneshot;

use super::ended::{Predecessor, Supersede};
use super::slot::{Callers, KeyState, Slot, Waiter, held_fact};
use super::{Queue, Verdict};
use crate::active::ActiveLease;
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::sync::lock;
use crate::store::{Lane, News, Refusal};

/// Another waiter of this process is the contender now, because this one was not polled.
#[derive(Debug)]
pub(crate) struct Displaced;

/// The right to ask the store about a key. One caller has it at a time, and dropping it makes the next waiter
/// the contender.
pub(crate) struct Contender {
    pub(super) queue: Arc<Queue>,
    key: Arc<str>,
    id: u64,
    contends: bool,
}

impl Contender {
    /// The slot has this contender by now.
    pub(super) fn new(queue: &Arc<Queue>, key: &Arc<str>, id: u64) -> Self {
        Self {
            queue: Arc::clone(queue),
            key: Arc::clone(key),
            id,
            contends: true,
        }
    }

    fn with_slot<T>(&self, act: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        let mut slots = lock(&self.queue.slots);
        let slot = slots.active.get_mut(&self.key)?;
        slot.is_contender(self.id).then(|| act(slot))
    }

    /// Notes that the store is about to be asked for this lease by `lane`, so that pushes for it count from
    /// here on. Returns the lease of this process that the question steps over, unless its release was sent
    /// before on the same lane and that is enough.
    ///
    /// # Errors
    ///
    /// Another waiter is the contender now.
    pub(crate) fn asking(
        &self,
        lease: &Arc<ActiveLease>,
        lane: Lane,
        goes_behind: Option<Lane>,
        now: Moment,
    ) -> Result<Option<Predecessor>, Displaced> {
        let before = self.with_slot(|slot| {
            let before = slot.predecessor();
            let behind = before.is_some_and(|before| before.is_on(goes_behind));
            if let Some(contender) = &mut slot.contender {
                contender.asks_for = Some((Arc::clone(lease), lane));
                contender.in_flight = true;
                contender.freed = false;
                contender.rests = false;
                contender.due = now;
                contender.news = None;
                let named = before.filter(|_| !behind);
                contender.steps_over = named.map(|before| before.lease.token);
            }
            before
        });
        before.ok_or(Displaced)
    }

    /// Rests until `due`, unless a push comes.
    pub(crate) fn waits(&self, due: Moment) {
        let now = self.queue.now();
        self.with_slot(|slot| slot.answered(now, due));
    }

    /// Notes a refusal. The contender asks again at `until`, at `latest` also if the refusal stands for longer.
    pub(crate) fn refused(&self, refusal: &Refusal, until: Moment, latest: Moment) {
        let at = self.queue.now();
        self.has_stepped_over_nothing();
        let callers = self.with_slot(|slot| {
            slot.answered(at, until.min(latest));
            // A push that overtook the answer says when to ask again, so the refusal may not stand any more.
            let contender = slot.contender.as_mut();
            let overtaken = contender.is_some_and(|contender| {
                contender.rests = true;
                contender.news.is_some()
            });
            if !overtaken {
                let refusal = refusal.clone();
                slot.known = KeyState::Refused { refusal, at, until };
            }
            slot.take_callers(Callers::Impatient)
        });
        tell(callers.into_iter().flatten(), || {
            Verdict::Busy(refusal.clone())
        });
    }

    /// Sends a release after all that was left out for this contender.
    fn has_stepped_over_nothing(&self) {
        if let Some(Some(deferred)) = self.with_slot(Slot::steps_over_nothing) {
            deferred.hurry();
        }
    }

    /// Notes that the store gave no answer. The contender asks again at `until`.
    pub(crate) fn unanswered(&self, error: &Error, until: Moment) {
        self.has_stepped_over_nothing();
        let now = self.queue.now();
        let callers = self.with_slot(|slot| {
            slot.known = KeyState::Unknown;
            slot.answered(now, until);
            slot.take_callers(Callers::Impatient)
        });
        tell(callers.into_iter().flatten(), || {
            Verdict::Failed(error.clone())
        });
    }

    /// Resolves when there is a push for this contender.
    pub(crate) fn poll_news(&self, context: &mut Context<'_>) -> Poll<News> {
        let news = self.with_slot(|slot| {
            let Some(contender) = &mut slot.contender else {
                return Some(News::Ask);
            };
            let news = contender.news.take();
            if news.is_none() {
                contender.waker = Some(context.waker().clone());
            }
            news
        });
        news.unwrap_or(Some(News::Ask))
            .map_or(Poll::Pending, Poll::Ready)
    }

    /// Notes the grant. `false`: it comes too late, because another waiter is the contender now.
    ///
    /// The lease is lost at once if the process has heard of an order to free the key before it has heard of the grant.
    #[must_use]
    pub(crate) fn granted(mut self, lease: &Arc<ActiveLease>) -> bool {
        self.contends = false;
        let mut slots = lock(&self.queue.slots);
        let slot = slots.active.get_mut(&self.key);
        let Some(slot) = slot.filter(|slot| slot.is_contender(self.id)) else {
            return false;
        };
        let own = lease.slot();
        if *own != self.key {
            // A share that has waited in a line. The next one of the line asks now.
            let freed = slot
                .contender
                .as_ref()
                .is_some_and(|contender| contender.freed);
            slots
                .uncontended
                .insert(own.into_owned(), Arc::clone(lease));
            slots.permits.add(lease);
            self.queue.promote(slots, &self.key);
            self.loses(lease, freed);
            return true;
        }
        let contender = slot.contender.take();
        let freed = contender.as_ref().is_some_and(|contender| contender.freed);
        // The grant proves that they were stepped over, or have ended before.
        let superseded = slot.forget_all();
        let callers = slot.take_callers(Callers::Impatient);
        if slot.is_uncontended() && callers.is_empty() {
            // The usual case, and there may be very many, so as little as possible is kept.
            slots.forget(&self.key);
            slots
                .uncontended
                .insert(Arc::clone(&self.key), Arc::clone(lease));
            slots.permits.add(lease);
            drop(slots);
            drop(contender);
            supersede(&superseded);
            self.loses(lease, freed);
            return true;
        }
        let refusal = Refusal::held(lease.remaining());
        slot.known = KeyState::Held(Arc::clone(lease));
        drop(slots);
        drop(contender);
        supersede(&superseded);
        tell(callers, || Verdict::Busy(refusal.clone()));
        self.loses(lease, freed);
        true
    }

    /// Ends a lease that an operator has `freed`.
    fn loses(&self, lease: &ActiveLease, freed: bool) {
        if freed && lease.force() {
            self.queue.abandon(lease);
        }
    }

    /// Gives up on a refusal, which callers that do not wait share.
    pub(crate) fn gives_up(self, refusal: &Refusal) {
        self.ends(Callers::Impatient, || Verdict::Busy(refusal.clone()));
    }

    /// Gives up on a record, which all callers behind share, so that none of them asks the store again.
    pub(crate) fn finds_a_record(self, refusal: &Refusal) {
        self.ends(Callers::All, || Verdict::Busy(refusal.clone()));
    }

    /// Gives up on a store that does not answer, and fails all waiters behind.
    pub(crate) fn failed(self, error: &Error) {
        self.ends(Callers::All, || Verdict::Failed(error.clone()));
    }

    fn ends(&self, whom: Callers, verdict: impl Fn() -> Verdict) {
        let callers = self.with_slot(|slot| {
            slot.known = KeyState::Unknown;
            slot.take_callers(whom)
        });
        tell(callers.into_iter().flatten(), verdict);
    }
}

fn supersede(deferred: &[Arc<dyn Supersede>]) {
    for deferred in deferred {
        deferred.supersede();
    }
}

/// Gives callers their answer. The queue must not be locked.
pub(super) fn tell(callers: impl IntoIterator<Item = Waiter>, verdict: impl Fn() -> Verdict) {
    for caller in callers {
        drop(caller.verdict.send(verdict()));
    }
}

impl Drop for Contender {
    fn drop(&mut self) {
        if !self.contends {
            return;
        }
        self.has_stepped_over_nothing();
        let slots = lock(&self.queue.slots);
        let slot = slots.active.get(&self.key);
        if slot.is_some_and(|slot| slot.is_contender(self.id)) {
            self.queue.promote(slots, &self.key);
        }
    }
}

/// The place of a waiter in line. Dropping it leaves the queue.
pub(crate) struct PlaceInLine {
    pub(super) queue: Arc<Queue>,
    pub(super) key: Arc<str>,
    pub(super) number: u64,
    pub(super) answer: oneshot::Receiver<Verdict>,
}

impl PlaceInLine {
    pub(crate) fn poll_verdict(&mut self, context: &mut Context<'_>) -> Poll<Verdict> {
        match Pin::new(&mut self.answer).poll(context) {
            // A slot never drops a waiter without an answer. If it did, nothing would be known.
            Poll::Ready(verdict) => Poll::Ready(verdict.unwrap_or_else(|_| {
                Verdict::Failed(Error::unavailable("the wait ended without an answer"))
            })),
            Poll::Pending => self
                .take_from_the_stalled(context)
                .map_or(Poll::Pending, Poll::Ready),
        }
    }

    /// Ends the wait of this place: it shares the next answer, and the contender asks now. Returns the
    /// refusal if no question is needed because this process holds the key.
    pub(crate) fn asks_at_last(&self) -> Option<Refusal> {
        let now = self.queue.now();
        let mut slots = lock(&self.queue.slots);
        let slot = slots.active.get_mut(&self.key)?;
        if let Some(held) = slot.lease().and_then(|lease| held_fact(lease, now)) {
            return Some(held);
        }
        if let Some(waiter) = slot.queue.get_mut(&self.number) {
            waiter.waits = false;
        }
        let waker = slot.asks_now(now);
        let look = slot.plan_check();
        drop(slots);
        waker.into_iter().for_each(Waker::wake);
        self.queue.check_at(&self.key, look);
        None
    }
}

impl Drop for PlaceInLine {
    fn drop(&mut self) {
        let mut slots = lock(&self.queue.slots);
        let slot = slots.active.get_mut(&self.key);
        let left = slot.and_then(|slot| slot.queue.remove(&self.number));
        slots.tidy(&self.key);
        drop(slots);
        drop(left);
        // A contender that was made at this very moment is passed on when the answer drops.
    }
}
