//! A lease that is being asked for, and what becomes of it if nobody waits for the answer any more.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::active::Hold;
use crate::base::clock::Moment;
use crate::base::token::Token;
use crate::engine::spec::Wanted;
use crate::keeper::Job;
use crate::lease::Phase;
use crate::lease::deadline::{Anchor, GRANT};
use crate::queue::{Seat, Unseated};
use crate::store::{Failure, Grant, Lane, Operation, Outcome, Refusal};

/// What came of a question.
pub(crate) enum Asked {
    Granted,
    Busy(Refusal),
    Failed(Failure),
    /// Another waiter has taken the seat, and undone what was sent before.
    Unseated,
}

/// A lease that is being asked for. It is armed with the keeper before the first byte is sent, and
/// dropped without being settled it is undone, whatever may still be on its way.
pub(crate) struct Pending {
    hold: Arc<Hold>,
    lane: Lane,
    /// Whether the store may know of it: in its queue, or by a send that was not answered.
    known: bool,
    /// When the last question was sent.
    pub(crate) asked: Moment,
    /// Whether a send waits for its answer at this moment.
    in_flight: bool,
    /// Whether it has met what may be the lease before it, though its release was sent first.
    pub(crate) was_behind: bool,
    /// The newest reading of the server's clock, from the answer to the last send.
    anchor: Option<Anchor>,
    settled: bool,
}

impl Pending {
    pub(crate) fn new(wanted: &Wanted) -> Self {
        let core = &wanted.core;
        let lane = core.store.acquiring_lane();
        let address = core.store.address(core.tokens.manager(), lane);
        let hold = Hold::new(core, &wanted.key, wanted.terms, address);
        Self {
            hold,
            lane,
            known: false,
            asked: Moment(0),
            in_flight: false,
            was_behind: false,
            anchor: None,
            settled: false,
        }
    }

    pub(crate) fn token(&self) -> Token {
        self.hold.token
    }

    pub(crate) async fn ask(&mut self, seat: &Seat, queue: bool, patience: Duration) -> Asked {
        let core = &self.hold.core;
        // A lease whose release goes before on the same way need not be named. If that comes to nothing,
        // it is named the second time.
        let plain = !queue && !self.known && !self.was_behind;
        let way = plain.then_some(self.lane);
        let sent = core.keeper.clock.now();
        let Ok(before) = seat.asking(&self.hold, self.lane, way, sent) else {
            return Asked::Unseated;
        };
        let behind = before.is_some_and(|before| before.is_on(way));
        let replaces = before.filter(|_| !behind).map(|before| before.lease);
        let operation = Operation::Acquire(self.hold.acquire(queue, replaces, self.known));
        self.asked = sent;
        self.hold.ask(sent + patience);
        core.keeper.arm(&self.hold);
        let known = std::mem::replace(&mut self.known, true);
        self.in_flight = true;
        self.anchor = None;
        let mut answer = core.store.execute(operation, self.lane);
        let mut waker = None;
        let outcome = poll_fn(|context| {
            // What has been undone is not to be sent.
            if self.hold.is_closed() {
                return Poll::Ready(Err(Unseated));
            }
            if let Poll::Ready(outcome) = answer.as_mut().poll(context) {
                return Poll::Ready(Ok(Some(outcome)));
            }
            self.hold.wake_on_change(&mut waker, context.waker());
            if core.keeper.clock.now() >= sent + patience {
                Poll::Ready(Ok(None))
            } else {
                Poll::Pending
            }
        })
        .await;
        self.hold.forget_waker(waker);
        let Ok(outcome) = outcome else {
            return Asked::Unseated;
        };
        self.in_flight = false;
        let (outcome, repeated) = match outcome {
            Some(Outcome::Repeated(outcome)) => (Some(*outcome), true),
            outcome => (outcome, false),
        };
        if repeated {
            self.hold.note_late_twin();
        }
        match outcome {
            Some(Outcome::Granted(fence)) if self.hold.grant(sent, fence) => {
                core.keeper.rearm(&self.hold);
                Asked::Granted
            }
            Some(Outcome::Granted(_)) if self.hold.is_closed() => {
                self.in_flight = true;
                Asked::Unseated
            }
            Some(Outcome::Granted(_)) => Asked::Failed(Failure::unanswered(
                "the store's answer came after the ttl had run out",
            )),
            Some(Outcome::Busy(refusal)) => {
                self.known = queue || known || repeated;
                self.was_behind = behind;
                let server = refusal.server_time;
                self.anchor = server.map(|server| Anchor {
                    local: sent,
                    server,
                });
                Asked::Busy(refusal)
            }
            Some(Outcome::Failed(failure)) => {
                self.known = known || failure.ambiguous;
                if failure.ambiguous {
                    self.hold.note_late_twin();
                }
                Asked::Failed(failure)
            }
            Some(_) => {
                self.hold.note_late_twin();
                Asked::Failed(Failure::not_understood())
            }
            None => {
                self.hold.note_late_twin();
                Asked::Failed(Failure::unanswered(format!(
                    "the store gave no answer within {patience:?}"
                )))
            }
        }
    }

    /// The store has given the key to this waiter. `false`: for how long is not known well enough.
    pub(crate) fn take_over(&self, grant: Grant) -> bool {
        let keeper = &self.hold.core.keeper;
        let longest = self.hold.ttl().min(GRANT);
        let deadline = self
            .anchor
            .and_then(|anchor| anchor.deadline(grant.ends, keeper.clock.now(), longest));
        let counts = deadline.is_some_and(|deadline| self.hold.take_over(deadline, grant.fence));
        if counts {
            keeper.rearm(&self.hold);
        }
        counts
    }

    pub(crate) fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }

    /// Granted: from here on the guard looks after it.
    pub(crate) fn settle(mut self) -> Arc<Hold> {
        self.settled = true;
        Arc::clone(&self.hold)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        // One that has lost its seat is undone already, but for what it sent at that very moment.
        let undone = self.hold.close() == Phase::Closed;
        if self.known && !undone {
            self.hold.core.local.note_unreleased(&self.hold);
        }
        if self.in_flight || (self.known && !undone) {
            undo(&self.hold, self.lane, self.in_flight);
        }
    }
}

/// Undoes whatever a lease that is closed has asked for by this lane.
pub(crate) fn undo(hold: &Hold, lane: Lane, in_flight: bool) {
    if in_flight {
        // Only an answer proves that nothing more of it will arrive.
        hold.note_late_twin();
    }
    hold.core.keeper.submit(Job::undo(hold, lane));
}
