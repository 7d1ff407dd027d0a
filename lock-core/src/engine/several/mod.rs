//! Several keys as one lock: all of them, or none.
//!
//! Each key is an ordinary lease with its own token. A caller goes through three steps:
//!
//! 1. It asks for all keys at once ([`at_once`]), where the store has them in one place.
//! 2. It waits for the one key that was refused, and holds nothing meanwhile. With that key it asks for the rest at once.
//! 3. Refused again, it gives the key back. It then acquires all keys in the order of their bytes, waits for each in the
//!    ordinary queue, and keeps what it has.
//!
//! # Why there is no deadlock and no starvation
//!
//! A caller waits while it holds a key in step 3 only, and there for a higher key only. So a circle of waiters would need
//! one that waits for a lower key than it holds. In step 2 the caller only tries while it holds the key. Step 3 goes on
//! from key to key, and each key serves its waiters in the order of their arrival. Its price is that lower keys are held
//! while the caller waits for higher ones. A caller that kept its key of step 2 for step 3, or that stood in all queues at
//! once, could deadlock; histories of `tests/sim` show both.
//!
//! Each attempt has fresh tokens. With one token for all, a late giving-back of one attempt would delete the key that a
//! later attempt has taken.
//!
//! # Why the highest fencing token is the token of all keys
//!
//! All keys are held when the clock of their server passes that token, so each later grant of any of them has a higher
//! one. On several servers their marks are raised to it before the lock counts.

mod at_once;
mod loss;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::Engine;
use super::acquire::{Doubt, take_one};
use super::acquired::{Acquired, Collected};
use super::loss_watch::LossWatch;
use super::spec::LockSpec;
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::join::join_all;
use crate::base::options::Wait;
use crate::lease::backoff::pause_after_failure;
use crate::store::{Failure, Lane, Operation, Outcome, Place, Raise};

use self::at_once::{AtOnce, ask_at_once};

/// Acquires all keys of the request.
pub(super) async fn take_all(spec: &LockSpec) -> Result<Acquired, Error> {
    let give_up = match spec.wait {
        Wait::None => spec.engine.now(),
        Wait::For(span) => spec.engine.now() + span,
        Wait::Forever => Moment::FAR,
    };
    let keys: Vec<Arc<str>> = spec.keys().cloned().collect();
    let group = GroupRequest {
        spec,
        place: spec.engine.store.place(&keys),
        keys,
        give_up,
    };
    let mut doubt = Doubt::default();
    loop {
        let formed = match group.collect().await? {
            Some(leases) => group.form(leases).await,
            None => Ok(None),
        };
        let failure = match formed {
            Ok(Some(acquired)) => return Ok(acquired),
            Ok(None) if spec.engine.now() < give_up => continue,
            Ok(None) => {
                Failure::refused("a key of the lock was lost while the others were acquired")
            }
            Err(failure) => failure,
        };
        // The keys are given back by now. A server that hangs for a moment does not end the wait.
        let now = spec.engine.now();
        let over = doubt.failed(now, spec.engine.store.limits().outage) || now >= give_up;
        if failure.is_final() || over {
            return Err(failure.error.with_key(&spec.key));
        }
        let until = (now + pause_after_failure(doubt.failures)).min(give_up);
        spec.engine.timers.at(until).await;
    }
}

struct GroupRequest<'a> {
    spec: &'a LockSpec,
    keys: Vec<Arc<str>>,
    place: Place,
    give_up: Moment,
}

