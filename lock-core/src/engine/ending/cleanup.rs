//! Cleaning up in the background: dropped guards, releases without an answer, acquires that were given up.
//!
//! # Why `drain` does not wait for late duplicates
//!
//! A second pass looks after a command that was sent on a connection that never answered. There is most
//! likely nothing to undo, and a key that is there ends by its ttl.

use std::sync::Arc;
use std::time::Duration;

use super::way::{Way, has_no_room};
use crate::active::ActiveLease;
use crate::base::machine::{sleep, timeout};
use crate::base::token::Token;
use crate::engine::Engine;
use crate::keeper::OpenTask;
use crate::lease::backoff::{pause_after_failure, pause_after_refusal};
use crate::store::{Lane, Operation, Outcome, Release, Store, Swap};
use crate::timer::Timers;

/// One lease to give back.
pub(crate) struct Cleanup {
    release: Release,
    way: Way,
    /// The token of a swap without an answer. It is given back behind the one that it replaces, because from then on no
    /// late copy of the swap finds anything to replace.
    then: Option<Release>,
    /// The longest time for which the store may keep the key, if no release arrives.
    ttl: Duration,
    /// Whether a send of its acquire may arrive after all other requests.
    late_duplicate: bool,
    /// Keeps the manager alive until the cleanup is done.
    engine: Arc<Engine>,
}

impl Cleanup {
    /// Gives back what the store holds for a waiter that is gone: its place in the queue, or the key itself.
    pub(super) fn of_a_gone_waiter(
        engine: &Arc<Engine>,
        key: Arc<str>,
        token: Token,
        grant: Duration,
        given: bool,
    ) -> Self {
        Self {
            release: Release {
                key,
                token,
                ttl: grant,
                fence: None,
                in_background: true,
            },
            way: match given {
                true => Way::Release,
                false => Way::Leave,
            },
            then: None,
            ttl: Duration::from_secs(5),
            late_duplicate: false,
            engine: Arc::clone(engine),
        }
    }

    /// Gives both tokens of a swap back. `release`: of the first one.
    pub(super) fn of_a_swap(
        engine: &Arc<Engine>,
        release: Release,
        swap: &Swap,
        late_duplicate: bool,
    ) -> Self {
        let release = Release {
            in_background: true,
            ..release
        };
        Self {
            way: Way::Release,
            then: Some(Release {
                token: swap.to,
                ..release.clone()
            }),
            ttl: release.ttl.max(swap.ttl),
            release,
            late_duplicate,
            engine: Arc::clone(engine),
        }
    }

    pub(crate) fn of(engine: &Arc<Engine>, lease: &ActiveLease, way: Way) -> Self {
        // A key that is gone before the end of its lease has been granted.
        let is_gone = matches!(way, Way::Leave);
        Self {
            release: Release {
                in_background: true,
                ..lease.release()
            },
            way,
            then: None,
            ttl: lease.ttl(),
            late_duplicate: lease.has_late_duplicate() && !is_gone,
            engine: Arc::clone(engine),
        }
    }

    /// Runs the cleanup on the keeper.
    pub(crate) fn submit(self) {
        let open = self.engine.keeper.open_task();
        self.run_on_keeper(open);
    }

    pub(super) fn run_on_keeper(self, open: OpenTask) {
        let engine = Arc::clone(&self.engine);
        engine.keeper.run(Box::pin(self.run(open)));
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(super) fn operation(&self) -> Option<Operation> {
        self.way.operation(self.release.clone())
    }

    /// Notes the store's answer to a record.
    pub(super) fn note(&self, outcome: &Outcome) {
        self.way.note(outcome);
    }

    /// Ends the cleanup, because the store has confirmed it.
    pub(super) fn complete(self, open: OpenTask) {
        self.engine.queue.confirm_release(&self.release);
        // In this order, because the last reference to the manager may go with the cleanup, before it counts
        // as done.
        drop(self);
        drop(open);
    }

    async fn run(self, open: OpenTask) {
        // Holds no engine, which may end before a late duplicate is looked after.
        let sender = Sender {
            store: Arc::clone(&self.engine.store),
            timers: Arc::clone(&self.engine.timers),
            operation_timeout: self.engine.operation_timeout,
        };
        let release = Operation::Release(self.release.clone());
        let then = self.then.clone().map(Operation::Release);
        let ttl = self.ttl;
        let mut late_duplicate = self.late_duplicate;
        let mut operation = self.operation();
        if let Way::Undo(lane) = self.way {
            let answer = sender.store.execute(release.clone(), lane);
            let answer = timeout(sender.operation_timeout, answer).await;
            let in_order = matches!(answer, Ok(Outcome::Released(_)));
            late_duplicate |= !in_order;
            operation = operation.filter(|_| !in_order);
        }
        if let Some(operation) = operation {
            let answer = sender.until_answered(&operation, ttl).await;
            // The token stays for a ttl, and a late duplicate cannot make that much longer.
            late_duplicate &= !answer.as_ref().is_some_and(has_no_room);
            answer.iter().for_each(|answer| self.note(answer));
        }
        if let Some(then) = &then {
            sender.until_answered(then, ttl).await;
        }
        self.complete(open);
        // Neither `drain` nor the end of the keeper waits for this, because there is most likely nothing.
        if late_duplicate {
            sleep(sender.store.limits().late_duplicate).await;
            sender.until_answered(&release, ttl).await;
            if let Some(then) = &then {
                sender.until_answered(then, ttl).await;
            }
        }
    }
}

struct Sender {
    store: Arc<dyn Store>,
    timers: Arc<Timers>,
    operation_timeout: Duration,
}

impl Sender {
    /// Repeats the operation until the store answers, or the lease has run out by itself. A refusal for want
    /// of a right may be over sooner than the lease.
    async fn until_answered(&self, operation: &Operation, ttl: Duration) -> Option<Outcome> {
        let end = self.timers.now() + ttl;
        let (mut failures, mut refusals) = (0, 0);
        loop {
            let answer = self.store.execute(operation.clone(), Lane::KEEPER);
            let pause = match timeout(self.operation_timeout, answer).await {
                Ok(outcome) if outcome.has_ended() => return Some(outcome),
                _ if self.timers.now() >= end => {
                    tracing::warn!("a lock could not be released before its ttl ran out");
                    return None;
                }
                Ok(Outcome::Failed(failure)) if failure.is_final() => {
                    refusals += 1;
                    if refusals == 1 {
                        tracing::error!(
                            error = %failure.error,
                            "a lock could not be released; it is tried again until its ttl has run out"
                        );
                    }
                    pause_after_refusal(refusals)
                }
                _ => {
                    failures += 1;
                    pause_after_failure(failures)
                }
            };
            sleep(pause.min(end.since(self.timers.now()))).await;
        }
    }
}
