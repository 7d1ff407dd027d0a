//! An attempt to acquire a lease, and its undoing if it is given up.

use std::sync::Arc;
use std::time::Duration;
use std::{mem, slice};

use super::Engine;
use super::question::send;
use super::spec::LockSpec;
use crate::active::ActiveLease;
use crate::base::clock::Moment;
use crate::base::fence::FencingToken;
use crate::base::share::ShareLimit;
use crate::keeper::OpenTask;
use crate::lease::deadline::{Anchor, GRANT};
use crate::lease::{LeaseOptions, Phase};
use crate::queue::Contender;
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
    pub(super) engine: Arc<Engine>,
    pub(super) lease: Arc<ActiveLease>,
    pub(super) lane: Lane,
    /// Whether the store may know the lease by an earlier question, which entered its queue or had no answer.
    pub(super) known: bool,
    /// The time at which the last question was sent.
    pub(crate) asked: Moment,
    /// Whether a send waits for its answer at this moment.
    pub(super) in_flight: bool,
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
    pub(super) sending: Option<OpenTask>,
    /// The entry by which a change of the lease wakes the asking task.
    pub(super) waker: Option<u32>,
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
            waker: None,
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
        self.is_asked(sent, patience);
        let engine = Arc::clone(&self.engine);
        let answer = engine.store.execute(operation, self.lane);
        let answer = send(&engine, answer, slice::from_mut(self), patience).await;
        let Ok(answer) = answer else {
            return Asked::Displaced;
        };
        match answer {
            Ok(Outcome::Granted(fence)) if self.granted(sent, fence) => Asked::Granted,
            Ok(Outcome::Granted(_)) if self.lease.is_closed() => Asked::Displaced,
            Ok(Outcome::Granted(_)) => Asked::Failed(Failure::unanswered(
                "the store's answer came after the ttl had run out",
            )),
            Ok(Outcome::Busy(refusal)) => {
                self.known |= queueing == Queueing::Always || refusal.queued;
                self.was_behind = behind;
                let server = refusal.server_time;
                self.anchor = server.map(|server| Anchor {
                    local: sent,
                    server,
                });
                Asked::Busy(refusal)
            }
            Ok(_) => {
                self.may_arrive_late();
                Asked::Failed(Failure::not_understood())
            }
            Err(failure) => Asked::Failed(failure),
        }
    }

    /// Notes that a question is about to be sent.
    fn is_asked(&mut self, sent: Moment, patience: Duration) {
        self.asked = sent;
        self.lease.ask(sent + patience);
        self.engine.keeper.arm(&self.lease);
        self.in_flight = true;
        self.anchor = None;
    }

    /// Notes a grant. `false`: it comes too late.
    #[must_use]
    pub(super) fn granted(&mut self, sent: Moment, fence: FencingToken) -> bool {
        let counts = self.lease.grant(sent, fence);
        self.known = true;
        // Another task has undone the question, and its answer may have come before that.
        self.in_flight = !counts && self.lease.is_closed();
        if counts {
            self.is_held();
        }
        counts
    }

    /// Has the keeper renew the lease, and counts it as a guard, once.
    fn is_held(&mut self) {
        self.engine.keeper.arm(&self.lease);
        if !mem::replace(&mut self.counts, true) {
            self.engine.keeper.guard_made();
        }
    }

    /// Notes that the last question, or a copy of it, may still arrive.
    pub(super) fn may_arrive_late(&mut self) {
        self.known = true;
        self.lease.note_late_duplicate();
        self.arrives_by = self.engine.now() + self.engine.store.limits().late_duplicate;
    }

    /// Notes that the question is not sent after all.
    pub(super) fn is_not_sent(&mut self) {
        self.in_flight = false;
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
    /// to step over a lease of this process, or because another waiter is the contender now.
    #[must_use]
    pub(super) fn asks_with_others(
        &mut self,
        contender: &Contender,
        sent: Moment,
        patience: Duration,
    ) -> bool {
        let way = Some(self.lane);
        let Ok(before) = contender.asking(&self.lease, self.lane, way, sent) else {
            return false;
        };
        if before.is_some_and(|before| !before.is_on(way)) {
            return false;
        }
        self.was_behind = before.is_some();
        self.is_asked(sent, patience);
        true
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
            self.is_held();
        }
        counts
    }

    /// Ends the attempt, because a guard owns the lease from here on.
    pub(crate) fn settle(mut self) {
        self.settled = true;
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
        let known = self.known || self.in_flight;
        if known && !undone {
            engine.queue.note_unreleased(&self.lease);
        }
        if self.in_flight || (known && !undone) {
            engine.undo(&self.lease, self.lane, self.in_flight);
        }
    }
}

#[cfg(test)]
#[path = "attempt_tests.rs"]
mod tests;
