//! Acquiring one key: from the queue of the process to the store's grant.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use super::acquired::Acquired;
use super::attempt::{Asked, Attempt};
use super::share::{ShareStart, meets_own_release, start_share};
use super::spec::LockSpec;
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::options::Wait;
use crate::base::telemetry::WaitingTask;
use crate::lease::backoff::{LONGEST, ask_again_after, pause_after_failure};
use crate::queue::{Admission, Contender, PlaceInLine, Verdict};
use crate::store::{Grant, News, Queueing};

/// Acquires the first key of the request.
pub(super) async fn take_one(spec: &LockSpec) -> Result<Acquired, Error> {
    let now = spec.engine.now();
    let give_up = match spec.wait {
        Wait::None => now + spec.acquire_timeout,
        Wait::For(span) => now + span,
        Wait::Forever => Moment::FAR,
    };
    let mut line = None;
    if let Some(limit) = spec.share {
        // Boxed, so that the future of a plain lock stays small.
        match Box::pin(start_share(spec, limit)).await {
            Ok(ShareStart::Entered(attempt)) => return Ok(Acquired::FromStore(attempt)),
            Ok(ShareStart::LinesUp(name)) => line = Some(name),
            Err(error) => return Err(error.with_key(&spec.key)),
        }
    }
    let line = line.as_ref().unwrap_or(&spec.key);
    let mut number = None;
    loop {
        let taken = match line_up(spec, line, &mut number, give_up).await {
            Verdict::Contend(contender) => contend(spec, contender, give_up)
                .await
                .map(|attempt| attempt.map(Acquired::FromStore)),
            Verdict::Handoff(mut passed) => {
                Ok(passed.pick_up().then_some(passed).map(Acquired::FromTask))
            }
            Verdict::Busy(refusal) => Err(refusal.told_to(spec.share).to_error()),
            Verdict::Failed(error) => Err(error),
        };
        match taken {
            Ok(Some(taken)) => return Ok(taken),
            // The future was not polled when its turn came, so it stands in line again.
            Ok(None) => {}
            Err(error) => return Err(error.with_key(&spec.key)),
        }
    }
}

/// Waits to be the first in line.
async fn line_up(
    spec: &LockSpec,
    line: &Arc<str>,
    number: &mut Option<u64>,
    give_up: Moment,
) -> Verdict {
    let engine = &spec.engine;
    if engine.queue.is_draining() {
        return Verdict::Failed(Error::draining());
    }
    let waits = spec.wait != Wait::None;
    match engine.queue.enter(line, waits, spec.options, number) {
        Admission::Decided(verdict) => verdict,
        Admission::Queued(place) => stand_in_line(spec, place, give_up).await,
    }
}

async fn stand_in_line(spec: &LockSpec, mut place: PlaceInLine, give_up: Moment) -> Verdict {
    let engine = &spec.engine;
    let mut task = WaitingTask::default();
    if spec.wait != Wait::None {
        task.waits();
    }
    if let Some(verdict) = verdict_until(&mut place, engine, give_up).await {
        return verdict;
    }
    // The wait is over. The last refusal may be old, so the contender asks once more, for all.
    if let Some(held) = place.asks_at_last() {
        return Verdict::Busy(held);
    }
    let patience = engine.now() + spec.acquire_timeout;
    let verdict = verdict_until(&mut place, engine, patience).await;
    verdict.unwrap_or_else(|| {
        let error = Error::unavailable("the wait ended before the store answered");
        Verdict::Failed(error)
    })
}

async fn verdict_until(place: &mut PlaceInLine, engine: &Engine, until: Moment) -> Option<Verdict> {
    let verdict = poll_fn(|context| place.poll_verdict(context));
    engine.timers.before(until, verdict).await
}

