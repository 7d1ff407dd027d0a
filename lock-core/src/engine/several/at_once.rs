//! One question for several keys, which the store answers with all of them or none.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::base::error::Error;
use crate::engine::acquired::{Acquired, Collected};
use crate::engine::attempt::Attempt;
use crate::engine::spec::LockSpec;
use crate::queue::{Contender, Occupied};
use crate::store::{AcquireAll, Failure, Operation, Outcome, Refusal};

/// The answer to a question for several keys.
pub(super) enum AtOnce {
    Granted(Vec<Collected>),
    /// The key with this index is another owner's.
    Busy(usize, Refusal),
    /// Tasks of this process have to do with the key with this index, or it has to step over their lease.
    Occupied(usize),
    /// The store does not have the keys in one place.
    Apart,
    Failed(Failure),
}

/// Asks for the keys, which are all or some of the request's. Dropped, it leaves none of them behind.
pub(super) async fn ask_at_once(spec: &LockSpec, keys: &[Arc<str>]) -> AtOnce {
    let engine = &spec.engine;
    if engine.queue.is_draining() {
        return AtOnce::Failed(Error::draining().into());
    }
    let contenders = match engine.queue.contend_for_all(keys.iter()) {
        Ok(contenders) => contenders,
        Err(Occupied { at, fact }) => {
            return match fact {
                Some(refusal) => AtOnce::Busy(at, refusal),
                None => AtOnce::Occupied(at),
            };
        }
    };
    let options = spec.options.while_collecting();
    let mut attempts: Vec<Attempt> = keys
        .iter()
        .map(|key| Attempt::with(engine, key, options))
        .collect();
    let patience = spec.acquire_timeout;
    let confirmed = engine.queue.confirmed_releases();
    let sent = engine.now();
    for index in 0..keys.len() {
        match attempts[index].asks_with_others(&contenders[index], sent, patience) {
            Ok(true) => {}
            Ok(false) | Err(_) => {
                attempts.iter_mut().for_each(|one| one.not_taken(false));
                return AtOnce::Occupied(index);
            }
        }
    }
    let operation = Operation::AcquireAll(AcquireAll {
        leases: attempts
            .iter()
            .map(|one| (Arc::clone(&one.lease.key), one.lease.token))
            .collect(),
        ttl: attempts[0].lease.ttl(),
    });
    let mut answer = engine.store.execute(operation, attempts[0].lane());
    let mut wakers = vec![None; attempts.len()];
    let mut polled = false;
    let outcome = poll_fn(|context| {
        // Another task has taken the turn for one key, because this one was not polled.
        if let Some(at) = attempts.iter().position(|one| one.lease.is_closed()) {
            return Poll::Ready(Err(at));
        }
        if let Poll::Ready(outcome) = answer.as_mut().poll(context) {
            return Poll::Ready(Ok(Some(outcome)));
        }
        for (attempt, waker) in attempts.iter().zip(&mut wakers) {
            attempt.lease.wake_on_change(waker, context.waker());
        }
        // The first poll sends the request, so it reads no clock.
        let sent_before = std::mem::replace(&mut polled, true);
        if sent_before && engine.now() >= sent + patience {
            Poll::Ready(Ok(None))
        } else {
            Poll::Pending
        }
    })
    .await;
    for (attempt, waker) in attempts.iter().zip(wakers) {
        attempt.lease.forget_waker(waker);
    }
    let outcome = match outcome {
        Ok(outcome) => outcome,
        // The questions are in flight, and are undone.
        Err(at) => return AtOnce::Occupied(at),
    };
    let (outcome, repeated) = match outcome {
        Some(Outcome::Repeated(outcome)) => (Some(*outcome), true),
        outcome => (outcome, false),
    };
    let mut none_taken = |maybe: bool| {
        attempts.iter_mut().for_each(|one| one.not_taken(maybe));
    };
    match outcome {
        Some(Outcome::Granted(fence)) => {
            let mut leases = Vec::with_capacity(attempts.len());
            let count = attempts.len();
            for (contender, mut attempt) in contenders.into_iter().zip(attempts) {
                if repeated {
                    attempt.lease.note_late_duplicate();
                }
                if attempt.granted_with_others(sent, fence) && contender.granted(&attempt.lease) {
                    leases.push(Collected::new(engine, Acquired::FromStore(attempt)));
                }
            }
            match leases.len() == count {
                true => AtOnce::Granted(leases),
                false => AtOnce::Failed(Failure::unanswered(
                    "the store's answer came after the ttl had run out",
                )),
            }
        }
        Some(Outcome::BusyAt(at, refusal)) if at < keys.len() => {
            none_taken(repeated);
            // The key may hold the previous lease or a share of this process, whose release had not arrived yet.
            let lease = &attempts[at].lease;
            let own = attempts[at].was_behind
                || refusal.shared
                    && (engine.queue.is_releasing_before(lease)
                        || engine.queue.confirmed_releases() != confirmed);
            if own {
                return AtOnce::Occupied(at);
            }
            tell_others(contenders, at, &refusal);
            AtOnce::Busy(at, refusal)
        }
        Some(Outcome::Apart) => {
            none_taken(repeated);
            AtOnce::Apart
        }
        Some(Outcome::Failed(failure)) => {
            none_taken(failure.ambiguous);
            AtOnce::Failed(failure)
        }
        Some(_) => {
            none_taken(true);
            AtOnce::Failed(Failure::not_understood())
        }
        None => {
            none_taken(true);
            AtOnce::Failed(Failure::unanswered(format!(
                "the store gave no answer within {patience:?}"
            )))
        }
    }
}

/// Tells the callers behind the refused key.
fn tell_others(contenders: Vec<Contender>, at: usize, refusal: &Refusal) {
    for (index, contender) in contenders.into_iter().enumerate() {
        if index == at {
            contender.gives_up(refusal);
        }
    }
}
