//! The ledger of one lease: on which nodes it stands, or may stand.
//!
//! A node gets one question at a time for one lease. A late vote is undone, and undoing an old vote would
//! delete a newer vote of the same lease. So a lease that asks again waits for the answer, or the undoing, of
//! its earlier question to that node. A release that a silent node should get is kept as a hint. A vote that is
//! to be undone renews nothing, because it may be deleted right after. (The model of the quorum found both
//! cases, and that of an undoing that was sent twice.)

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

use crate::base::sync::lock;

/// A set of nodes, with one bit for each index in the list.
pub(super) type NodeSet = u32;

/// The set with this one node.
pub(super) fn only(node: usize) -> NodeSet {
    1 << node
}

pub(super) fn contains(nodes: NodeSet, node: usize) -> bool {
    nodes & only(node) != 0
}

#[derive(Debug, Default)]
pub(super) struct VoteLedger {
    known: Mutex<Entries>,
    /// Notified when a question is resolved, or the lease is over.
    bell: Notify,
}

#[derive(Debug, Default)]
struct Entries {
    /// Where the lease may stand: the node was asked, and is not known to be without it.
    touched: NodeSet,
    /// Where the lease stands, by the node's last answer.
    granted: NodeSet,
    /// Where a question, or its undoing, has not been answered. Such a node is not asked again for the lease,
    /// because a late answer would undo the newer vote.
    unresolved: NodeSet,
    /// Where a question, or its withdrawal, is open and a task waits for its answer. That task handles the answer. Undoing
    /// an earlier vote beside the question could arrive behind the next vote.
    asked: NodeSet,
    /// In whose queue the lease may have an entry.
    queued: NodeSet,
    /// Where a question will never be answered but may have arrived, or was sent twice, so that a copy may
    /// arrive later.
    doubtful: NodeSet,
    /// Where a hint withdraws the vote, which takes seconds where a command may arrive late.
    hinted: NodeSet,
    /// Where a question was sent to a node that may have had the lease by an earlier one.
    again: NodeSet,
    /// Where the release was sent behind the only question that was ever sent, and has not been answered.
    ending: NodeSet,
    /// Where that release has found the lease.
    found: NodeSet,
    /// Where the question was answered before the release.
    late: NodeSet,
    /// The highest number that was proposed for the lease.
    proposed: u64,
    /// The highest number that a majority has accepted for the lease.
    number: Option<u64>,
    over: bool,
    /// Whether the lease has ended for good: it neither asks again nor waits.
    ended: bool,
}

impl Entries {
    fn claim(&mut self, node: usize) -> bool {
        let claimed = !contains(self.unresolved, node);
        if claimed {
            self.again |= self.touched & only(node);
            self.asked |= only(node);
            self.unresolved |= only(node);
            self.touched |= only(node);
        }
        claimed
    }

    fn is_without(&mut self, node: usize) {
        self.granted &= !only(node);
        if !contains(self.doubtful, node) {
            self.touched &= !only(node);
        }
    }
}

/// The fate of a vote that arrives after the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    Counts,
    /// The lease is over, and the vote has been withdrawn, or will be.
    GivenBack,
    /// The lease is over: withdraw the vote.
    Unwanted,
}

