//! The queue of this process: one contender per key asks the store, the others stand behind it.
//!
//! Whoever comes while a valid lease of this process holds the key, or while the store's refusal
//! still stands, is told so without a round trip. While the contender's own question is in flight
//! nothing is known: those who do not want to wait share its answer.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::clock::Moment;
use crate::error::Error;
use crate::hold::Hold;
use crate::manager::Core;
use crate::store::{Refusal, Release};
use crate::sync::lock;
use crate::token::Token;

/// Whether somebody stays when the answer is no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    None,
    Waits,
}

#[derive(Default)]
pub(crate) struct Local {
    slots: Mutex<HashMap<Arc<str>, Slot>>,
}

type Slots<'a> = MutexGuard<'a, HashMap<Arc<str>, Slot>>;

#[derive(Default)]
struct Slot {
    standing: Standing,
    /// Who asks the store.
    contender: Option<Contender>,
    /// In the order of arrival.
    queue: BTreeMap<u64, Waiter>,
    last_ticket: u64,
    /// A token of this process whose release is still under way.
    unreleased: Option<Token>,
    /// The store's last word, if it was a refusal: what a wait that ends is told, though it does
    /// not stand for newcomers any more.
    last_refusal: Option<Told>,
}

/// A refusal, and when it was told.
#[derive(Clone)]
struct Told {
    refusal: Refusal,
    at: Moment,
}

impl Told {
    /// The refusal as it reads now.
    fn now(&self, now: Moment) -> Refusal {
        let passed = now.since(self.at);
        let left = |span: Duration| span.saturating_sub(passed);
        Refusal {
            remaining: self.refusal.remaining.map(left),
            ..self.refusal.clone()
        }
    }
}

/// What is known about the key.
#[derive(Default)]
enum Standing {
    #[default]
    Unknown,
    /// Refused by the store; to be asked again at `until`, or when a push comes.
    Refused { told: Told, until: Moment },
    /// Held by this process.
    Held(Arc<Hold>),
}

struct Contender {
    id: u64,
    token: Option<Token>,
    nudged: bool,
    waker: Option<Waker>,
}

struct Waiter {
    patience: Patience,
    verdict: oneshot::Sender<Verdict>,
}

/// What becomes of a waiter.
pub(crate) enum Verdict {
    /// It is its turn to ask the store.
    Contend(Seat),
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
    pub(crate) fn enter(core: &Arc<Core>, key: &Arc<str>, patience: Patience) -> Entry {
        let now = core.keeper.clock.now();
        let mut slots = lock(&core.local.slots);
        let slot = slots.entry(Arc::clone(key)).or_default();
        if patience == Patience::None
            && let Some(refusal) = slot.fact(now)
        {
            return Entry::Busy(refusal);
        }
        if slot.contender.is_none() && !slot.is_held(now) {
            return Entry::Contend(slot.seat(core, key));
        }
        let (verdict, answer) = oneshot::channel();
        slot.last_ticket += 1;
        let ticket = slot.last_ticket;
        slot.queue.insert(ticket, Waiter { patience, verdict });
        Entry::Queued(Place {
            core: Arc::clone(core),
            key: Arc::clone(key),
            ticket,
            answer,
        })
    }

    /// What a wait that ends is told: who holds the key now, or the last refusal since the store
    /// last failed to answer.
    pub(crate) fn last_word(core: &Core, key: &str) -> Option<Refusal> {
        let now = core.keeper.clock.now();
        let slots = lock(&core.local.slots);
        let slot = slots.get(key)?;
        let last = slot.last_refusal.as_ref();
        slot.fact(now).or_else(|| last.map(|told| told.now(now)))
    }

    /// Ends every wait: no more locks are given out. Contenders find out when they look.
    pub(crate) fn drain(&self, error: &Error) {
        let mut waiting = Vec::new();
        for slot in lock(&self.slots).values_mut() {
            waiting.append(&mut std::mem::take(&mut slot.queue).into_values().collect());
        }
        for waiter in waiting {
            drop(waiter.verdict.send(Verdict::Failed(error.clone())));
        }
        self.nudge_all();
    }

    /// The leases that this process holds.
    pub(crate) fn held(&self) -> Vec<Arc<Hold>> {
        let slots = lock(&self.slots);
        let holds = slots.values().filter_map(|slot| match &slot.standing {
            Standing::Held(hold) => Some(Arc::clone(hold)),
            _ => None,
        });
        holds.collect()
    }

    /// The tenure is over: the next in line contends. `unreleased`: the release of its token is
    /// still under way, so the next one may step over it.
    pub(crate) fn leave(&self, hold: &Hold, unreleased: bool) {
        let mut slots = lock(&self.slots);
        let Some(slot) = slots.get_mut(&hold.key) else {
            return;
        };
        if !slot.is_held_by(hold) {
            return;
        }
        let over = std::mem::take(&mut slot.standing);
        slot.unreleased = unreleased.then_some(hold.token);
        promote(slots, &hold.core, &hold.key);
        drop(over);
    }

