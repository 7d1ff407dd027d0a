//! Tickets: a held lock leaves its process, and another process goes on with it.
//!
//! # Why the ticket has a token of its own
//!
//! If the lease's own token were the ticket, two bearers would both find it in the store, and both would own the lock.
//! So the store replaces tokens, which it can do once: the lease's token by that of the ticket, and that of the ticket
//! by the token of the next lease. All late commands of the earlier token then find another one.
//!
//! # Why an unanswered swap is undone and not repeated for ever
//!
//! Its caller cannot know which of the two tokens stands. The keeper releases the first token, after which a late copy
//! of the swap finds nothing to replace, and then the second one. The lock is free, and a bearer of the ticket gets
//! `Lost`.
//!
//! # Why an answer that comes after the end of the lease does not count
//!
//! The lease may have ended in the store before the swap arrived. Another owner may then have had the key, and a late
//! copy of the first owner's acquire may have taken it again behind that owner. The fencing token of the first owner is
//! below that of the other one.
//!
//! # Why the first owner's process looks at the key when a ticket is over
//!
//! Waiters were told the end of the lease. A ticket may end long before it, and its end tells no waiter.

use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use super::acquired::{Acquired, Collected};
use super::ending::swap::OpenSwap;
use crate::active::{ActiveLease, Detached};
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::fence::FencingToken;
use crate::base::machine::{sleep, timeout};
use crate::base::ticket::Ticket;
use crate::lease::backoff::LONGEST;
use crate::lease::deadline::surely_over;
use crate::lease::{LeaseOptions, Phase};
use crate::queue::ReleaseState;
use crate::store::{AcquireRoute, Ended, Lane, Operation, Release};

const INSIDE: &str = "a ticket cannot be made while a call that has entered the lock still runs, or work that keeps it; \
     make it outside of that call, or when that call or work has ended";
const SEVERAL_KEYS: &str = "a lock of several keys has no ticket, because its keys cannot be passed on in one step; \
     pass on one key, under which the next process locks the others";
const SHARE: &str = "a share (a reader or a permit) has no ticket, because the key is not its own; let the next process \
     ask for a share itself";
const SEVERAL_SERVERS: &str = "a lock over several servers (`redlock://`) has no ticket, because no server alone can \
     pass it on exactly once; let the next process lock the key itself, or keep such locks on one server, with \
     sentinels or in a cluster";

impl Engine {
    /// Replaces a held lease by a ticket for the time `pick_up`.
    ///
    /// # Errors
    ///
    /// After each error but `Invalid` the lease has ended.
    pub(crate) async fn hand_out(
        self: &Arc<Self>,
        lease: &Arc<ActiveLease>,
        pick_up: Duration,
    ) -> Result<Ticket, Error> {
        self.check_swaps()?;
        if lease.token.share().is_some() {
            return Err(Error::invalid(SHARE));
        }
        if !lease.followers().is_empty() {
            return Err(Error::invalid(SEVERAL_KEYS));
        }
        lease.role().check_ticket()?;
        let (fence, ends) = self.detach(lease, INSIDE)?;
        let ticket = Ticket {
            key: Arc::clone(&lease.key),
            token: self.tokens.fresh(),
            fence,
            ttl: lease.ttl(),
        };
        let (release, late_duplicate) = (lease.release(), lease.has_late_duplicate());
        let to = (ticket.token, pick_up);
        let mut open = OpenSwap::new(self, release, to, None, late_duplicate);
        match open.answer(Lane::of_this_task(), ends).await {
            Ok(Ended::Yes) => {
                open.needs_no_undoing();
                self.has_ended(lease);
                self.look_after_ticket(lease, pick_up);
                Ok(ticket)
            }
            Ok(Ended::Absent | Ended::Other) => {
                open.needs_no_undoing();
                Err(self.is_not_ours(lease))
            }
            // The lease has ended in this process, so its key is given back.
            Err(failure) => Err(failure.error),
        }
    }

