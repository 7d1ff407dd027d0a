//! One key: the facts that are known, the contender, and the waiters in line.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use tokio::sync::oneshot;

use super::Verdict;
use crate::active::ActiveLease;
use crate::base::clock::Moment;
use crate::base::token::Token;
use crate::lease::LeaseOptions;
use crate::store::{Lane, News, Refusal, Replaced};

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
    unreleased: Vec<Unreleased>,
}

/// A lease of this process that has ended, and that the next contender may step over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Predecessor {
    pub(crate) lease: Replaced,
    /// The lane on which its release was sent. Later requests on that lane come after the release.
    pub(crate) sent: Option<Lane>,
}

impl Predecessor {
    /// Returns whether its release was sent on this lane, before any later request.
    pub(crate) fn is_on(self, lane: Option<Lane>) -> bool {
        self.sent.is_some() && self.sent == lane
    }
}

/// The traces that an ended ownership may have left in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReleaseState {
    /// No traces.
    Nothing,
    /// Its owner, or a cleanup, still sees to it. A late push for it must not be undone by its receiver,
    /// which knows of no fencing token and no cooldown.
    Known,
    /// As `Known`, and the next contender may step over it, because its release is under way.
    Steppable,
}

/// A lease of this process that has ended, and whose release the store has not confirmed.
pub(super) struct Unreleased {
    lease: Replaced,
    steppable: bool,
    /// The lane by which its release was sent. Later requests there find the key free.
    sent: Option<Lane>,
    /// Its release, if it may be left out.
    deferred: Option<Arc<dyn Supersede>>,
}

/// A release that is under way, and that becomes needless if the next task of this process is granted the
/// key.
pub(crate) trait Supersede: Send + Sync {
    /// Drops the release, because the key was granted since.
    fn supersede(&self);

    /// Sends the release now, because the next task did not step over the lease.
    fn hurry(&self);
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

impl ContenderState {
    pub(super) fn token(&self) -> Option<Token> {
        self.asks_for.as_ref().map(|(lease, _)| lease.token)
    }
}

impl Slot {
    /// Returns whether a release is under way.
    pub(super) fn is_unreleased(&self) -> bool {
        !self.unreleased.is_empty()
    }

    /// Returns whether the release of this token is under way.
    pub(super) fn is_releasing(&self, token: Token) -> bool {
        self.unreleased.iter().any(|one| one.lease.token == token)
    }

    /// Returns the lease that the next contender may step over. Of several it is the last, which names those
    /// before it.
    pub(super) fn predecessor(&self) -> Option<Predecessor> {
        let last = self.unreleased.last().filter(|last| last.steppable)?;
        // The earlier releases may go another way.
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

    /// Notes that the release of this token is about to be sent. `false`: it must not be sent, because it was
    /// superseded, or because the contender is stepping over the lease at this moment.
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

    /// Forgets all earlier leases, because a grant proves that they have ended. Returns the releases that are
    /// needless now, to be superseded outside of the lock.
    #[must_use]
    pub(super) fn forget_all(&mut self) -> Vec<Arc<dyn Supersede>> {
        let forgotten = std::mem::take(&mut self.unreleased);
        forgotten
            .into_iter()
            .filter_map(|one| one.deferred)
            .collect()
    }

    /// Notes that the contender has stepped over no lease, as far as is known. Returns the release that was
    /// left out for it, to be sent after all.
    #[must_use]
    pub(super) fn steps_over_nothing(&mut self) -> Option<Arc<dyn Supersede>> {
        let token = self.contender.as_mut()?.steps_over.take()?;
        let mut unreleased = self.unreleased.iter_mut();
        let one = unreleased.find(|one| one.lease.token == token)?;
        // A release that was sent gets its own answer.
        one.deferred.take().filter(|_| one.sent.is_none())
    }

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
        matches!(&self.known, KeyState::Held(lease) if lease.remaining_at(now) > Duration::ZERO)
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
        matches!(&self.known, KeyState::Held(held) if std::ptr::eq(&raw const **held, lease))
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

    /// Takes out the callers that do not wait, so that they get this answer.
    pub(super) fn take_impatient(&mut self) -> Vec<oneshot::Sender<Verdict>> {
        if self.queue.is_empty() {
            return Vec::new();
        }
        let (take_impatient, patient): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.queue)
                .into_iter()
                .partition(|(_, waiter)| !waiter.waits);
        self.queue = patient;
        take_impatient
            .into_values()
            .map(|waiter| waiter.verdict)
            .collect()
    }
}

/// Returns the refusal that a valid lease of this process amounts to.
pub(crate) fn held_fact(lease: &ActiveLease, now: Moment) -> Option<Refusal> {
    let remaining = lease.remaining_at(now);
    (!remaining.is_zero()).then_some(Refusal {
        cooling: false,
        record: None,
        remaining: Some(remaining),
        queued: false,
        pushed: true,
        shared: false,
        full: None,
        server_time: None,
    })
}
