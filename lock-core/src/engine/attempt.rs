//! An attempt to acquire a lease, and its undoing if it is given up.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::Engine;
use super::cleanup::{Cleanup, Step};
use super::spec::LockSpec;
use crate::active::ActiveLease;
use crate::base::clock::Moment;
use crate::base::fence::FencingToken;
use crate::base::share::ShareLimit;
use crate::keeper::OpenTask;
use crate::lease::deadline::{Anchor, GRANT};
use crate::lease::{LeaseOptions, Phase};
use crate::queue::{Contender, Displaced};
use crate::store::{AcquireRoute, Failure, Grant, Lane, Operation, Outcome, Queueing, Refusal};

/// The outcome of a question to the store.
pub(crate) enum Asked {
    Granted,
    Busy(Refusal),
    Failed(Failure),
    /// Another waiter is the contender now, and has undone the earlier questions.
    Displaced,
}

/// A lease that is being asked for. The keeper is armed before the first byte is sent. An attempt that is
/// dropped without being settled is undone, whatever may still be on its way.
pub(crate) struct Attempt {
    engine: Arc<Engine>,
    pub(super) lease: Arc<ActiveLease>,
    lane: Lane,
    /// Whether the store may know the lease: in its queue, or by a send that was not answered.
    known: bool,
    /// The time at which the last question was sent.
    pub(crate) asked: Moment,
    /// Whether a send waits for its answer at this moment.
    in_flight: bool,
    /// Whether it may have met the previous lease, though the release of that was sent first.
    pub(crate) was_behind: bool,
    /// The newest reading of the server's clock, from the answer to the last send.
    anchor: Option<Anchor>,
    /// Whether it counts as a guard, so that a drain waits for it between the grant and its guard.
    counts: bool,
    settled: bool,
    /// When each question that was given up has arrived, or never will.
    arrives_by: Moment,
    /// Kept while a question is sent, so that a drain of another thread, which may undo it before, waits until it is
    /// undone behind.
    sending: Option<OpenTask>,
}

impl Attempt {
    pub(crate) fn new(spec: &LockSpec) -> Self {
        Self::with_share(&spec.engine, &spec.key, spec.options, spec.share)
    }

    pub(super) fn with(engine: &Arc<Engine>, key: &Arc<str>, options: LeaseOptions) -> Self {
        Self::with_share(engine, key, options, None)
    }

    fn with_share(
        engine: &Arc<Engine>,
        key: &Arc<str>,
        options: LeaseOptions,
        share: Option<ShareLimit>,
    ) -> Self {
        let route = engine.store.acquire_route(engine.tokens.manager());
        let AcquireRoute { lane, address } = route;
        let token = engine
            .tokens
            .fresh_at(address, engine.now())
            .with_share(share);
        let clock = engine.timers.clock();
        let lease = ActiveLease::new(key, token, options, clock);
        Self {
            engine: Arc::clone(engine),
            lease,
            lane,
            known: false,
            asked: Moment(0),
            in_flight: false,
            was_behind: false,
            anchor: None,
            counts: false,
            settled: false,
            arrives_by: Moment(0),
            sending: None,
        }
    }

    pub(crate) async fn ask(
        &mut self,
        contender: &Contender,
        queueing: Queueing,
        patience: Duration,
    ) -> Asked {
        let engine = &self.engine;
        // A previous lease whose release goes before on the same lane need not be named. If that comes to
        // nothing, the second question names it.
        let plain = queueing != Queueing::Always && !self.known && !self.was_behind;
        let way = plain.then_some(self.lane);
        let sent = engine.now();
        let Ok(before) = contender.asking(&self.lease, self.lane, way, sent) else {
            return Asked::Displaced;
        };
        let behind = before.is_some_and(|before| before.is_on(way));
        let replaces = before.filter(|_| !behind).map(|before| before.lease);
        let operation = Operation::Acquire(self.lease.acquire(queueing, replaces, self.known));
        self.asked = sent;
        self.lease.ask(sent + patience);
        engine.keeper.arm(&self.lease);
        let known = std::mem::replace(&mut self.known, true);
        self.in_flight = true;
        self.anchor = None;
        let mut answer = engine.store.execute(operation, self.lane);
        let mut waker = None;
        // Before the lease is looked at: a drain closes it, and then waits.
        self.sending = Some(engine.keeper.open_task());
        let outcome = poll_fn(|context| {
            // A question that was undone must not be sent.
            if self.lease.is_closed() {
                return Poll::Ready(Err(Displaced));
            }
            if let Poll::Ready(outcome) = answer.as_mut().poll(context) {
                return Poll::Ready(Ok(Some(outcome)));
            }
            // The first poll sends the request, so it reads no clock.
            let sent_now = waker.is_none();
            if sent_now {
                if self.lease.is_closed() {
                    return Poll::Ready(Err(Displaced));
                }
                self.sending = None;
            }
            self.lease.wake_on_change(&mut waker, context.waker());
            if !sent_now && engine.now() >= sent + patience {
                Poll::Ready(Ok(None))
            } else {
                Poll::Pending
            }
        })
        .await;
        self.lease.forget_waker(waker);
        let Ok(outcome) = outcome else {
            return Asked::Displaced;
        };
        if !self.lease.is_closed() {
            self.sending = None;
        }
        self.in_flight = false;
        let (outcome, repeated) = match outcome {
            Some(Outcome::Repeated(outcome)) => (Some(*outcome), true),
            outcome => (outcome, false),
        };
        if repeated {
            self.arrives_by = engine.note_late_duplicate(&self.lease);
        }
        match outcome {
            Some(Outcome::Granted(fence)) if self.lease.grant(sent, fence) => {
                engine.keeper.arm(&self.lease);
                count(engine, &mut self.counts);
                Asked::Granted
            }
            Some(Outcome::Granted(_)) if self.lease.is_closed() => {
                self.in_flight = true;
                Asked::Displaced
            }
            Some(Outcome::Granted(_)) => Asked::Failed(Failure::unanswered(
                "the store's answer came after the ttl had run out",
            )),
            Some(Outcome::Busy(refusal)) => {
                self.known = queueing == Queueing::Always || refusal.queued || known || repeated;
                self.was_behind = behind;
                let server = refusal.server_time;
                self.anchor = server.map(|server| Anchor {
                    local: sent,
                    server,
                });
                Asked::Busy(refusal)
            }
            Some(Outcome::Failed(failure)) => {
                self.known = known || failure.ambiguous || failure.queued;
                if failure.ambiguous {
                    self.arrives_by = engine.note_late_duplicate(&self.lease);
                }
                Asked::Failed(failure)
            }
            Some(_) => {
                self.arrives_by = engine.note_late_duplicate(&self.lease);
                Asked::Failed(Failure::not_understood())
            }
            None => {
                self.arrives_by = engine.note_late_duplicate(&self.lease);
                Asked::Failed(Failure::unanswered(format!(
                    "the store gave no answer within {patience:?}"
                )))
            }
        }
    }

