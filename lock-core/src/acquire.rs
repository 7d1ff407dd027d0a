//! Taking a lock: from the queue of the process to the store's grant.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tracing::{Instrument, Span};

use crate::clock::Moment;
use crate::deadline::{Anchor, GRANT};
use crate::error::Error;
use crate::guard::LockGuard;
use crate::hold::Hold;
use crate::keeper::{Job, Keeper};
use crate::lease::{Phase, Terms};
use crate::local::{Entry, Local, Passed, Patience, Place, Seat, Verdict};
use crate::manager::Core;
use crate::options::Wait;
use crate::retry::{LONGEST, OUTAGE, ask_again_after, pause_after_failure};
use crate::store::{Failure, Grant, Lane, News, Operation, Outcome, Refusal};

/// A checked request.
pub(crate) struct Wanted {
    pub(crate) core: Arc<Core>,
    pub(crate) key: Arc<str>,
    pub(crate) terms: Terms,
    pub(crate) wait: Wait,
    pub(crate) cooldown: Duration,
    pub(crate) acquire_timeout: Duration,
}

pub(crate) async fn acquire(wanted: &Wanted) -> Result<LockGuard, Error> {
    let span = tracing::debug_span!(
        "lock.acquire",
        outcome = tracing::field::Empty,
        waited_ms = tracing::field::Empty
    );
    let taken = if span.is_disabled() {
        take(wanted).await
    } else {
        // Boxed: where nobody listens it costs nothing.
        Box::pin(take_in_span(wanted, span)).await
    };
    taken.map(|taken| taken.into_guard(wanted.cooldown))
}

async fn take_in_span(wanted: &Wanted, span: Span) -> Result<Taken, Error> {
    let clock = wanted.core.keeper.clock.clone();
    let started = clock.now();
    let result = take(wanted).instrument(span.clone()).await;
    let outcome = result.as_ref().map_or_else(Error::code, |_| "acquired");
    span.record("outcome", outcome);
    span.record("waited_ms", clock.now().since(started).as_secs_f64() * 1e3);
    result
}

/// A lock that was taken: by asking the store, or from another task of this process.
enum Taken {
    Asked(Arc<Hold>),
    Passed(Passed),
}

impl Taken {
    fn into_guard(self, cooldown: Duration) -> LockGuard {
        match self {
            Taken::Asked(hold) => LockGuard::new(hold, cooldown),
            Taken::Passed(passed) => {
                let guard = LockGuard::new(Arc::clone(passed.hold()), cooldown);
                passed.arrived();
                guard
            }
        }
    }
}

async fn take(wanted: &Wanted) -> Result<Taken, Error> {
    let taken = match line_up(wanted).await {
        Ok(First::Contends(seat, give_up)) => {
            contend(wanted, seat, give_up).await.map(Taken::Asked)
        }
        Ok(First::Holds(passed)) => Ok(Taken::Passed(passed)),
        Err(error) => Err(error),
    };
    taken.map_err(|error| error.with_key(&wanted.key))
}

/// What becomes of the first in line of this process.
enum First {
    /// It asks the store, until so long.
    Contends(Seat, Moment),
    /// It holds the lock.
    Holds(Passed),
}

/// Waits to be the first in line.
async fn line_up(wanted: &Wanted) -> Result<First, Error> {
    let core = &wanted.core;
    if core.is_draining() {
        return Err(Error::draining());
    }
    let now = core.keeper.clock.now();
    let (patience, give_up) = match wanted.wait {
        Wait::None => (Patience::None, now + wanted.acquire_timeout),
        Wait::For(span) => (Patience::Waits, now + span),
        Wait::Forever => (Patience::Waits, Moment::FAR),
    };
    match Local::enter(core, &wanted.key, patience, wanted.terms) {
        Entry::Contend(seat) => Ok(First::Contends(seat, give_up)),
        Entry::Busy(refusal) => Err(refusal.to_error()),
        Entry::Queued(place) => stand_in_line(wanted, place, give_up).await,
    }
}

