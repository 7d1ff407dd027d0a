//! Reports of the store, the keeper and the queue.
//!
//! # Why a deleted key reaches its waiters
//!
//! The owner of a key that was deleted by hand notices at its next renewal, and hands the free key to the
//! first waiter. If the owner is dead, or the queue alone was deleted, no client can know; the waiters ask
//! when the lease would have ended, at the latest after 30 s. A `FLUSHALL` is different: the server tells it
//! to each client that has turned on tracking. Owners then ask about their leases at once, and waiters a
//! second later, so that no owner still believes in a lock that a waiter gets. In a cluster the manager
//! listens to one node only.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Engine;
use crate::active::ActiveLease;
use crate::base::holder_token::HolderToken;
use crate::keeper::LeaseListener;
use crate::lease::{Loss, Phase};
use crate::queue::LeaseReturns;
use crate::store::{Event, Lane, News};

/// The head start of the owners after a loss of all data.
const OWNERS_FIRST: Duration = Duration::from_secs(1);

impl Engine {
    pub(super) fn hear(self: &Arc<Self>, event: Event) {
        match event {
            Event::News {
                key,
                token,
                grant,
                news,
            } => {
                // A waiter that is gone in the meantime must not keep the others waiting.
                if !self.queue.tell(&key, token, news) {
                    let given = matches!(news, News::Given(_));
                    self.give_back_for(key, token, grant, given);
                }
            }
            Event::Interrupted => self.queue.tell_all(News::Ask),
            Event::Changed(key) => {
                for lease in self.queue.held_at(&key) {
                    lease.hint();
                    self.keeper.arm(&lease);
                }
            }
            Event::Unwatched => {
                for lease in self.queue.held() {
                    lease.watch_again();
                    self.keeper.arm(&lease);
                }
            }
            Event::Flushed => {
                for lease in self.queue.held() {
                    lease.renew_now();
                    self.keeper.arm(&lease);
                }
                self.queue.tell_all(News::Next(OWNERS_FIRST));
            }
            Event::Forced { key, holder } => self.is_forced(&key, &holder),
            Event::Asked(question) => self.answer(question),
            Event::Answered { number, held } => self.inquiries.answered(number, held),
        }
    }
}

impl Engine {
    /// Ends a lease whose key an operator has freed. The key may be another owner's soon, so the lease is not renewed
    /// first to find out.
    fn is_forced(self: &Arc<Self>, key: &Arc<str>, holder: &HolderToken) {
        if let Some(lease) = self.queue.force(key, holder)
            && lease.force()
        {
            self.has_lost(&lease);
        }
    }

    /// Lets other tasks have the key of a lease that is lost, and loses the other keys of its lock.
    fn has_lost(self: &Arc<Self>, lease: &Arc<ActiveLease>) {
        self.queue.abandon(lease);
        self.lose_others(lease);
    }
}

impl LeaseListener for Weak<Engine> {
    fn lost(&self, lease: &Arc<ActiveLease>) {
        let Some(engine) = self.upgrade() else {
            return;
        };
        engine.has_lost(lease);
        if lease.noticed_phase() == Phase::Lost(Loss::NotOurs) {
            engine.leave_a_deleted_key(lease);
        }
    }

    fn overdue(&self, lease: &Arc<ActiveLease>) {
        if let Some(engine) = self.upgrade() {
            engine.queue.question_is_overdue(lease);
        }
    }
}

impl LeaseReturns for Weak<Engine> {
    fn undo(&self, lease: &Arc<ActiveLease>, lane: Lane, in_flight: bool) {
        if let Some(engine) = self.upgrade() {
            engine.close(lease);
            engine.undo(lease, lane, in_flight);
        }
    }

    fn give_back(&self, lease: &Arc<ActiveLease>) {
        if let Some(engine) = self.upgrade() {
            engine.end_in_background(lease);
        }
    }
}
