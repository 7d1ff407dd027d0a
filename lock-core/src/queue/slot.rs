//! What is known about one key, and who stands before it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Patience, Verdict};
use crate::active::ActiveLease;
use crate::base::clock::Moment;
use crate::base::token::Token;
use crate::lease::LeaseOptions;
use crate::store::{Lane, News, Refusal, Replaced};

#[derive(Default)]
pub(super) struct Slot {
    pub(super) known: KeyState,
    /// Who asks the store.
    pub(super) contender: Option<ContenderState>,
    /// In the order of arrival.
    pub(super) queue: BTreeMap<u64, Waiter>,
    /// When the keeper looks for stalled waiters, if that is planned.
    pub(super) next_check: Option<Moment>,
    /// The newest last.
    unreleased: Vec<Unreleased>,
}

/// A lease of this process that has ended, and that whoever asks next may step over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Predecessor {
    pub(crate) lease: Replaced,
    /// The lane on which its release comes before whatever is sent from now on.
    pub(crate) sent: Option<Lane>,
}

impl Predecessor {
    /// Whether its release goes before whatever is sent by this lane.
    pub(crate) fn is_on(self, lane: Option<Lane>) -> bool {
        self.sent.is_some() && self.sent == lane
    }
}

/// What a tenure that is over may have left in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReleaseState {
    /// Nothing that anybody has to hear of.
    Nothing,
    /// Something that its owner, or a job, still sees to: a late push for it is not to be undone by
    /// whoever hears it, who knows of no fencing token and no cooldown.
    Known,
    /// The same, and the next one may step over it: its release is under way, and nothing is to stay
    /// behind it.
    Steppable,
}

/// A lease of this process that is over, and not yet given back as far as is known.
pub(super) struct Unreleased {
    lease: Replaced,
    steppable: bool,
    /// The lane by which its release has been sent: what follows there finds the key free.
    sent: Option<Lane>,
    /// Its release, if it may be left out.
    deferred: Option<Arc<dyn Supersede>>,
}

/// A release that is under way, and that a grant to the next task of this process makes needless.
pub(crate) trait Supersede: Send + Sync {
    /// The key was granted since: there is nothing left to give back.
    fn supersede(&self);

    /// The next task did not step over the lease: the release is sent now.
    fn hurry(&self);
}

/// A refusal, and when it was told.
#[derive(Clone)]
pub(super) struct RecordedRefusal {
    pub(super) refusal: Refusal,
    pub(super) at: Moment,
}

