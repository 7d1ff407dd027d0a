//! Taking a lock: from the queue of the process to the store's grant.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tracing::{Instrument, Span};

use crate::active::Hold;
use crate::api::guard::LockGuard;
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::options::Wait;
use crate::engine::attempt::{Asked, Pending};
use crate::engine::spec::Wanted;
use crate::keeper::Keeper;
use crate::lease::backoff::{LONGEST, OUTAGE, ask_again_after, pause_after_failure};
use crate::queue::{Entry, Local, Passed, Patience, Place, Seat, Verdict};
use crate::store::{Grant, News};

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
                passed.has_a_guard();
                guard
            }
        }
    }
}

async fn take(wanted: &Wanted) -> Result<Taken, Error> {
    let now = wanted.core.keeper.clock.now();
    let give_up = match wanted.wait {
        Wait::None => now + wanted.acquire_timeout,
        Wait::For(span) => now + span,
        Wait::Forever => Moment::FAR,
    };
    let mut ticket = None;
    loop {
        let taken = match line_up(wanted, &mut ticket, give_up).await {
            Ok(First::Contends(seat)) => contend(wanted, seat, give_up)
                .await
                .map(|hold| hold.map(Taken::Asked)),
            Ok(First::Holds(mut passed)) => {
                Ok(passed.arrives().then_some(passed).map(Taken::Passed))
            }
            Err(error) => Err(error),
        };
        match taken {
            Ok(Some(taken)) => return Ok(taken),
            // It was not polled when its turn came, and others went before it: it stands in line again.
            Ok(None) => {}
            Err(error) => return Err(error.with_key(&wanted.key)),
        }
    }
}

/// What becomes of the first in line of this process.
enum First {
    /// It asks the store.
    Contends(Seat),
    /// The lock was passed to it.
    Holds(Passed),
}

/// Waits to be the first in line.
async fn line_up(
    wanted: &Wanted,
    ticket: &mut Option<u64>,
    give_up: Moment,
) -> Result<First, Error> {
    let core = &wanted.core;
    if core.is_draining() {
        return Err(Error::draining());
    }
    let patience = match wanted.wait {
        Wait::None => Patience::None,
        Wait::For(_) | Wait::Forever => Patience::Waits,
    };
    match Local::enter(core, &wanted.key, patience, wanted.terms, ticket) {
        Entry::Contend(seat) => Ok(First::Contends(seat)),
        Entry::Busy(refusal) => Err(refusal.to_error()),
        Entry::Queued(place) => stand_in_line(wanted, place, give_up).await,
    }
}

async fn stand_in_line(wanted: &Wanted, mut place: Place, give_up: Moment) -> Result<First, Error> {
    let keeper = &wanted.core.keeper;
    let verdict = match verdict_until(&mut place, keeper, give_up).await {
        Some(verdict) => Some(verdict),
        // The wait is over. What the contender was told may be old: it asks once more, for all.
        None => match place.asks_at_last() {
            Some(held) => Some(Verdict::Busy(held)),
            None => {
                let patience = keeper.clock.now() + wanted.acquire_timeout;
                verdict_until(&mut place, keeper, patience).await
            }
        },
    };
    match verdict {
        Some(Verdict::Contend(seat)) => Ok(First::Contends(seat)),
        Some(Verdict::Passed(passed)) => Ok(First::Holds(passed)),
        Some(Verdict::Busy(refusal)) => Err(refusal.to_error()),
        Some(Verdict::Failed(error)) => Err(error),
        None => Err(Error::unavailable(
            "the wait ended before the store answered",
        )),
    }
}

