//! A release whose caller waits for the store's answer.

use std::sync::Arc;
use std::time::Duration;

use super::Ended;
use super::way::{Way, has_no_room, told_to_owner};
use crate::active::ActiveLease;
use crate::base::error::Error;
use crate::base::join::join_all;
use crate::engine::Engine;
use crate::lease::{Loss, Phase};
use crate::queue::ReleaseState;
use crate::store::{Lane, Outcome};

impl Engine {
    /// Tells the store that a lock has ended, and waits for the answer.
    ///
    /// `lease`: that of the lock, or of its first key. `patience`: the longest wait. `None`: the release continues in the
    /// background.
    pub(crate) async fn tell_now(
        self: &Arc<Self>,
        lease: &Arc<ActiveLease>,
        (first, others): (Ended, Vec<Ended>),
        patience: Duration,
    ) -> Option<Result<(), Error>> {
        if !others.is_empty() {
            return Box::pin(self.tell_of_all(first, others, patience)).await;
        }
        let (lease, loss) = match first {
            Ended::Held(lease) => (lease, None),
            // The token in the store decides about the record, and not the belief of this process.
            Ended::Lost(lease, loss) if lease.record().is_some() => (lease, Some(loss)),
            Ended::Lost(lease, loss) => {
                self.discard(&lease, loss);
                return Some(Err(lease.loss_error(loss)));
            }
            // Kept work or a body inside ends the lease later, unless it is lost.
            Ended::Nothing => {
                return Some(match self.phase(lease) {
                    Phase::Lost(loss) => Err(lease.loss_error(loss)),
                    _ => Ok(()),
                });
            }
        };
        let told = self.tell_of(&lease, patience).await;
        match loss {
            Some(loss) => Some(Err(lease.loss_error(loss))),
            None => told,
        }
    }

    /// Tells the store of the ends of several keys, all at once.
    async fn tell_of_all(
        self: &Arc<Self>,
        first: Ended,
        others: Vec<Ended>,
        patience: Duration,
    ) -> Option<Result<(), Error>> {
        let mut lost = None;
        let mut held = Vec::with_capacity(others.len() + 1);
        for ended in std::iter::once(first).chain(others) {
            match ended {
                Ended::Held(lease) => held.push(lease),
                Ended::Lost(lease, loss) => {
                    self.discard(&lease, loss);
                    // The key that was lost says more than those that were lost with it.
                    if lost.is_none() || loss != Loss::OtherKey {
                        lost = Some(lease.loss_error(loss));
                    }
                }
                Ended::Nothing => {}
            }
        }
        let answers = join_all(held.iter().map(|lease| self.tell_of(lease, patience))).await;
        if let Some(error) = lost {
            return Some(Err(error));
        }
        let confirmed = answers.into_iter().collect::<Option<Vec<_>>>()?;
        Some(confirmed.into_iter().collect())
    }

    /// Tells the store of the end of a lease, and waits for its answer.
    async fn tell_of(
        self: &Arc<Self>,
        lease: &Arc<ActiveLease>,
        patience: Duration,
    ) -> Option<Result<(), Error>> {
        let mut telling = Telling {
            engine: self,
            lease: Some(lease),
        };
        let way = Way::of(lease);
        let answer = self
            .store
            .execute(way.operation(lease.release())?, Lane::of_this_task());
        let overdue = self.now() + patience;
        match self.timers.before(overdue, answer).await? {
            outcome if outcome.has_ended() => {
                telling.lease = None;
                way.note(&outcome);
                match has_no_room(&outcome) {
                    // The token has to stay.
                    true => self.queue.leave(lease, ReleaseState::Nothing),
                    false => self.has_ended(lease),
                }
                Some(told_to_owner(&outcome, lease))
            }
            // The keeper repeats it until the ttl is over.
            Outcome::Failed(failure) if failure.is_final() => {
                Some(Err(failure.error.with_key(&lease.key)))
            }
            // It is not confirmed.
            _ => None,
        }
    }
}

/// A release in flight, which continues in the background if it is dropped before the answer.
struct Telling<'a> {
    engine: &'a Arc<Engine>,
    lease: Option<&'a Arc<ActiveLease>>,
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        if let Some(lease) = self.lease {
            self.engine.release_later(lease);
        }
    }
}