impl RecordedRefusal {
    /// The refusal as it reads now.
    pub(super) fn now(&self, now: Moment) -> Refusal {
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
pub(super) enum KeyState {
    #[default]
    Unknown,
    /// Refused by the store; to be asked again at `until`, or when a push comes.
    Refused {
        told: RecordedRefusal,
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
    /// When it has something to do; of a question in flight, when it was last known to be polled.
    pub(super) due: Moment,
    /// The lease of this process that its question names.
    pub(super) steps_over: Option<Token>,
    pub(super) news: Option<News>,
    pub(super) waker: Option<Waker>,
}

pub(super) struct Waiter {
    pub(super) patience: Patience,
    pub(super) options: LeaseOptions,
    pub(super) verdict: oneshot::Sender<Verdict>,
    /// Woken when a waiter before this one is stalled.
    pub(super) waker: Option<Waker>,
}

impl ContenderState {
    pub(super) fn token(&self) -> Option<Token> {
        self.asks_for.as_ref().map(|(lease, _)| lease.token)
    }
}

impl Slot {
    /// Whether the release of this token is under way.
    pub(super) fn is_releasing(&self, token: Token) -> bool {
        self.unreleased.iter().any(|one| one.lease.token == token)
    }

    /// The lease that whoever asks next may step over: of several the last one, which was told of
    /// those before it.
    pub(super) fn predecessor(&self) -> Option<Predecessor> {
        let last = self.unreleased.last().filter(|last| last.steppable)?;
        // Those before it may go another way.
        let only = self.unreleased.len() == 1;
        Some(Predecessor {
            lease: last.lease,
            sent: last.sent.filter(|_| only),
        })
    }

    pub(super) fn note_ended(&mut self, lease: Replaced, left: ReleaseState) {
        self.note_ended_with(lease, left, None);
    }

    pub(super) fn note_ended_with(
        &mut self,
        lease: Replaced,
        left: ReleaseState,
        deferred: Option<Arc<dyn Supersede>>,
    ) {
        self.forget(lease.token);
        if left != ReleaseState::Nothing {
            self.unreleased.push(Unreleased {
                lease,
                steppable: left == ReleaseState::Steppable,
                sent: None,
                deferred,
            });
        }
    }

    /// The release of this token is about to be sent. `false`: it is not to be, as it has been forgotten,
    /// or the contender is stepping over it at this moment.
    pub(super) fn sends(&mut self, token: Token, lane: Lane) -> bool {
        let contender = self.contender.as_ref();
        if contender.is_some_and(|contender| contender.steps_over == Some(token)) {
            return false;
        }
        let mut unreleased = self.unreleased.iter_mut();
        match unreleased.find(|one| one.lease.token == token) {
            Some(one) => {
                one.sent = Some(lane);
                true
            }
            None => false,
        }
    }

    pub(super) fn forget(&mut self, token: Token) {
        self.unreleased.retain(|one| one.lease.token != token);
    }

    /// A grant proves of all leases before it that they have ended. Answers the releases that need not be
    /// sent any more, to be told so outside of the lock.
    #[must_use]
    pub(super) fn forget_all(&mut self) -> Vec<Arc<dyn Supersede>> {
        let forgotten = std::mem::take(&mut self.unreleased);
        forgotten
            .into_iter()
            .filter_map(|one| one.deferred)
            .collect()
    }

    /// The contender has stepped over nothing, as far as is known. Answers the release that has been left
    /// out for it, to be sent after all.
    #[must_use]
    pub(super) fn steps_over_nothing(&mut self) -> Option<Arc<dyn Supersede>> {
        let token = self.contender.as_mut()?.steps_over.take()?;
        let mut unreleased = self.unreleased.iter_mut();
        let one = unreleased.find(|one| one.lease.token == token)?;
        // What has been sent is answered.
        one.deferred.take().filter(|_| one.sent.is_none())
    }

    /// A refusal is told from a fact only: a valid lease, or an answer that still stands. An answer stands while
    /// its end would be pushed; the end of any other answer goes unnoticed.
    pub(super) fn fact(&self, now: Moment) -> Option<Refusal> {
        match &self.known {
            // One that is left alone on its way to a waiter is to be had.
            KeyState::Held(lease) => held_fact(lease, now).filter(|_| !self.is_not_picked_up(now)),
            KeyState::Refused { told, until } if told.refusal.pushed && now < *until => {
                Some(told.now(now))
            }
            _ => None,
        }
    }

    /// The contender asks now, if it rests after a refusal: the caller shares the answer. Answers its waker, to be
    /// woken outside of the lock.
    #[must_use]
    pub(super) fn asks_now(&mut self, now: Moment) -> Option<Waker> {
        let contender = self.contender.as_mut()?;
        if !matches!(self.known, KeyState::Refused { .. }) {
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
        matches!(&self.known, KeyState::Held(lease) if lease.remaining_at(now) > Duration::ZERO)
    }

    pub(super) fn is_contender(&self, id: u64) -> bool {
        let contender = self.contender.as_ref();
        contender.is_some_and(|contender| contender.id == id)
    }

    /// The contender's question has its answer, and nothing is to be done before `due`; unless a push has
    /// overtaken the answer.
    pub(super) fn answered(&mut self, now: Moment, due: Moment) {
        if let Some(contender) = &mut self.contender {
            contender.in_flight = false;
            contender.due = contender.news.map_or(due, |_| now);
        }
    }

    pub(super) fn is_held_by(&self, lease: &ActiveLease) -> bool {
        matches!(&self.known, KeyState::Held(held) if std::ptr::eq(&raw const **held, lease))
    }

    /// Seats a contender.
    pub(super) fn admit(&mut self, id: u64, now: Moment) {
        // A lease that ran out unnoticed is nobody's any more, and one whose owner waits for its
        // release will be.
        if let KeyState::Held(lease) = std::mem::take(&mut self.known) {
            self.note_ended(lease.replaced(), ReleaseState::Known);
        }
        self.contender = Some(ContenderState {
            id,
            asks_for: None,
            in_flight: false,
            due: now,
            steps_over: None,
            news: None,
            waker: None,
        });
    }

    /// Whether there is nothing to know.
    pub(super) fn is_idle(&self) -> bool {
        self.is_uncontended() && !matches!(self.known, KeyState::Held(_))
    }

    /// Whether nobody but a holder has to do with it.
    pub(super) fn is_uncontended(&self) -> bool {
        self.contender.is_none() && self.queue.is_empty() && self.unreleased.is_empty()
    }

    /// Those who do not wait, for the answer to be told to them.
    pub(super) fn take_impatient(&mut self) -> Vec<oneshot::Sender<Verdict>> {
        if self.queue.is_empty() {
            return Vec::new();
        }
        let (take_impatient, patient): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.queue)
                .into_iter()
                .partition(|(_, waiter)| waiter.patience == Patience::None);
        self.queue = patient;
        take_impatient
            .into_values()
            .map(|waiter| waiter.verdict)
            .collect()
    }
}

/// What a lease of this process says of its key, while it is valid.
pub(crate) fn held_fact(lease: &ActiveLease, now: Moment) -> Option<Refusal> {
    let remaining = lease.remaining_at(now);
    (!remaining.is_zero()).then_some(Refusal {
        cooling: false,
        remaining: Some(remaining),
        pushed: true,
        server_time: None,
    })
}
