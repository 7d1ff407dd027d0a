//! A swap of the token of a key, and its undoing if it is given up.

use std::sync::Arc;
use std::time::Duration;

use super::cleanup::Cleanup;
use crate::base::clock::Moment;
use crate::base::fence::FencingToken;
use crate::base::token::Token;
use crate::engine::Engine;
use crate::keeper::OpenTask;
use crate::store::{Ended, Failure, Lane, Operation, Outcome, Release, Swap};

/// A swap that is not answered yet. Dropped before, it is undone by the keeper.
pub(in crate::engine) struct OpenSwap {
    engine: Arc<Engine>,
    swap: Swap,
    /// Gives the token back that is replaced.
    release: Release,
    /// Whether an acquire of that token may still arrive.
    late_duplicate: bool,
    /// Its entry among the tasks that `drain` waits for; `None` once it needs no undoing.
    open: Option<OpenTask>,
}

impl OpenSwap {
    /// `late_duplicate`: an acquire of the token that is replaced may still arrive.
    pub(in crate::engine) fn new(
        engine: &Arc<Engine>,
        release: Release,
        (to, ttl): (Token, Duration),
        fence: Option<FencingToken>,
        late_duplicate: bool,
    ) -> Self {
        Self {
            engine: Arc::clone(engine),
            open: Some(engine.keeper.open_task()),
            late_duplicate,
            swap: Swap {
                key: Arc::clone(&release.key),
                from: release.token,
                to,
                ttl,
                fence,
            },
            release,
        }
    }

    /// Sends the swap. `ends`: a swap counts whose answer comes before the end of the lease that is replaced.
    pub(in crate::engine) async fn answer(
        &self,
        lane: Lane,
        ends: Moment,
    ) -> Result<Ended, Failure> {
        let engine = &self.engine;
        let patience = engine.operation_timeout;
        let overdue = engine.now() + patience;
        let operation = Operation::Swap(self.swap.clone());
        let answer = engine.store.execute(operation, lane);
        let answer = match engine.timers.before(overdue, answer).await {
            // Late copies of both requests could make the second token anew, when its owner has ended.
            Some(Outcome::Repeated(_)) if self.late_duplicate => {
                return Err(Failure::unanswered(
                    "the connection broke while the lock was acquired and again now, so late copies of both requests may \
                     still arrive; the lock is given back",
                ));
            }
            // The first copy may have made the share, and other shares may have joined it. The value of the key then names none
            // of them.
            Some(Outcome::Repeated(answer)) if self.may_be_among_shares(&answer) => {
                return Err(Failure::unanswered(
                    "the connection broke while the lock became a share, and other shares have the key now; it is given back",
                ));
            }
            Some(Outcome::Repeated(answer)) => Some(*answer),
            answer => answer,
        };
        match answer {
            Some(Outcome::Swapped(Ended::Yes)) if engine.now() >= ends => Err(Failure::unanswered(
                "the store's answer came after the ttl had run out",
            )),
            Some(Outcome::Swapped(swapped)) => Ok(swapped),
            Some(Outcome::Failed(failure)) => Err(failure),
            Some(_) => Err(Failure::not_understood()),
            None => Err(Failure::unanswered(format!(
                "the store gave no answer within {patience:?}"
            ))),
        }
    }

    fn may_be_among_shares(&self, answer: &Outcome) -> bool {
        self.swap.to.share().is_some() && matches!(answer, Outcome::Swapped(Ended::Other))
    }

    pub(in crate::engine) fn needs_no_undoing(&mut self) {
        self.open = None;
    }
}

impl Drop for OpenSwap {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            let undo = Cleanup::of_a_swap(
                &self.engine,
                self.release.clone(),
                &self.swap,
                self.late_duplicate,
            );
            undo.run_on_keeper(open);
        }
    }
}
