//! One question for several keys, which the store answers with all of them or none.

use std::sync::Arc;

use crate::base::error::Error;
use crate::engine::acquired::{Acquired, Collected};
use crate::engine::attempt::Attempt;
use crate::engine::question::send;
use crate::engine::spec::LockSpec;
use crate::queue::Occupied;
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
        if !attempts[index].asks_with_others(&contenders[index], sent, patience) {
            attempts.iter_mut().for_each(Attempt::is_not_sent);
            return AtOnce::Occupied(index);
        }
    }
    let operation = Operation::AcquireAll(AcquireAll {
        leases: attempts
            .iter()
            .map(|one| (Arc::clone(&one.lease.key), one.lease.token))
            .collect(),
        ttl: attempts[0].lease.ttl(),
    });
    let answer = engine.store.execute(operation, attempts[0].lane);
    let answer = match send(engine, answer, &mut attempts, patience).await {
        Ok(answer) => answer,
        // The questions are in flight, and are undone.
        Err(at) => return AtOnce::Occupied(at),
    };
    match answer {
        Ok(Outcome::Granted(fence)) => {
            let mut leases = Vec::with_capacity(attempts.len());
            let count = attempts.len();
            for (contender, mut attempt) in contenders.into_iter().zip(attempts) {
                if attempt.granted(sent, fence) && contender.granted(&attempt.lease) {
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
        Ok(Outcome::BusyAt(at, refusal)) if at < keys.len() => {
            // The key may hold the previous lease or a share of this process, whose release had not arrived yet.
            let lease = &attempts[at].lease;
            let own = attempts[at].was_behind
                || refusal.shared
                    && (engine.queue.is_releasing_before(lease)
                        || engine.queue.confirmed_releases() != confirmed);
            if own {
                return AtOnce::Occupied(at);
            }
            // Those behind the refused key are told too.
            if let Some(contender) = contenders.into_iter().nth(at) {
                contender.gives_up(&refusal);
            }
            AtOnce::Busy(at, refusal)
        }
        Ok(Outcome::Apart) => AtOnce::Apart,
        Ok(_) => {
            attempts.iter_mut().for_each(Attempt::may_arrive_late);
            AtOnce::Failed(Failure::not_understood())
        }
        Err(failure) => AtOnce::Failed(failure),
    }
}