async fn stand_in_line(wanted: &Wanted, mut place: Place, give_up: Moment) -> Result<First, Error> {
    let mut timer = pin!(wanted.core.keeper.timer(give_up));
    let verdict = poll_fn(|context| match place.poll_verdict(context) {
        Poll::Ready(verdict) => Poll::Ready(Some(verdict)),
        Poll::Pending => timer.as_mut().poll(context).map(|()| None),
    })
    .await;
    match verdict {
        Some(Verdict::Contend(seat)) => Ok(First::Contends(seat, give_up)),
        Some(Verdict::Passed(passed)) => Ok(First::Holds(passed)),
        Some(Verdict::Busy(refusal)) => Err(refusal.to_error()),
        Some(Verdict::Failed(error)) => Err(error),
        // "Busy" needs a fact; without one the wait ended in the dark.
        None => Err(match Local::last_word(&wanted.core, &wanted.key) {
            Some(refusal) => refusal.to_error(),
            None => Error::unavailable("the wait ended before the store answered"),
        }),
    }
}

/// Asks the store until it grants the lock, the wait is over, or the store is out for too long.
async fn contend(wanted: &Wanted, seat: Seat, give_up: Moment) -> Result<Arc<Hold>, Error> {
    let keeper = &wanted.core.keeper;
    let mut pending = Pending::new(wanted);
    let mut doubt = Doubt::default();
    let waits = wanted.wait != Wait::None;
    let mut queue = waits && wanted.core.store.is_contended(&wanted.key);
    loop {
        if wanted.core.is_draining() {
            seat.failed(&Error::draining());
            return Err(Error::draining());
        }
        let failure = match pending.ask(&seat, queue, wanted.acquire_timeout).await {
            // Too late to begin anything: given back like any grant that nobody wants.
            Asked::Granted if wanted.core.is_draining() => continue,
            Asked::Granted => {
                let hold = pending.settle();
                seat.granted(&hold);
                return Ok(hold);
            }
            // It may be the lease before, whose release has not arrived after all.
            Asked::Busy(_) if pending.was_behind && wanted.wait == Wait::None => continue,
            Asked::Busy(refusal) if wanted.wait == Wait::None => {
                seat.gives_up(&refusal);
                return Err(refusal.to_error());
            }
            // Ask once more, to be queued: whoever releases from here on wakes this waiter.
            Asked::Busy(_) if !queue => {
                queue = true;
                continue;
            }
            Asked::Busy(refusal) => {
                let until = doubt.refused(keeper.clock.now(), &refusal);
                seat.refused(&refusal, until);
                match turn(&seat, keeper, until, give_up).await {
                    // Anything but a grant that surely lasts: ask. A key that was given is found.
                    Turn::Given(grant) => {
                        if !wanted.core.is_draining() && pending.take_over(grant) {
                            let hold = pending.settle();
                            seat.granted(&hold);
                            return Ok(hold);
                        }
                    }
                    Turn::Ask => {}
                    Turn::Over => {
                        seat.gives_up(&refusal);
                        return Err(refusal.to_error());
                    }
                }
                continue;
            }
            Asked::Failed(failure) => failure,
        };
        let now = keeper.clock.now();
        let over = doubt.failed(now) || now >= give_up;
        if failure.is_final() || wanted.wait == Wait::None || over {
            seat.failed(&failure.error);
            return Err(failure.error);
        }
        seat.unanswered(&failure.error);
        // From here on every ask queues: a script, which knows its own token when it is repeated.
        queue = true;
        keeper
            .timer((now + pause_after_failure(doubt.failures)).min(give_up))
            .await;
    }
}

/// What comes of waiting in the store's queue.
enum Turn {
    Ask,
    Given(Grant),
    /// The wait is over.
    Over,
}

/// Waits for a push, or for the time to ask by oneself.
async fn turn(seat: &Seat, keeper: &Arc<Keeper>, until: Moment, give_up: Moment) -> Turn {
    let mut until = until;
    loop {
        let mut timer = pin!(keeper.timer(until.min(give_up)));
        let news = poll_fn(|context| match seat.poll_news(context) {
            Poll::Ready(news) => Poll::Ready(Some(news)),
            Poll::Pending => timer.as_mut().poll(context).map(|()| None),
        })
        .await;
        match news {
            Some(News::Ask) => return Turn::Ask,
            Some(News::Given(grant)) => return Turn::Given(grant),
            Some(News::Next(after)) => until = keeper.clock.now() + after.min(LONGEST),
            None if keeper.clock.now() >= give_up => return Turn::Over,
            None => return Turn::Ask,
        }
    }
}

