//! Giving back in the background: dropped guards, releases nobody answered, acquires nobody wants.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::Keeper;
use crate::active::{Ending, Hold};
use crate::base::token::Token;
use crate::engine::Core;
use crate::lease::backoff::{pause_after_failure, pause_after_refusal};
use crate::queue::look;
use crate::store::{Lane, Operation, Outcome, Release, Store};

/// A command that was sent and not answered has arrived by then or never will: the redis store's
/// sockets give up on unacknowledged data after 5 s (`TCP_USER_TIMEOUT`).
const LATE_TWIN: Duration = Duration::from_secs(6);

/// One lease to give back.
pub(crate) struct Job {
    release: Release,
    first: First,
    /// For how long the store could keep what is given back, if it were never asked.
    ttl: Duration,
    /// Whether a send of its acquire may arrive after everything else.
    late_twin: bool,
    /// Told when the job is done; keeps the manager alive until then.
    core: Arc<Core>,
}

/// What is done at once.
enum First {
    End(Ending),
    /// Behind the acquire, on the link that it took: whatever it did is undone in order.
    Undo(Lane),
    /// A place in the store's queue is left, no key touched.
    Leave,
    /// It is released already.
    Nothing,
    /// It is held: whether anybody else waits for it.
    Look,
}

impl Job {
    /// A lease that was held.
    pub(crate) fn release(hold: &Hold) -> Self {
        Self::of(hold, First::End(hold.ending()))
    }

    /// A lease that was lost: if its key is still there, it goes.
    pub(crate) fn discard(hold: &Hold) -> Self {
        Self::of(hold, First::End(Ending::Release))
    }

    /// An acquire that nobody waits for any more, sent by `lane`.
    pub(crate) fn undo(hold: &Hold, lane: Lane) -> Self {
        Self::of(hold, First::Undo(lane))
    }

    /// A lease that was released, and of whose acquire a send may still arrive.
    pub(crate) fn late_twin(hold: &Hold) -> Self {
        Self::of(hold, First::Nothing)
    }

    /// A lease whose key has gone before its end: a key that is free goes to the first waiter.
    pub(crate) fn hand_on(hold: &Hold) -> Self {
        Self {
            late_twin: false,
            ..Self::of(hold, First::Leave)
        }
    }

    /// A lease that goes from task to task here: does anybody wait for it elsewhere?
    pub(crate) fn look(hold: &Hold) -> Self {
        Self::of(hold, First::Look)
    }

    /// What the store has for a waiter that is gone: its place in the queue, or the key itself.
    pub(crate) fn nobodys(
        core: &Arc<Core>,
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
            first: match given {
                true => First::End(Ending::Release),
                false => First::Leave,
            },
            ttl: Duration::from_secs(5),
            late_twin: false,
            core: Arc::clone(core),
        }
    }

    /// What is to be asked, and for which manager, to end a lease that was held.
    pub(super) fn ending(&self) -> Option<(Arc<Core>, Operation)> {
        let First::End(ending) = self.first else {
            return None;
        };
        Some((Arc::clone(&self.core), ending.of(self.release.clone())))
    }

    /// It is given back.
    pub(super) fn end(self, keeper: &Keeper) {
        self.core.local.given_back(&self.release);
        // The last reference to the manager may go with the job: before it counts as done.
        drop(self);
        keeper.job_done();
    }

    fn of(hold: &Hold, first: First) -> Self {
        Self {
            release: Release {
                in_background: true,
                ..hold.release()
            },
            first,
            ttl: hold.ttl(),
            late_twin: hold.has_late_twin(),
            core: Arc::clone(&hold.core),
        }
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}

pub(super) async fn run(keeper: Arc<Keeper>, store: Arc<dyn Store>, job: Job) {
    if let First::Look = job.first {
        look(job.core, job.release, Lane::Keeper).await;
        keeper.job_done();
        return;
    }
    let release = || Operation::Release(job.release.clone());
    let mut late_twin = job.late_twin;
    let operation = match job.first {
        First::Nothing | First::Look => None,
        First::End(ending) => Some(ending.of(job.release.clone())),
        First::Leave => Some(Operation::Leave(job.release.clone())),
        First::Undo(lane) => {
            let answer = store.execute(release(), lane);
            let answer = timeout(keeper.operation_timeout, answer).await;
            let in_order = matches!(answer, Ok(Outcome::Released(_)));
            late_twin |= !in_order;
            (!in_order).then(release)
        }
    };
    if let Some(operation) = operation {
        until_answered(&keeper, &*store, &operation, job.ttl).await;
    }
    let (release, ttl) = (release(), job.ttl);
    job.end(&keeper);
    // Not waited for, neither by `drain` nor by the end of the keeper: there is most likely nothing.
    if late_twin {
        sleep(LATE_TWIN).await;
        until_answered(&keeper, &*store, &release, ttl).await;
    }
}

/// Repeats the operation until the store answers, or the lease has run out by itself. That the store
/// refuses it, because a right or a setting is wrong, may be over sooner than the lease.
async fn until_answered(keeper: &Keeper, store: &dyn Store, operation: &Operation, ttl: Duration) {
    let end = keeper.clock.now() + ttl;
    let (mut failures, mut refusals) = (0, 0);
    loop {
        let outcome = timeout(
            keeper.operation_timeout,
            store.execute(operation.clone(), Lane::Keeper),
        )
        .await;
        let pause = match outcome {
            Ok(Outcome::Released(_)) => return,
            _ if keeper.clock.now() >= end => {
                tracing::warn!("a lock could not be released before its ttl ran out");
                return;
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
        sleep(pause.min(end.since(keeper.clock.now()))).await;
    }
}