impl GroupRequest<'_> {
    fn engine(&self) -> &Arc<Engine> {
        &self.spec.engine
    }

    fn waits(&self) -> bool {
        self.spec.wait != Wait::None
    }

    /// Collects the leases of all keys, in order; `None`: one of them was lost meanwhile.
    async fn collect(&self) -> Result<Option<Vec<Collected>>, Error> {
        // Keys that are left free for clients of other libraries are taken one by one.
        let leaves_gaps = self.waits() && self.spec.options.leaves_gaps();
        if self.place == Place::Apart || leaves_gaps {
            return self.collect_in_order().await;
        }
        let refused = match ask_at_once(self.spec, &self.keys).await {
            AtOnce::Granted(leases) => return Ok(Some(leases)),
            // A record is an answer, for which no caller waits.
            AtOnce::Busy(at, refusal) if !self.waits() || refusal.record.is_some() => {
                return Err(refusal.to_error().with_key(&self.keys[at]));
            }
            AtOnce::Failed(failure) if failure.is_final() || !self.waits() => {
                return Err(failure.error.with_key(&self.spec.key));
            }
            AtOnce::Busy(at, _) | AtOnce::Occupied(at) if self.waits() => at,
            // In order, each key learns from the tasks of this process, and steps over their leases.
            _ => return self.collect_in_order().await,
        };
        let first = self.take(refused).await?;
        let mut rest = self.keys.clone();
        rest.remove(refused);
        match ask_at_once(self.spec, &rest).await {
            AtOnce::Granted(mut leases) => {
                leases.insert(refused, first);
                return Ok(Some(leases));
            }
            AtOnce::Failed(failure) if failure.is_final() => {
                return Err(failure.error.with_key(&self.spec.key));
            }
            _ => drop(first),
        }
        self.collect_in_order().await
    }

    /// Acquires all keys in order, and keeps what it has while it waits for the next one.
    async fn collect_in_order(&self) -> Result<Option<Vec<Collected>>, Error> {
        let mut leases: Vec<Collected> = Vec::with_capacity(self.keys.len());
        for index in 0..self.keys.len() {
            let next = {
                let mut watches: Vec<_> = leases
                    .iter()
                    .map(|held| LossWatch::new(self.engine(), held.lease()))
                    .collect();
                let mut next = pin!(self.take(index));
                poll_fn(|context| {
                    let mut watches = watches.iter_mut();
                    if watches.any(|watch| watch.poll_lost(context).is_some()) {
                        return Poll::Ready(None);
                    }
                    next.as_mut().poll(context).map(Some)
                })
                .await
            };
            match next {
                Some(next) => leases.push(next?),
                None => return Ok(None),
            }
        }
        Ok(Some(leases))
    }

    /// Acquires one of the keys as any other caller does.
    async fn take(&self, index: usize) -> Result<Collected, Error> {
        let left = || self.give_up.since(self.engine().now());
        let spec = LockSpec {
            key: Arc::clone(&self.keys[index]),
            others: Vec::new(),
            options: self.spec.options.while_collecting(),
            wait: match self.spec.wait {
                Wait::For(_) => Wait::For(left()),
                wait => wait,
            },
            ..self.spec.clone()
        };
        let acquired = Box::pin(take_one(&spec)).await?;
        Ok(Collected::new(self.engine(), acquired))
    }

    /// Makes one lock of the leases; `None`: one of them is lost.
    ///
    /// # Errors
    ///
    /// The marks could not be raised to the token of the lock.
    async fn form(&self, leases: Vec<Collected>) -> Result<Option<Acquired>, Failure> {
        let engine = self.engine();
        let fences = leases.iter().filter_map(|one| one.lease().fence());
        let Some(fence) = fences.max() else {
            return Ok(None);
        };
        // The SQL of the application finds each key by the token of the lock.
        if self.place == Place::Apart || engine.store.check_sql().is_some() {
            let lower = leases
                .iter()
                .filter(|one| one.lease().fence() < Some(fence));
            let raises = lower.map(|one| {
                let raise = Operation::Raise(Raise {
                    key: Arc::clone(&one.lease().key),
                    token: one.lease().token,
                    ttl: one.lease().ttl(),
                    fence,
                });
                engine.store.execute(raise, Lane::of_this_task())
            });
            let until = engine.now() + self.spec.acquire_timeout;
            let raised = engine.timers.before(until, join_all(raises)).await;
            let raised =
                raised.ok_or_else(|| Failure::unanswered("the store gave no answer in time"))?;
            for outcome in raised {
                match outcome {
                    Outcome::Raised => {}
                    Outcome::Failed(failure) => return Err(failure),
                    _ => return Err(Failure::not_understood()),
                }
            }
        }
        for one in &leases {
            one.lease().join(fence, self.spec.options);
        }
        let (first, others) = leases.split_first().expect("a request has a key");
        let others = others.iter().map(|one| Arc::clone(one.lease()));
        first.lease().lead(others.collect());
        // A loss from here on reaches all of them.
        for one in &leases {
            engine.keeper.arm(one.lease());
        }
        let held = leases.iter().all(|one| engine.is_valid(one.lease()));
        Ok(held.then_some(Acquired::Several(leases)))
    }
}
