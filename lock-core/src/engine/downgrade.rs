//! Downgrading a lock: its owner goes on as a reader, with the same fencing token.
//!
//! The store replaces the token of the lock by that of a share, in one step, so that no other owner comes between. The
//! question of the share that follows lets in the readers that wait.

use std::sync::Arc;

use super::Engine;
use super::ending::swap::OpenSwap;
use crate::active::ActiveLease;
use crate::base::error::Error;
use crate::base::options::Interop;
use crate::base::share::ShareLimit;
use crate::store::{AcquireRoute, Ended, Lane, Operation, Outcome, Queueing};

const SEVERAL_SERVERS: &str = "a lock over several servers (`redlock://`) cannot be downgraded, because they do not \
     replace its token in one step; release it and acquire it with `.read()`, or keep such locks on one server, with \
     sentinels or in a cluster";
const SEVERAL_KEYS: &str =
    "a lock of several keys cannot be downgraded, because it has no readers; release it";
const INSIDE: &str = "a lock cannot be downgraded while a call that has entered it still runs, or work that keeps it; downgrade \
     it outside of that call, or when that call or work has ended";
const SHARE: &str =
    "the lock is a share already (a reader or a permit), so there is nothing to downgrade";

impl Engine {
    /// Replaces a held lock by a reader's share.
    ///
    /// # Errors
    ///
    /// After each error but `Invalid` the lease has ended.
    pub(crate) async fn downgrade(
        self: &Arc<Self>,
        lease: &Arc<ActiveLease>,
    ) -> Result<Arc<ActiveLease>, Error> {
        if !self.store.limits().swaps {
            return Err(Error::invalid(SEVERAL_SERVERS));
        }
        if lease.token.share().is_some() {
            return Err(Error::invalid(SHARE));
        }
        if !lease.followers().is_empty() {
            return Err(Error::invalid(SEVERAL_KEYS));
        }
        let AcquireRoute { lane, address } = self.store.acquire_route(self.tokens.manager());
        let (fence, ends) = self.detach(lease, INSIDE)?;
        let sent = self.now();
        let token = self.tokens.fresh_at(address, sent);
        let token = token.with_share(Some(ShareLimit::READERS));
        let options = lease.options().interop(Interop::Off);
        let share = ActiveLease::new(&lease.key, token, options, self.timers.clock());
        let (release, late_duplicate) = (lease.release(), lease.has_late_duplicate());
        let to = (token, lease.ttl());
        let mut open = OpenSwap::new(self, release, to, Some(fence), late_duplicate);
        let swapping = self.queue.swaps_in(&share);
        match open.answer(lane, ends).await {
            Ok(Ended::Yes) if share.grant(sent, fence) => {
                open.needs_no_undoing();
                self.has_ended(lease);
                swapping.granted(&share);
                self.keeper.arm(&share);
                Ok(share)
            }
            Ok(Ended::Yes) => Err(Error::unavailable(
                "the store's answer came after the ttl had run out; the lock is given back",
            )),
            Ok(Ended::Absent | Ended::Other) => {
                open.needs_no_undoing();
                Err(self.is_not_ours(lease))
            }
            Err(failure) => Err(failure.error),
        }
    }

    /// Asks for a reader's share once more, which lets in those that wait. If no answer comes, they ask by themselves.
    pub(crate) async fn let_in_readers(self: &Arc<Self>, share: &ActiveLease) {
        let lane = Lane::of_this_task();
        let question = share.acquire(Queueing::Never, None, true);
        let operation = Operation::Acquire(question);
        let mut asking = Asking {
            engine: self,
            share,
            lane,
            is_answered: false,
            is_over: false,
        };
        let answer = self.store.execute(operation, lane);
        let overdue = self.now() + self.operation_timeout;
        let answer = self.timers.before(overdue, answer).await;
        asking.is_over = true;
        asking.is_answered = matches!(answer, Some(Outcome::Granted(_) | Outcome::Busy(_)));
    }
}

/// A question without an answer so far. It may arrive when the share has ended, and is then undone by its release.
struct Asking<'a> {
    engine: &'a Arc<Engine>,
    share: &'a ActiveLease,
    lane: Lane,
    is_answered: bool,
    /// The share goes on, with or without an answer.
    is_over: bool,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.share.note_late_duplicate();
        }
        if !self.is_over {
            // The guard goes too, and its release takes another way, on which it may arrive before the question.
            self.engine.undo(self.share, self.lane, false);
        }
    }
}