    /// When to ask once more although the last answer was a refusal: an earlier question may be granted behind it, in the
    /// place of the lease that was in the way, and the store tells no waiter of such a grant.
    pub(super) fn asks_by(&self) -> Moment {
        match self.arrives_by > self.asked {
            true => self.arrives_by,
            false => Moment::FAR,
        }
    }

    /// Notes that a question about this key and others is about to be sent. `false`: it must not be, because it would have
    /// to step over a lease of this process.
    pub(super) fn asks_with_others(
        &mut self,
        contender: &Contender,
        sent: Moment,
        patience: Duration,
    ) -> Result<bool, Displaced> {
        let way = Some(self.lane);
        let before = contender.asking(&self.lease, self.lane, way, sent)?;
        if before.is_some_and(|before| !before.is_on(way)) {
            return Ok(false);
        }
        self.was_behind = before.is_some();
        self.asked = sent;
        self.lease.ask(sent + patience);
        self.engine.keeper.arm(&self.lease);
        self.known = true;
        self.in_flight = true;
        Ok(true)
    }

    /// The way of the question.
    pub(super) fn lane(&self) -> Lane {
        self.lane
    }

    /// Notes the grant of all keys. `false`: it comes too late.
    #[must_use]
    pub(super) fn granted_with_others(&mut self, sent: Moment, fence: FencingToken) -> bool {
        let counts = self.lease.grant(sent, fence);
        // Another task has undone the question, and its answer may have come before that.
        self.in_flight = !counts && self.lease.is_closed();
        if counts {
            self.engine.keeper.arm(&self.lease);
            count(&self.engine, &mut self.counts);
        }
        counts
    }

    /// Notes that the key was not taken. `maybe`: an earlier copy of the question may still take it.
    pub(super) fn not_taken(&mut self, maybe: bool) {
        self.in_flight = false;
        self.known = maybe;
        if maybe {
            self.lease.note_late_duplicate();
        }
    }

    /// Takes over a key that the store has handed to this waiter. `false`: the end of the grant is not known
    /// well enough.
    pub(crate) fn take_over(&mut self, grant: Grant) -> bool {
        let longest = self.lease.ttl().min(GRANT);
        let deadline = self
            .anchor
            // A grant from before the refusal is over. A clock that was set back may show a later end for it.
            .filter(|anchor| grant.given >= anchor.server)
            .and_then(|anchor| anchor.deadline(grant.ends, self.engine.now(), longest));
        let counts = deadline.is_some_and(|deadline| self.lease.take_over(deadline, grant.fence));
        if counts {
            self.engine.keeper.arm(&self.lease);
            count(&self.engine, &mut self.counts);
        }
        counts
    }

    /// Ends the attempt, because a guard owns the lease from here on.
    pub(crate) fn settle(mut self) {
        self.settled = true;
    }
}

/// Counts an attempt as a guard, once.
fn count(engine: &Engine, counts: &mut bool) {
    if !std::mem::replace(counts, true) {
        engine.keeper.guard_made();
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.settled {
            self.undo();
        }
        // This comes last, because `drain` waits for it.
        if self.counts {
            self.engine.keeper.guard_ended();
        }
    }
}

impl Attempt {
    fn undo(&self) {
        let engine = &self.engine;
        // An attempt that has lost its turn is undone already, except for a question that it sent at that
        // very moment.
        let undone = engine.close(&self.lease) == Phase::Closed;
        if self.known && !undone {
            engine.queue.note_unreleased(&self.lease);
        }
        if self.in_flight || (self.known && !undone) {
            engine.undo(&self.lease, self.lane, self.in_flight);
        }
    }
}

impl Engine {
    /// Notes that a question was given up. Returns the time by which it has arrived, or never will.
    fn note_late_duplicate(&self, lease: &ActiveLease) -> Moment {
        lease.note_late_duplicate();
        self.now() + self.store.limits().late_duplicate
    }

    /// Undoes the questions of a closed lease, which went by this lane.
    pub(super) fn undo(self: &Arc<Self>, lease: &ActiveLease, lane: Lane, in_flight: bool) {
        if in_flight {
            // Only an answer proves that no more of it will arrive.
            lease.note_late_duplicate();
        }
        Cleanup::of(self, lease, Step::Undo(lane)).submit();
    }
}

#[cfg(test)]
#[path = "attempt_tests.rs"]
mod tests;