/// Asks the store until it grants the lock, the wait is over, or the store is out for too long. `None`:
/// another waiter is the contender now.
pub(super) async fn contend(
    spec: &LockSpec,
    contender: Contender,
    give_up: Moment,
) -> Result<Option<Attempt>, Error> {
    let engine = &spec.engine;
    let mut attempt = Attempt::new(spec);
    let mut doubt = Doubt::default();
    let mut task = WaitingTask::default();
    let waits = spec.wait != Wait::None;
    let mut met_own_releases = false;
    let mut queueing = match waits {
        true => Queueing::IfContended,
        false => Queueing::Never,
    };
    if waits && spec.options.leaves_gaps() {
        let left_to_others = spec.engine.yielded.until(&spec.key, engine.now());
        if let Some(until) = left_to_others {
            contender.waits(until.min(give_up));
            engine.timers.at(until.min(give_up)).await;
        }
    }
    loop {
        if spec.engine.queue.is_draining() {
            contender.failed(&Error::draining());
            return Err(Error::draining());
        }
        if attempt.lease.has_late_duplicate() && !engine.store.limits().hands_over {
            // A node of a quorum is not asked for a lease again while a question for it may still arrive. Another lease
            // loses no place in a queue, because such a store hands nothing over.
            attempt = Attempt::new(spec);
        }
        let confirmed = engine.queue.confirmed_releases();
        let failure = match attempt
            .ask(&contender, queueing, spec.acquire_timeout)
            .await
        {
            // It is too late to begin any work, so the grant is given back.
            Asked::Granted if spec.engine.queue.is_draining() => continue,
            Asked::Granted => {
                let counts = contender.granted(&attempt.lease);
                return Ok(counts.then_some(attempt));
            }
            Asked::Displaced => return Ok(None),
            // The record is the answer, for all callers behind this one too.
            Asked::Busy(refusal) if refusal.record.is_some() => {
                contender.finds_a_record(&refusal);
                return Err(refusal.to_error());
            }
            // A share of this process may have ended a moment ago, or a lock beside which no share may stand.
            Asked::Busy(refusal)
                if (refusal.shared || spec.share.is_some())
                    && !met_own_releases
                    && Box::pin(meets_own_release(
                        spec,
                        &contender,
                        &attempt,
                        confirmed,
                        &mut met_own_releases,
                    ))
                    .await =>
            {
                continue;
            }
            // The key may hold the previous lease, whose release has not arrived after all.
            Asked::Busy(_) if attempt.was_behind && spec.wait == Wait::None => continue,
            // A wait ends with the answer to a question of after its end.
            Asked::Busy(refusal) if spec.wait == Wait::None || attempt.asked >= give_up => {
                contender.gives_up(&refusal);
                return Err(refusal.to_error());
            }
            // Asks once more, to be queued. From then on a release wakes this waiter.
            Asked::Busy(refusal)
                if queueing != Queueing::Always && (!refusal.queued || attempt.was_behind) =>
            {
                task.waits();
                queueing = Queueing::Always;
                continue;
            }
            Asked::Busy(refusal) => {
                let again = ask_again_after(&refusal, attempt.lease.token, doubt.refusals);
                let until = engine.now() + again;
                let latest = give_up.min(attempt.asks_by());
                task.waits();
                doubt.refused();
                contender.refused(&refusal, until, latest);
                // Asks again unless the grant surely lasts. The question finds a key that was handed to it.
                if let Some(grant) = given(&contender, engine, until, latest).await
                    && !grant.asks
                    && !spec.engine.queue.is_draining()
                    && attempt.take_over(grant)
                {
                    let counts = contender.granted(&attempt.lease);
                    return Ok(counts.then_some(attempt));
                }
                continue;
            }
            Asked::Failed(failure) => failure,
        };
        let now = engine.now();
        let is_out = doubt.failed(now, engine.store.limits().outage);
        if failure.is_final() || is_out {
            contender.failed(&failure.error);
            return Err(failure.error);
        }
        if spec.wait == Wait::None || now >= give_up {
            // Callers that do not wait share the failure. The next waiter asks, because its own wait is not over.
            contender.unanswered(&failure.error, now);
            return Err(failure.error);
        }
        task.waits();
        let until = (now + pause_after_failure(doubt.failures)).min(give_up);
        contender.unanswered(&failure.error, until);
        if engine.store.limits().releases_refused {
            // The next question steps over the lease that is dropped here.
            attempt = Attempt::new(spec);
        }
        // Every further question queues, because its script knows its own token when it is repeated.
        queueing = Queueing::Always;
        engine.timers.at(until).await;
    }
}

/// Waits for a push, or for the time to ask again. `None`: ask now.
pub(super) async fn given(
    contender: &Contender,
    engine: &Arc<Engine>,
    until: Moment,
    latest: Moment,
) -> Option<Grant> {
    let mut until = until;
    loop {
        let push = poll_fn(|context| contender.poll_news(context));
        let news = engine.timers.before(until.min(latest), push).await;
        match news {
            Some(News::Ask) | None => return None,
            Some(News::Given(grant)) => return Some(grant),
            Some(News::Next(after)) => {
                until = engine.now() + after.min(LONGEST);
                contender.waits(until.min(latest));
            }
        }
    }
}

/// Doubts about the store while a contender waits.
#[derive(Default)]
pub(super) struct Doubt {
    /// Refusals since the last failure.
    pub(super) refusals: u32,
    /// Failures since the last answer.
    pub(super) failures: u32,
    out_since: Option<Moment>,
}

impl Doubt {
    pub(super) fn refused(&mut self) {
        *self = Self {
            refusals: self.refusals.wrapping_add(1),
            ..Self::default()
        };
    }

    /// Notes a failure. `true`: the store is out for too long, counted from the first failure in a row,
    /// because that one may have been due to a single connection.
    pub(super) fn failed(&mut self, now: Moment, outage: Duration) -> bool {
        self.failures += 1;
        self.refusals = 0;
        let since = *self.out_since.get_or_insert(now);
        now.since(since) >= outage
    }
}

#[cfg(all(test, feature = "test-util"))]
mod refused_tests;
#[cfg(test)]
#[path = "acquire_tests.rs"]
mod tests;