    /// Gives the key to its first waiter if the ticket is not picked up. Other waiters ask by themselves until then.
    fn look_after_ticket(&self, lease: &ActiveLease, pick_up: Duration) {
        if pick_up >= LONGEST {
            return;
        }
        let leave = Operation::Leave(Release {
            in_background: true,
            ..lease.release()
        });
        let over = surely_over(pick_up);
        let (store, patience) = (Arc::clone(&self.store), self.operation_timeout);
        self.keeper.run(Box::pin(async move {
            sleep(over).await;
            let _ = timeout(patience, store.execute(leave, Lane::KEEPER)).await;
        }));
    }

    /// Ends the lease in this process. Returns its fencing token, and until when it would have lasted.
    ///
    /// # Errors
    ///
    /// `inside` while bodies or kept work run under the lease, which then goes on.
    pub(super) fn detach(
        self: &Arc<Self>,
        lease: &Arc<ActiveLease>,
        inside: &'static str,
    ) -> Result<(FencingToken, Moment), Error> {
        let (before, ends) = match lease.detach() {
            Detached::Inside => return Err(Error::invalid(inside)),
            Detached::From(phase, ends) => (phase, ends),
        };
        let fence = match (before, lease.fence()) {
            (Phase::Held, Some(fence)) => fence,
            (Phase::Lost(loss), _) => {
                self.queue.abandon(lease);
                return Err(lease.loss_error(loss));
            }
            _ => {
                return Err(Error::lost(
                    "the lock was released, or passed on by another ticket, before",
                ));
            }
        };
        self.keeper.disarm(lease);
        // The next task of this process asks the store, and does not step over the lease.
        self.queue.leave(lease, ReleaseState::Known);
        Ok((fence, ends))
    }

    /// Replaces a ticket by a lease of this process, and returns the lease.
    pub(crate) async fn resume(self: &Arc<Self>, ticket: &Ticket) -> Result<Acquired, Error> {
        self.check_swaps()?;
        if self.queue.is_draining() {
            return Err(Error::draining());
        }
        let AcquireRoute { lane, address } = self.store.acquire_route(self.tokens.manager());
        let sent = self.now();
        let token = self.tokens.fresh_at(address, sent);
        let options = LeaseOptions::new(ticket.ttl, true, None);
        let lease = ActiveLease::new(&ticket.key, token, options, self.timers.clock());
        let release = Release {
            token: ticket.token,
            fence: Some(ticket.fence),
            ..lease.release()
        };
        // No acquire has the token of a ticket, so a ticket that has ended stays away.
        let mut open = OpenSwap::new(self, release, (token, ticket.ttl), None, false);
        let swapping = self.queue.swaps_in(&lease);
        match open.answer(lane, Moment::FAR).await {
            Ok(Ended::Yes) if lease.grant(sent, ticket.fence) => {
                // Before the swap counts no more, because `drain` waits for the one or the other.
                let acquired = Acquired::FromSwap(Collected::of(self, &lease));
                open.needs_no_undoing();
                swapping.granted(&lease);
                self.keeper.arm(&lease);
                Ok(acquired)
            }
            Ok(Ended::Yes) => Err(Error::unavailable(
                "the store's answer came after the ttl had run out; the lock is given back",
            )),
            Ok(Ended::Absent | Ended::Other) => {
                open.needs_no_undoing();
                Err(Error::lost(
                    "the ticket was used before, or was not picked up in time; lock the key anew",
                ))
            }
            Err(failure) => {
                if !failure.ambiguous {
                    // Nothing was done, so the ticket is as good as before.
                    open.needs_no_undoing();
                }
                Err(failure.error)
            }
        }
    }

    fn check_swaps(&self) -> Result<(), Error> {
        match self.store.limits().swaps {
            true => Ok(()),
            false => Err(Error::invalid(SEVERAL_SERVERS)),
        }
    }
}

#[cfg(test)]
#[path = "tickets_tests.rs"]
mod tests;
