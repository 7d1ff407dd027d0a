//! Giving back in the background: dropped guards, releases nobody answered, acquires nobody wants.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::Keeper;
use crate::hold::Hold;
use crate::manager::Core;
use crate::retry::pause_after_failure;
use crate::store::{Lane, Operation, Outcome, Release, Store};
use crate::token::Token;

/// A command that was sent and not answered has arrived by then or never will: the redis store's
/// sockets give up on unacknowledged data after 5 s (`TCP_USER_TIMEOUT`).
const LATE_TWIN: Duration = Duration::from_secs(6);

/// One lease to give back.
pub(crate) struct Job {
    release: Release,
    cooldown: Duration,
    /// For how long the store could keep what is given back, if it were never asked.
    ttl: Duration,
    /// Where its acquire was sent, if that may still be on its way.
    behind: Option<Lane>,
    /// Whether a send of its acquire may arrive after everything else.
    late_twin: bool,
    /// Told when the job is done; keeps the manager alive until then.
    core: Arc<Core>,
}

impl Job {
    /// A lease that was held.
    pub(crate) fn release(hold: &Hold) -> Self {
        Self {
            release: hold.release(),
            cooldown: hold.cooldown(),
            ttl: hold.ttl(),
            behind: None,
            late_twin: false,
            core: Arc::clone(&hold.core),
        }
    }

    /// A lease that was lost: if its key is still there, it goes.
    pub(crate) fn discard(hold: &Hold) -> Self {
        Self {
            cooldown: Duration::ZERO,
            ..Self::release(hold)
        }
    }

    /// An acquire that nobody waits for any more, sent by `lane`. `late_twin`: an earlier send of
    /// it went unanswered.
    pub(crate) fn undo(hold: &Hold, lane: Lane, late_twin: bool) -> Self {
        Self {
            cooldown: Duration::ZERO,
            behind: Some(lane),
            late_twin,
            ..Self::release(hold)
        }
    }

    /// The place of a waiter that is gone, in the store's queue.
    pub(crate) fn leave(core: &Arc<Core>, key: Arc<str>, token: Token) -> Self {
        Self {
            release: Release {
                key,
                token,
                fence: None,
            },
            cooldown: Duration::ZERO,
            ttl: Duration::from_secs(5),
            behind: None,
            late_twin: false,
            core: Arc::clone(core),
        }
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}

pub(super) async fn run(keeper: Arc<Keeper>, store: Arc<dyn Store>, job: Job) {
    let operation = if job.cooldown.is_zero() {
        Operation::Release(job.release.clone())
    } else {
        Operation::Cool(job.release.clone(), job.cooldown)
    };
    let mut certain = false;
    if let Some(lane) = job.behind {
        // Behind the acquire, on the link that it took: whatever it did is undone in order.
        let answer = timeout(
            keeper.operation_timeout,
            store.execute(operation.clone(), lane),
        )
        .await;
        certain = matches!(answer, Ok(Outcome::Released(_)));
    }
    if !certain {
        until_answered(&keeper, &*store, &operation, job.ttl).await;
    }
    if job.late_twin || (job.behind.is_some() && !certain) {
        sleep(LATE_TWIN).await;
        until_answered(&keeper, &*store, &operation, job.ttl).await;
    }
    job.core.local.given_back(&job.release);
    // The last reference to the manager may go with the job: before it counts as done.
    drop(job);
    keeper.job_done();
}

/// Repeats the operation until the store answers, or the lease has run out by itself.
async fn until_answered(keeper: &Keeper, store: &dyn Store, operation: &Operation, ttl: Duration) {
    let end = keeper.clock.now() + ttl;
    let mut failures = 0;
    loop {
        match timeout(
            keeper.operation_timeout,
            store.execute(operation.clone(), Lane::Keeper),
        )
        .await
        {
            Ok(Outcome::Released(_)) => return,
            Ok(Outcome::Failed(failure)) if failure.is_final() => {
                tracing::error!(error = %failure.error, "a lock could not be released; it ends by its ttl");
                return;
            }
            _ if keeper.clock.now() >= end => {
                tracing::warn!("a lock could not be released before its ttl ran out");
                return;
            }
            _ => {
                failures += 1;
                sleep(pause_after_failure(failures)).await;
            }
        }
    }
}
