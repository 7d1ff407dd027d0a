//! The votes of this process that are on their way out: their lease is over, and a node is still to answer for them.
//!
//! A release counts when a majority has confirmed it. On another node the vote may stand for a moment longer, because it
//! arrived behind the release. Two such leases on two nodes would refuse the next request of the same process, although
//! nobody has the lock. So a request with `Wait::None` waits until the nodes have removed these votes, and asks the nodes once
//! more.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::tally::Ballot;
use super::vote_ledger::{NodeSet, VoteLedger, contains, only};
use crate::base::sync::lock;
use crate::store::vote::Vote;

#[derive(Debug, Default)]
pub(super) struct Departing {
    by_key: Mutex<HashMap<Arc<str>, Vec<Arc<Votes>>>>,
    /// Notified when a node has answered for a vote.
    bell: Notify,
}

/// Votes of one lease.
#[derive(Debug)]
struct Votes {
    ledger: Arc<VoteLedger>,
    /// The nodes that are still to answer.
    open: AtomicU32,
}

/// Counts votes of a lease as departing until it is dropped, while the lease is over.
#[derive(Debug)]
pub(super) struct Departure {
    all: Arc<Departing>,
    key: Arc<str>,
    votes: Arc<Votes>,
}

impl Departing {
    pub(super) fn begins(
        self: &Arc<Self>,
        key: &Arc<str>,
        ledger: &Arc<VoteLedger>,
        places: impl IntoIterator<Item = usize>,
    ) -> Departure {
        let open = places.into_iter().fold(0, |all, place| all | only(place));
        let votes = Arc::new(Votes {
            ledger: Arc::clone(ledger),
            open: AtomicU32::new(open),
        });
        let mut by_key = lock(&self.by_key);
        let of_key = by_key.entry(Arc::clone(key)).or_default();
        of_key.push(Arc::clone(&votes));
        Departure {
            all: Arc::clone(self),
            key: Arc::clone(key),
            votes,
        }
    }

    /// The votes that may have caused these refusals.
    pub(super) fn behind(self: &Arc<Self>, key: &str, ballots: &[Ballot]) -> InTheWay {
        let taken = |(place, ballot): (usize, &Ballot)| match ballot {
            Ballot::Answered(Vote::Taken { .. }) => only(place),
            _ => 0,
        };
        let ballots = ballots.iter().enumerate();
        let refusing = ballots.map(taken).fold(0, |all, one| all | one);
        let by_key = lock(&self.by_key);
        let votes = by_key.get(key).into_iter().flatten();
        InTheWay {
            votes: votes
                .filter(|votes| votes.is_at(refusing))
                .cloned()
                .collect(),
            refusing,
            all: Arc::clone(self),
        }
    }
}

impl Votes {
    fn is_at(&self, places: NodeSet) -> bool {
        self.ledger.is_over() && self.open.load(Ordering::Relaxed) & places != 0
    }
}

impl Departure {
    pub(super) fn answered(&self, place: usize) {
        let open = self.votes.open.fetch_and(!only(place), Ordering::Relaxed);
        if contains(open, place) {
            self.all.bell.notify_waiters();
        }
    }
}

impl Drop for Departure {
    fn drop(&mut self) {
        let mut by_key = lock(&self.all.by_key);
        if let Some(of_key) = by_key.get_mut(&self.key) {
            of_key.retain(|votes| !Arc::ptr_eq(votes, &self.votes));
            if of_key.is_empty() {
                by_key.remove(&self.key);
            }
        }
        drop(by_key);
        self.votes.open.store(0, Ordering::Relaxed);
        self.all.bell.notify_waiters();
    }
}

/// Departing votes on nodes that have refused a request.
pub(super) struct InTheWay {
    all: Arc<Departing>,
    votes: Vec<Arc<Votes>>,
    refusing: NodeSet,
}

impl InTheWay {
    pub(super) fn is_empty(&self) -> bool {
        self.votes.is_empty()
    }

    /// Waits until none of them is left.
    pub(super) async fn gone(&self) {
        loop {
            let mut bell = pin!(self.all.bell.notified());
            bell.as_mut().enable();
            if !self.votes.iter().any(|votes| votes.is_at(self.refusing)) {
                return;
            }
            bell.await;
        }
    }
}

#[cfg(all(test, feature = "test-util"))]
#[path = "departing_tests.rs"]
mod tests;