    /// The lease is lost: others of this process may ask the store, whatever its owner still does.
    pub(crate) fn abandon(&self, hold: &Hold) {
        self.leave(hold, false);
    }

    /// The release of a token that may hold the key is under way: the next one may step over it.
    pub(crate) fn note_unreleased(&self, hold: &Hold) {
        let mut slots = lock(&self.slots);
        let slot = slots.entry(Arc::clone(&hold.key)).or_default();
        slot.unreleased = Some(hold.token);
    }

    /// A release in the background is done.
    pub(crate) fn given_back(&self, release: &Release) {
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get_mut(&release.key) {
            if slot.unreleased == Some(release.token) {
                slot.unreleased = None;
            }
            remove_if_idle(&mut slots, &release.key);
        }
    }

    /// A push for the waiter with `token`; `false` if nobody here knows of it.
    pub(crate) fn nudge(&self, key: &str, token: Token) -> bool {
        let mut slots = lock(&self.slots);
        let Some(slot) = slots.get_mut(key) else {
            return false;
        };
        let contender = slot.contender.as_mut();
        let Some(contender) = contender.filter(|contender| contender.token == Some(token)) else {
            // A push that comes late: the waiter was told before, and holds the key by now.
            let held = matches!(&slot.standing, Standing::Held(hold) if hold.token == token);
            return held || slot.unreleased == Some(token);
        };
        contender.nudged = true;
        let waker = contender.waker.take();
        // The refusal does not stand any more.
        slot.standing = Standing::Unknown;
        drop(slots);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// Every contender asks again.
    pub(crate) fn nudge_all(&self) {
        let mut wakers = Vec::new();
        for slot in lock(&self.slots).values_mut() {
            if let Some(contender) = &mut slot.contender {
                contender.nudged = true;
                wakers.extend(contender.waker.take());
                if let Standing::Refused { .. } = slot.standing {
                    slot.standing = Standing::Unknown;
                }
            }
        }
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Slot {
    /// A refusal is told from a fact only: a valid lease, or an answer that still stands.
    fn fact(&self, now: Moment) -> Option<Refusal> {
        match &self.standing {
            Standing::Held(hold) if self.is_held(now) => Some(Refusal {
                cooling: false,
                remaining: Some(hold.remaining_at(now)),
                pushed: true,
            }),
            Standing::Refused { told, until } if now < *until => Some(told.now(now)),
            _ => None,
        }
    }

    fn is_held(&self, now: Moment) -> bool {
        matches!(&self.standing, Standing::Held(hold) if hold.remaining_at(now) > Duration::ZERO)
    }

    fn is_held_by(&self, hold: &Hold) -> bool {
        matches!(&self.standing, Standing::Held(held) if std::ptr::eq(&raw const **held, hold))
    }

    fn seat(&mut self, core: &Arc<Core>, key: &Arc<str>) -> Seat {
        // A lease that ran out unnoticed is nobody's any more.
        self.standing = Standing::Unknown;
        self.last_ticket += 1;
        let id = self.last_ticket;
        self.contender = Some(Contender {
            id,
            token: None,
            nudged: false,
            waker: None,
        });
        Seat {
            core: Arc::clone(core),
            key: Arc::clone(key),
            id,
            seated: true,
        }
    }

    /// Those who do not wait, for the answer to be told to them.
    fn impatient(&mut self) -> Vec<oneshot::Sender<Verdict>> {
        let (impatient, patient): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.queue)
                .into_iter()
                .partition(|(_, waiter)| waiter.patience == Patience::None);
        self.queue = patient;
        impatient
            .into_values()
            .map(|waiter| waiter.verdict)
            .collect()
    }
}

/// Gives the next living waiter the seat, or forgets the key. Consumes the lock: the waiter is told
/// outside it.
fn promote(mut slots: Slots<'_>, core: &Arc<Core>, key: &Arc<str>) {
    let Some(slot) = slots.get_mut(key) else {
        return;
    };
    slot.contender = None;
    while let Some((_, waiter)) = slot.queue.pop_first() {
        if waiter.verdict.is_closed() {
            continue;
        }
        let seat = slot.seat(core, key);
        drop(slots);
        // A waiter that is gone by now drops the seat, and so passes it on.
        drop(waiter.verdict.send(Verdict::Contend(seat)));
        return;
    }
    remove_if_idle(&mut slots, key);
}

fn remove_if_idle(slots: &mut Slots<'_>, key: &Arc<str>) {
    let idle = |slot: &Slot| {
        slot.contender.is_none()
            && slot.queue.is_empty()
            && slot.unreleased.is_none()
            && !matches!(slot.standing, Standing::Held(_))
    };
    if slots.get(key).is_some_and(idle) {
        slots.remove(key);
    }
}

/// The right to ask the store about a key, for one at a time. Dropping it passes it on.
pub(crate) struct Seat {
    core: Arc<Core>,
    key: Arc<str>,
    id: u64,
    seated: bool,
}

impl Seat {
    fn with_slot<T>(&self, act: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        let mut slots = lock(&self.core.local.slots);
        let slot = slots.get_mut(&self.key)?;
        (slot.contender.as_ref()?.id == self.id).then(|| act(slot))
    }

    /// The store is about to be asked with this token; pushes for it count from here on. Answers
    /// the token of this process that may be stepped over.
    pub(crate) fn asking(&self, token: Token) -> Option<Token> {
        self.with_slot(|slot| {
            if let Some(contender) = &mut slot.contender {
                contender.token = Some(token);
                contender.nudged = false;
            }
            slot.unreleased
        })?
    }

    /// The store said no; it will be asked again at `until`.
    pub(crate) fn refused(&self, refusal: &Refusal, until: Moment) {
        let told = self.told(refusal);
        let impatient = self.with_slot(|slot| {
            slot.last_refusal = Some(told.clone());
            // A push that overtook the answer: it is about to be asked again.
            let contender = slot.contender.as_ref();
            if !contender.is_some_and(|contender| contender.nudged) {
                slot.standing = Standing::Refused { told, until };
            }
            slot.impatient()
        });
        tell_busy(impatient, refusal);
    }

    fn told(&self, refusal: &Refusal) -> Told {
        Told {
            refusal: refusal.clone(),
            at: self.core.keeper.clock.now(),
        }
    }

    /// The store gave no answer; it will be asked again.
    pub(crate) fn unanswered(&self, error: &Error) {
        let impatient = self.with_slot(|slot| {
            slot.standing = Standing::Unknown;
            slot.last_refusal = None;
            slot.impatient()
        });
        for verdict in impatient.into_iter().flatten() {
            drop(verdict.send(Verdict::Failed(error.clone())));
        }
    }

    /// Resolves when a push says that the key may be free.
    pub(crate) fn poll_nudged(&self, context: &mut Context<'_>) -> Poll<()> {
        let nudged = self.with_slot(|slot| {
            let Some(contender) = &mut slot.contender else {
                return true;
            };
            if !contender.nudged {
                contender.waker = Some(context.waker().clone());
            }
            contender.nudged
        });
        if nudged.unwrap_or(true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// The store said yes.
    pub(crate) fn granted(mut self, hold: &Arc<Hold>) {
        self.seated = false;
        let refusal = Refusal {
            cooling: false,
            remaining: Some(hold.remaining()),
            pushed: true,
        };
        let told = self.told(&refusal);
        let impatient = self.with_slot(|slot| {
            slot.standing = Standing::Held(Arc::clone(hold));
            slot.contender = None;
            // Either stepped over, or gone before: the grant proves it.
            slot.unreleased = None;
            slot.last_refusal = Some(told);
            slot.impatient()
        });
        tell_busy(impatient, &refusal);
    }

    /// The contender gives up on a refusal; those who do not wait share it.
    pub(crate) fn gives_up(self, refusal: &Refusal) {
        let told = self.told(refusal);
        let impatient = self.with_slot(|slot| {
            slot.standing = Standing::Unknown;
            slot.last_refusal = Some(told);
            slot.impatient()
        });
        tell_busy(impatient, refusal);
    }

    /// The store gave no answer for too long: that is the answer for all who wait behind.
    pub(crate) fn failed(self, error: &Error) {
        let waiting = self.with_slot(|slot| {
            slot.standing = Standing::Unknown;
            slot.last_refusal = None;
            std::mem::take(&mut slot.queue)
        });
        for waiter in waiting.into_iter().flatten().map(|(_, waiter)| waiter) {
            drop(waiter.verdict.send(Verdict::Failed(error.clone())));
        }
    }
}

fn tell_busy(impatient: Option<Vec<oneshot::Sender<Verdict>>>, refusal: &Refusal) {
    for verdict in impatient.into_iter().flatten() {
        drop(verdict.send(Verdict::Busy(refusal.clone())));
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !self.seated {
            return;
        }
        let slots = lock(&self.core.local.slots);
        let mine = |slot: &Slot| {
            slot.contender
                .as_ref()
                .is_some_and(|contender| contender.id == self.id)
        };
        if slots.get(&self.key).is_some_and(mine) {
            promote(slots, &self.core, &self.key);
        }
    }
}

/// A place in the queue. Dropping it leaves the queue.
pub(crate) struct Place {
    core: Arc<Core>,
    key: Arc<str>,
    ticket: u64,
    answer: oneshot::Receiver<Verdict>,
}

impl Place {
    pub(crate) fn poll_verdict(&mut self, context: &mut Context<'_>) -> Poll<Verdict> {
        Pin::new(&mut self.answer).poll(context).map(|verdict| {
            // A slot never drops a waiter without a word; if it did, nothing is known.
            verdict.unwrap_or_else(|_| {
                Verdict::Failed(Error::unavailable("the wait ended without an answer"))
            })
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut slots = lock(&self.core.local.slots);
        let left = slots
            .get_mut(&self.key)
            .and_then(|slot| slot.queue.remove(&self.ticket));
        remove_if_idle(&mut slots, &self.key);
        drop(slots);
        drop(left);
        // A seat that was handed over at this very moment passes itself on when the answer drops.
    }
}
