//! Acquiring a share: the store decides whether it fits beside those that are inside.

use std::sync::Arc;

use super::acquire::{Doubt, given};
use super::attempt::{Asked, Attempt};
use super::spec::LockSpec;
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::options::Wait;
use crate::base::telemetry::WaitingTask;
use crate::lease::backoff::{ask_again_after, pause_after_failure};
use crate::queue::{Contender, StorePlace};
use crate::store::Queueing;

/// Asks the store until it lets the share in, the wait is over, or the store is out for too long.
pub(super) async fn take_share(spec: &LockSpec, give_up: Moment) -> Result<Attempt, Error> {
    let engine = &spec.engine;
    // A caller that waits asks all the same, for its place in the store's queue.
    if let (Wait::None, Some(limit)) = (spec.wait, spec.share)
        && !engine.queue.is_draining()
        && let Some(first) = engine.queue.holds_all_permits(&spec.key, limit)
    {
        return Err(Error::full(Some(first)));
    }
    let places = engine.queue.places(&spec.key);
    let mut place: Option<StorePlace> = None;
    let mut waits = match spec.wait {
        Wait::None => false,
        Wait::For(_) | Wait::Forever => {
            place = Arc::clone(&places).try_acquire_owned().ok();
            true
        }
    };
    let mut queueing = match place {
        Some(_) => Queueing::IfContended,
        None => Queueing::Never,
    };
    let (mut attempt, mut contender) = begin(spec);
    let mut doubt = Doubt::default();
    let mut task = WaitingTask::default();
    let mut met_own_release = false;
    loop {
        if engine.queue.is_draining() {
            return Err(Error::draining());
        }
        let confirmed = engine.queue.confirmed_releases();
        let asked = attempt
            .ask(&contender, queueing, spec.acquire_timeout)
            .await;
        let failure = match asked {
            Asked::Granted if engine.queue.is_draining() => continue,
            Asked::Granted => {
                if contender.granted(&attempt.lease) {
                    return Ok(attempt);
                }
                (attempt, contender) = begin(spec);
                continue;
            }
            // A drain has taken the slot.
            Asked::Displaced => {
                (attempt, contender) = begin(spec);
                continue;
            }
            Asked::Busy(refusal) => {
                let is_answer = refusal.record.is_some();
                if !is_answer
                    && !met_own_release
                    && meets_own_release(spec, &attempt, confirmed).await
                {
                    met_own_release = true;
                    continue;
                }
                if is_answer || !waits || attempt.asked >= give_up {
                    return Err(match spec.share {
                        Some(limit) if refusal.shared && !limit.is_reader() => {
                            Error::full(refusal.remaining)
                        }
                        _ => refusal.to_error(),
                    });
                }
                task.waits();
                if place.is_none() {
                    let free = Arc::clone(&places).acquire_owned();
                    place = match engine.timers.before(give_up, free).await {
                        Some(Ok(free)) => Some(free),
                        _ => None,
                    };
                    // At the end of the wait it asks a last time.
                    waits = place.is_some();
                    queueing = if waits {
                        Queueing::Always
                    } else {
                        Queueing::Never
                    };
                    continue;
                }
                if queueing != Queueing::Always && !refusal.queued {
                    queueing = Queueing::Always;
                    continue;
                }
                queueing = Queueing::Always;
                let again = ask_again_after(&refusal, attempt.lease.token, doubt.refusals);
                let until = engine.now() + again;
                doubt.refused();
                contender.refused(&refusal, until, give_up);
                if let Some(grant) = given(&contender, engine, until, give_up).await
                    && !grant.asks
                    && !engine.queue.is_draining()
                    && attempt.take_over(grant)
                {
                    if contender.granted(&attempt.lease) {
                        return Ok(attempt);
                    }
                    (attempt, contender) = begin(spec);
                }
                continue;
            }
            Asked::Failed(failure) => failure,
        };
        let now = engine.now();
        let over = doubt.failed(now, engine.store.limits().outage) || now >= give_up;
        if failure.is_final() || spec.wait == Wait::None || over {
            return Err(failure.error);
        }
        task.waits();
        let until = (now + pause_after_failure(doubt.failures)).min(give_up);
        contender.unanswered(&failure.error, until);
        if engine.store.limits().releases_refused {
            (attempt, contender) = begin(spec);
        }
        engine.timers.at(until).await;
    }
}

/// Waits for releases of this process that may have stood in the way of a question. `confirmed`: the count of confirmed
/// ones when it was sent. `true`: there were such, so the question is asked again.
pub(super) async fn meets_own_release(spec: &LockSpec, attempt: &Attempt, confirmed: u64) -> bool {
    let engine = &spec.engine;
    let met = engine.queue.is_releasing_before(&attempt.lease);
    if met {
        let released = engine.queue.releases_arrive(&attempt.lease);
        let until = engine.now() + spec.acquire_timeout;
        engine.timers.before(until, released).await;
    }
    met || engine.queue.confirmed_releases() != confirmed
}

fn begin(spec: &LockSpec) -> (Attempt, Contender) {
    let attempt = Attempt::new(spec);
    let contender = spec.engine.queue.enter_share(&attempt.lease);
    (attempt, contender)
}