/// What is known of the store while waiting.
#[derive(Default)]
struct Doubt {
    /// Refusals since the last failure.
    refusals: u32,
    /// Failures since the last answer.
    failures: u32,
    out_since: Option<Moment>,
}

impl Doubt {
    /// When to ask again.
    fn refused(&mut self, now: Moment, refusal: &Refusal) -> Moment {
        let again = now + ask_again_after(refusal, self.refusals);
        *self = Self {
            refusals: self.refusals.saturating_add(1),
            ..Self::default()
        };
        again
    }

    /// Whether the store has been out for too long.
    fn failed(&mut self, now: Moment) -> bool {
        self.failures += 1;
        self.refusals = 0;
        let since = *self.out_since.get_or_insert(now);
        now.since(since) >= OUTAGE
    }
}

enum Asked {
    Granted,
    Busy(Refusal),
    Failed(Failure),
}

/// A lease that is being asked for. It is armed with the keeper before the first byte is sent, and
/// dropped without being settled it is undone, whatever may still be on its way.
struct Pending {
    hold: Arc<Hold>,
    lane: Lane,
    /// Whether the store may know of it: in its queue, or by a send that was not answered.
    known: bool,
    /// Whether a send waits for its answer at this moment.
    in_flight: bool,
    /// Whether it has met what may be the lease before it, though its release was sent first.
    was_behind: bool,
    /// The newest reading of the server's clock, from the answer to the last send.
    anchor: Option<Anchor>,
    settled: bool,
}

impl Pending {
    fn new(wanted: &Wanted) -> Self {
        let core = &wanted.core;
        let lane = core.store.acquiring_lane();
        let address = core.store.address(core.tokens.manager(), lane);
        let hold = Hold::new(core, &wanted.key, wanted.terms, address);
        Self {
            hold,
            lane,
            known: false,
            in_flight: false,
            was_behind: false,
            anchor: None,
            settled: false,
        }
    }

    async fn ask(&mut self, seat: &Seat, queue: bool, patience: Duration) -> Asked {
        let core = &self.hold.core;
        // A lease whose release goes before on the same way need not be named. If that comes to nothing,
        // it is named the second time.
        let plain = !queue && !self.known && !self.was_behind;
        let way = plain.then_some(self.lane);
        let before = seat.asking(self.hold.token, way);
        let behind = before.is_some_and(|before| before.is_on(way));
        let replaces = before.filter(|_| !behind).map(|before| before.lease);
        let operation = Operation::Acquire(self.hold.acquire(queue, replaces, self.known));
        let sent = core.keeper.clock.now();
        self.hold.ask(sent + patience);
        core.keeper.arm(&self.hold);
        let known = std::mem::replace(&mut self.known, true);
        self.in_flight = true;
        self.anchor = None;
        let mut answer = core.store.execute(operation, self.lane);
        let mut waker = None;
        let outcome = poll_fn(|context| {
            if let Poll::Ready(outcome) = answer.as_mut().poll(context) {
                return Poll::Ready(Some(outcome));
            }
            self.hold.wake_on_change(&mut waker, context.waker());
            if core.keeper.clock.now() >= sent + patience {
                Poll::Ready(None)
            } else {
                Poll::Pending
            }
        })
        .await;
        self.hold.forget_waker(waker);
        self.in_flight = false;
        match outcome {
            Some(Outcome::Granted(fence)) if self.hold.grant(sent, fence) => {
                core.keeper.rearm(&self.hold);
                Asked::Granted
            }
            Some(Outcome::Granted(_)) => Asked::Failed(Failure::unanswered(
                "the store's answer came after the ttl had run out",
            )),
            Some(Outcome::Busy(refusal)) => {
                self.known = queue || known;
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
    fn take_over(&self, grant: Grant) -> bool {
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

    /// Granted: from here on the guard looks after it.
    fn settle(mut self) -> Arc<Hold> {
        self.settled = true;
        Arc::clone(&self.hold)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        debug_assert_ne!(
            self.hold.phase(),
            Phase::Closed,
            "only its Pending closes an unsettled lease"
        );
        self.hold.close();
        if self.in_flight {
            // Only an answer proves that nothing more of it will arrive.
            self.hold.note_late_twin();
        }
        if self.known {
            self.hold.core.local.note_unreleased(&self.hold);
            let undo = Job::undo(&self.hold, self.lane);
            self.hold.core.keeper.submit(undo);
        }
    }
}