async fn verdict_until(place: &mut Place, keeper: &Arc<Keeper>, until: Moment) -> Option<Verdict> {
    let mut timer = pin!(keeper.timer(until));
    poll_fn(|context| match place.poll_verdict(context) {
        Poll::Ready(verdict) => Poll::Ready(Some(verdict)),
        Poll::Pending => timer.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// Asks the store until it grants the lock, the wait is over, or the store is out for too long. `None`:
/// another waiter has taken the seat.
async fn contend(wanted: &Wanted, seat: Seat, give_up: Moment) -> Result<Option<Arc<Hold>>, Error> {
    let keeper = &wanted.core.keeper;
    let mut pending = Pending::new(wanted);
    let mut doubt = Doubt::default();
    let waits = wanted.wait != Wait::None;
    let mut queue = waits && wanted.core.store.is_contended(&wanted.key);
    if waits && wanted.terms.leaves_gaps() {
        let left_to_others = wanted.core.courtesy.until(&wanted.key, keeper.clock.now());
        if let Some(until) = left_to_others {
            seat.waits(until.min(give_up));
            keeper.timer(until.min(give_up)).await;
        }
    }
    loop {
        if wanted.core.is_draining() {
            seat.failed(&Error::draining());
            return Err(Error::draining());
        }
        let failure = match pending.ask(&seat, queue, wanted.acquire_timeout).await {
            // Too late to begin anything: given back like any grant that nobody wants.
            Asked::Granted if wanted.core.is_draining() => continue,
            Asked::Granted => {
                let counts = seat.granted(pending.hold());
                return Ok(counts.then(|| pending.settle()));
            }
            Asked::Unseated => return Ok(None),
            // It may be the lease before, whose release has not arrived after all.
            Asked::Busy(_) if pending.was_behind && wanted.wait == Wait::None => continue,
            // A wait that is over ends with an answer to a question that was put after its end.
            Asked::Busy(refusal) if wanted.wait == Wait::None || pending.asked >= give_up => {
                seat.gives_up(&refusal);
                return Err(refusal.to_error());
            }
            // Ask once more, to be queued: whoever releases from here on wakes this waiter.
            Asked::Busy(_) if !queue => {
                queue = true;
                continue;
            }
            Asked::Busy(refusal) => {
                let again = ask_again_after(&refusal, pending.token(), doubt.refusals);
                let until = keeper.clock.now() + again;
                doubt.refused();
                seat.refused(&refusal, until, give_up);
                // Anything but a grant that surely lasts: ask. A key that was given is found.
                if let Some(grant) = given(&seat, keeper, until, give_up).await
                    && !wanted.core.is_draining()
                    && pending.take_over(grant)
                {
                    let counts = seat.granted(pending.hold());
                    return Ok(counts.then(|| pending.settle()));
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
        let until = (now + pause_after_failure(doubt.failures)).min(give_up);
        seat.unanswered(&failure.error, until);
        // From here on every ask queues: a script, which knows its own token when it is repeated.
        queue = true;
        keeper.timer(until).await;
    }
}

/// Waits for a push, or for the time to ask. `None`: ask now.
async fn given(seat: &Seat, keeper: &Arc<Keeper>, until: Moment, give_up: Moment) -> Option<Grant> {
    let mut until = until;
    loop {
        let mut timer = pin!(keeper.timer(until.min(give_up)));
        let news = poll_fn(|context| match seat.poll_news(context) {
            Poll::Ready(news) => Poll::Ready(Some(news)),
            Poll::Pending => timer.as_mut().poll(context).map(|()| None),
        })
        .await;
        match news {
            Some(News::Ask) | None => return None,
            Some(News::Given(grant)) => return Some(grant),
            Some(News::Next(after)) => {
                until = keeper.clock.now() + after.min(LONGEST);
                seat.waits(until.min(give_up));
            }
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
    fn refused(&mut self) {
        *self = Self {
            refusals: self.refusals.wrapping_add(1),
            ..Self::default()
        };
    }

    /// Notes a failure. `true`: the store has been out for too long, counted from the first failure in a row. That
    /// one may have been a single connection's.
    fn failed(&mut self, now: Moment) -> bool {
        self.failures += 1;
        self.refusals = 0;
        let since = *self.out_since.get_or_insert(now);
        now.since(since) >= OUTAGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_out_a_second_after_the_first_failure_in_a_row() {
        let start = Moment(0) + Duration::from_secs(10);
        let mut doubt = Doubt::default();
        assert!(!doubt.failed(start), "however long it took");
        assert!(!doubt.failed(start + Duration::from_millis(999)));
        assert!(doubt.failed(start + OUTAGE));
        // An answer ends it.
        doubt.refused();
        assert!(!doubt.failed(start + 3 * OUTAGE));
        assert!(doubt.failed(start + 4 * OUTAGE));
    }
}
