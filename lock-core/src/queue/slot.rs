//! One key: the facts that are known, the contender, and the waiters in line.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use tokio::sync::oneshot;

use super::Verdict;
use super::ended::{ReleaseState, Unreleased};
use crate::active::ActiveLease;
use crate::base::clock::Moment;
use crate::base::token::Token;
use crate::lease::LeaseOptions;
use crate::store::{Lane, News, Refusal};

/// The age up to which an answer of the store is a fact. A caller that comes later has the contender ask again, at most
/// ten times a second.
const BELIEVED: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct Slot {
    pub(super) known: KeyState,
    /// The caller that asks the store.
    pub(super) contender: Option<ContenderState>,
    /// In the order of arrival.
    pub(super) queue: BTreeMap<u64, Waiter>,
    /// The time at which the keeper checks for stalled waiters, if a check is planned.
    pub(super) next_check: Option<Moment>,
    /// The time at which the owner ended while others waited, if its lease goes back to the store.
    pub(super) left_at: Option<Moment>,
    /// The newest last.
    pub(super) unreleased: Vec<Unreleased>,
}

/// The facts that are known about a key.
#[derive(Default)]
pub(super) enum KeyState {
    #[default]
    Unknown,
    /// Refused by the store at that time. The contender asks again at `until`, or when a push comes.
    Refused {
        refusal: Refusal,
        at: Moment,
        until: Moment,
    },
    /// Held by this process.
    Held(Arc<ActiveLease>),
}

pub(super) struct ContenderState {
    pub(super) id: u64,
    /// The lease that it asks for, and the lane of its questions.
    pub(super) asks_for: Option<(Arc<ActiveLease>, Lane)>,
    /// Whether a question waits for its answer.
    pub(super) in_flight: bool,
    /// Set if an operator has freed the key since the contender asked. A grant that answers this question counts for
    /// nothing, because the store gave it before the order.
    pub(super) freed: bool,
    /// Whether it rests after a refusal, until a push comes or it is time to ask again.
    pub(super) rests: bool,
    /// The time of its next action. For a question in flight, the time at which it was last seen to be
    /// polled.
    pub(super) due: Moment,
    /// The lease of this process that its question names.
    pub(super) steps_over: Option<Token>,
    pub(super) news: Option<News>,
    pub(super) waker: Option<Waker>,
}

pub(super) struct Waiter {
    pub(super) waits: bool,
    pub(super) options: LeaseOptions,
    pub(super) verdict: oneshot::Sender<Verdict>,
    /// Woken when a waiter before this one is stalled.
    pub(super) waker: Option<Waker>,
}

/// The callers behind the contender that share an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Callers {
    /// Those that do not wait.
    Impatient,
    All,
}

impl ContenderState {
    pub(super) fn token(&self) -> Option<Token> {
        self.asks_for.as_ref().map(|(lease, _)| lease.token)
    }
}

impl Slot {
    /// Returns a refusal if it is a fact: from a valid lease, or from an answer of the store that still
    /// stands. An answer stands only if its end would be pushed, because the end of any other answer goes
    /// unnoticed, and only for a moment, because this process is not told of the next owner's end.
    pub(super) fn fact(&self, now: Moment) -> Option<Refusal> {
        match &self.known {
            // A lease that its waiter does not pick up can be had.
            KeyState::Held(lease) => held_fact(lease, now).filter(|_| !self.is_not_picked_up(now)),
            KeyState::Refused { refusal, at, until }
                if refusal.pushed && now < *until && now.since(*at) < BELIEVED =>
            {
                let left = |span: Duration| span.saturating_sub(now.since(*at));
                Some(Refusal {
                    remaining: refusal.remaining.map(left),
                    ..refusal.clone()
                })
            }
            _ => None,
        }
    }

    /// Returns whether the contender rests until the store tells it that the refusal does not stand any more. Those that come
    /// after it would be refused too.
    pub(super) fn rests(&self, now: Moment) -> bool {
        let contender = self.contender.as_ref();
        contender.is_some_and(|contender| contender.rests)
            && matches!(&self.known, KeyState::Refused { refusal, until, .. } if refusal.pushed && now < *until)
    }

    /// Has the contender ask now if it rests after a refusal, because the caller shares the answer. Returns
    /// its waker, to be woken outside of the lock.
    #[must_use]
    pub(super) fn asks_now(&mut self, now: Moment) -> Option<Waker> {
        let contender = self.contender.as_mut()?;
        if !contender.rests {
            return None;
        }
        self.known = KeyState::Unknown;
        if !matches!(contender.news, Some(News::Given(_))) {
            contender.news = Some(News::Ask);
            contender.due = contender.due.min(now);
        }
        contender.waker.take()
    }

    pub(super) fn is_held(&self, now: Moment) -> bool {
        self.lease()
            .is_some_and(|lease| lease.remaining_at(now) > Duration::ZERO)
    }

    pub(super) fn is_contender(&self, id: u64) -> bool {
        let contender = self.contender.as_ref();
        contender.is_some_and(|contender| contender.id == id)
    }

    /// Notes that the contender's question is answered and that its next action is at `due`, unless a push
    /// has overtaken the answer.
    pub(super) fn answered(&mut self, now: Moment, due: Moment) {
        if let Some(contender) = &mut self.contender {
            contender.in_flight = false;
            contender.due = contender.news.map_or(due, |_| now);
        }
    }

    pub(super) fn is_held_by(&self, lease: &ActiveLease) -> bool {
        self.lease()
            .is_some_and(|held| std::ptr::eq(&raw const **held, lease))
    }

    /// Makes a caller the contender.
    pub(super) fn admit(&mut self, id: u64, now: Moment) {
        self.left_at = None;
        // The lease may have run out unnoticed, or its owner still waits for the release.
        if let KeyState::Held(lease) = std::mem::take(&mut self.known) {
            self.note_ended(lease.replaced(), ReleaseState::Known);
        }
        self.contender = Some(ContenderState {
            id,
            asks_for: None,
            in_flight: false,
            freed: false,
            rests: false,
            due: now,
            steps_over: None,
            news: None,
            waker: None,
        });
    }

    /// Returns whether nothing is known of the key.
    pub(super) fn is_idle(&self) -> bool {
        self.is_uncontended() && !matches!(self.known, KeyState::Held(_))
    }

    /// Returns whether no task but an owner has to do with the key.
    pub(super) fn is_uncontended(&self) -> bool {
        self.contender.is_none() && self.queue.is_empty() && self.unreleased.is_empty()
    }

    /// Takes out the callers that get an answer now.
    pub(super) fn take_callers(&mut self, whom: Callers) -> Vec<Waiter> {
        if self.queue.is_empty() {
            return Vec::new();
        }
        let (told, others): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.queue)
            .into_iter()
            .partition(|(_, waiter)| whom == Callers::All || !waiter.waits);
        self.queue = others;
        told.into_values().collect()
    }

    /// Returns the lease of this process that holds the key, as far as is known.
    pub(super) fn lease(&self) -> Option<&Arc<ActiveLease>> {
        match &self.known {
            KeyState::Held(lease) => Some(lease),
            KeyState::Unknown | KeyState::Refused { .. } => None,
        }
    }
}

/// Returns the refusal that a valid lease of this process amounts to.
pub(crate) fn held_fact(lease: &ActiveLease, now: Moment) -> Option<Refusal> {
    let remaining = lease.remaining_at(now);
    (!remaining.is_zero()).then(|| Refusal::held(remaining))
}