impl VoteLedger {
    fn known(&self) -> MutexGuard<'_, Entries> {
        lock(&self.known)
    }

    /// Makes the ledger of a lease whose votes are forgotten: it may stand on every node.
    pub(super) fn forgotten(nodes: usize) -> Arc<Self> {
        let ledger = Self::default();
        ledger.known().touched = (0..nodes).fold(0, |all, node| all | only(node));
        ledger.end();
        Arc::new(ledger)
    }

    pub(super) fn begin(&self) {
        self.known().over = false;
    }

    pub(super) fn pause(&self) {
        self.known().over = true;
        self.bell.notify_waiters();
    }

    pub(super) fn end(&self) {
        let mut known = self.known();
        known.over = true;
        known.ended = true;
        drop(known);
        self.bell.notify_waiters();
    }

    /// Claims the right to ask the node for the lease, until the question is resolved or undone. `false`: a
    /// question is open.
    #[must_use]
    pub(super) fn claim(&self, node: usize) -> bool {
        self.known().claim(node)
    }

    /// Claims the right to ask a node once more that is without the lease, while the lease is wanted.
    #[must_use]
    pub(super) fn claim_again(&self, node: usize) -> bool {
        let mut known = self.known();
        !known.over && !contains(known.granted, node) && known.claim(node)
    }

    /// Notes the number of the next questions.
    pub(super) fn proposes(&self, number: u64) {
        let mut known = self.known();
        known.proposed = known.proposed.max(number);
    }

    pub(super) fn proposed(&self) -> u64 {
        self.known().proposed
    }

    pub(super) fn note_number(&self, number: u64) {
        let mut known = self.known();
        known.number = known.number.max(Some(number));
    }

    pub(super) fn number(&self) -> Option<u64> {
        self.known().number
    }

    /// Notes that the node has the lease. `false`: the lease is over.
    #[must_use]
    pub(super) fn stands(&self, node: usize) -> bool {
        let mut known = self.known();
        known.granted |= only(node);
        !known.over
    }

    /// Notes a vote that arrived after the decision. `repeated`: the question was sent more than once.
    #[must_use]
    pub(super) fn agrees_late(&self, node: usize, repeated: bool) -> Late {
        let mut known = self.known();
        if !known.over {
            known.granted |= only(node);
            return Late::Counts;
        }
        // A copy of the question may arrive behind the release that found the first one.
        if repeated {
            return Late::Unwanted;
        }
        if contains(known.ending, node) {
            known.late |= only(node);
            return Late::GivenBack;
        }
        if contains(known.found, node) {
            return Late::GivenBack;
        }
        Late::Unwanted
    }

    /// Notes that the release is about to be sent to the node. If the node got one question only, and has not
    /// answered it yet, a release that finds the lease finds all of it.
    pub(super) fn ends_at(&self, node: usize) {
        let mut known = self.known();
        if !contains(known.granted | known.doubtful | known.again, node) {
            known.ending |= only(node);
        }
    }

    /// Notes the answer to the release. `false`: it has not found the vote that the node gave meanwhile.
    #[must_use]
    pub(super) fn has_ended_at(&self, node: usize, found: bool) -> bool {
        let mut known = self.known();
        let ending = contains(known.ending, node);
        known.ending &= !only(node);
        if ending && found {
            known.found |= only(node);
        }
        found || !contains(known.late, node)
    }

    /// Notes that the node does not have the lease, by its last answer. It may have it later, where a question
    /// may still arrive.
    pub(super) fn is_without(&self, node: usize) {
        self.known().is_without(node);
    }

    /// Notes that a renewal has not found the lease on the node. `stood`: where the lease stood when the renewal was sent.
    /// The vote itself may still be on its way, or may have arrived behind the renewal and be noted before its answer.
    pub(super) fn is_not_found(&self, node: usize, stood: NodeSet) {
        let mut known = self.known();
        if !contains(known.unresolved | (known.granted & !stood), node) {
            known.is_without(node);
        }
    }

    /// Notes that the lease stands in the node's queue, until it is withdrawn there.
    pub(super) fn is_queued(&self, node: usize) {
        self.known().queued |= only(node);
    }

    /// In whose queue the lease may have an entry.
    pub(super) fn queued(&self) -> NodeSet {
        self.known().queued
    }

    /// Notes that every present or future vote of the lease on the node is being withdrawn, and its entry in the queue.
    pub(super) fn is_taken_back(&self, node: usize) {
        let mut known = self.known();
        known.granted &= !only(node);
        known.touched &= !only(node);
        known.queued &= !only(node);
        known.unresolved |= only(node);
    }

    /// Notes that the withdrawal is left to a hint.
    pub(super) fn is_hinted(&self, node: usize) {
        self.known().hinted |= only(node);
    }

    /// Notes that the node has not answered a renewal, or too late. It may have the lease for a while.
    pub(super) fn is_unheard(&self, node: usize) {
        self.known().granted &= !only(node);
    }

    /// Notes that no command of the lease is on its way to the node.
    pub(super) fn resolved(&self, node: usize) {
        let mut known = self.known();
        known.unresolved &= !only(node);
        known.asked &= !only(node);
        known.hinted &= !only(node);
        drop(known);
        self.bell.notify_waiters();
    }

    /// Waits until the node may be asked with this number. `false`: the lease is over, or has proposed a higher number since.
    /// If the node took the lower one behind the higher one, the withdrawal of that vote would leave it alone as a newer one.
    pub(super) async fn claimed(&self, node: usize, number: u64) -> bool {
        loop {
            let mut bell = pin!(self.bell.notified());
            bell.as_mut().enable();
            {
                let mut known = self.known();
                if known.over || known.proposed > number {
                    return false;
                }
                if known.claim(node) {
                    return true;
                }
            }
            bell.await;
        }
    }

    pub(super) fn unresolved(&self, node: usize) {
        self.known().unresolved |= only(node);
    }

    /// Notes that there will be no answer. `false`: the lease is over.
    #[must_use]
    pub(super) fn doubt(&self, node: usize) -> bool {
        let mut known = self.known();
        known.doubtful |= only(node);
        known.asked &= !only(node);
        !known.over
    }

    /// Notes that an answered question was sent twice.
    pub(super) fn may_come_again(&self, node: usize) {
        self.known().doubtful |= only(node);
    }

    /// Whether a question or its withdrawal may arrive later at a node, which is not asked for the lease before that.
    pub(super) fn may_come_late(&self) -> bool {
        let known = self.known();
        (known.doubtful | known.hinted) & known.unresolved != 0
    }

    pub(super) fn is_doubtful(&self, node: usize) -> bool {
        contains(self.known().doubtful, node)
    }

    /// After a failed attempt: where a vote stands and no question is open.
    pub(super) fn to_undo(&self) -> NodeSet {
        let known = self.known();
        known.granted & !known.asked
    }

    /// Where the lease may stand because of an open question whose answer no task awaits.
    pub(super) fn left_in_doubt(&self) -> NodeSet {
        let known = self.known();
        known.touched & known.doubtful & !known.asked
    }

    pub(super) fn may_ask(&self, node: usize) -> bool {
        !contains(self.known().unresolved, node)
    }

    /// Where a vote, if there is one, is being withdrawn.
    pub(super) fn being_undone(&self) -> NodeSet {
        let known = self.known();
        known.unresolved & !known.touched
    }

    /// Returns whether nothing of the lease is under way, and it stands in no queue.
    pub(super) fn leaves_nothing(&self) -> bool {
        let known = self.known();
        known.unresolved | known.queued == 0
    }

    /// Where the lease may stand, or its entry in the queue.
    pub(super) fn touched(&self) -> NodeSet {
        let known = self.known();
        known.touched | known.queued
    }

    pub(super) fn granted(&self) -> NodeSet {
        self.known().granted
    }

    /// Where the lease stands, and no question is open.
    pub(super) fn stands_quietly(&self) -> NodeSet {
        let known = self.known();
        known.granted & !known.unresolved
    }

    pub(super) fn has_ended(&self) -> bool {
        self.known().ended
    }

    pub(super) fn is_over(&self) -> bool {
        self.known().over
    }
}

#[cfg(test)]
#[path = "vote_ledger_tests.rs"]
mod tests;
