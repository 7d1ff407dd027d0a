//! On which nodes one lease stands, or may.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;

use crate::base::sync::lock;

/// Nodes, each by its place in the list.
pub(super) type Nodes = u32;

/// The one node at this place.
pub(super) fn only(node: usize) -> Nodes {
    1 << node
}

pub(super) fn contains(nodes: Nodes, node: usize) -> bool {
    nodes & only(node) != 0
}

#[derive(Debug, Default)]
pub(super) struct Spread {
    known: Mutex<Known>,
    /// Rung when a question is resolved.
    bell: Notify,
}

#[derive(Debug, Default)]
struct Known {
    /// Where it may stand: asked, and not known to be without it.
    touched: Nodes,
    /// Where it does, by the node's last word.
    granted: Nodes,
    /// Where a question, or its undoing, has not been answered. Such a node is not asked again for the
    /// lease: what arrives late would undo the newer vote.
    unresolved: Nodes,
    /// Where it is a question, and somebody hears the answer: whoever does sees to what comes of it. The
    /// undoing of an earlier vote, sent beside it, could arrive behind the next one.
    asked: Nodes,
    /// Where one will never be answered, and may have arrived all the same; or was sent twice, and one of the two may
    /// arrive later.
    doubtful: Nodes,
    /// Where its end has been sent behind the only question that was ever asked, and not been answered.
    ending: Nodes,
    /// Where that has found it.
    found: Nodes,
    /// Where the question was answered first.
    late: Nodes,
    /// The highest number that was proposed for it.
    proposed: u64,
    /// The highest number that a majority has accepted for it.
    number: Option<u64>,
    over: bool,
    /// For good: it does not ask again, nor wait.
    ended: bool,
}

/// What becomes of a vote for the lease that comes when it is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    Counts,
    /// Nobody wants it any more, and it is given back already, or will be.
    GivenBack,
    /// Nobody wants it any more: it is to be given back.
    Unwanted,
}

impl Spread {
    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }

    pub(super) fn begin(&self) {
        self.known().over = false;
    }

    pub(super) fn pause(&self) {
        self.known().over = true;
    }

    pub(super) fn end(&self) {
        let mut known = self.known();
        known.over = true;
        known.ended = true;
    }

    /// The right to ask the node for it, unless somebody has it: it is resolved, or undone.
    #[must_use]
    pub(super) fn claim(&self, node: usize) -> bool {
        let mut known = self.known();
        let claimed = !contains(known.unresolved, node);
        if claimed {
            known.asked |= only(node);
            known.unresolved |= only(node);
            known.touched |= only(node);
        }
        claimed
    }

    /// The right to ask a node for it once more that is without it, while it is wanted.
    #[must_use]
    pub(super) fn claim_again(&self, node: usize) -> bool {
        let mut known = self.known();
        let claimed = !known.over && !contains(known.unresolved | known.granted, node);
        if claimed {
            known.asked |= only(node);
            known.unresolved |= only(node);
            known.touched |= only(node);
        }
        claimed
    }

    /// The nodes are about to be asked with this number.
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

    /// The node has it. `false`: nobody wants it any more.
    #[must_use]
    pub(super) fn stands(&self, node: usize) -> bool {
        let mut known = self.known();
        known.granted |= only(node);
        !known.over
    }

    /// The node has agreed when it was decided. `repeated`: it was asked more than once.
    #[must_use]
    pub(super) fn agrees_late(&self, node: usize, repeated: bool) -> Late {
        let mut known = self.known();
        if !known.over {
            known.granted |= only(node);
            return Late::Counts;
        }
        // What was asked twice may arrive once more, behind what found it.
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

    /// Its end is about to be sent to the node. If there was one question only, and that has not been
    /// answered yet, whoever finds the lease there finds all of it.
    pub(super) fn ends_at(&self, node: usize) {
        let mut known = self.known();
        if !contains(known.granted | known.doubtful, node) {
            known.ending |= only(node);
        }
    }

    /// The node has answered to that. `false`: it has not found what the node agreed to meanwhile.
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

    /// The node does not have it, by its last word. It may have it later, where a question may still arrive.
    pub(super) fn is_without(&self, node: usize) {
        let mut known = self.known();
        known.granted &= !only(node);
        if !contains(known.doubtful, node) {
            known.touched &= !only(node);
        }
    }

    /// Whatever of it the node has, or is still to have, is taken back.
    pub(super) fn is_taken_back(&self, node: usize) {
        let mut known = self.known();
        known.granted &= !only(node);
        known.touched &= !only(node);
        known.unresolved |= only(node);
    }

    /// The node was not heard of when the lease was renewed: it may have it, and need not have it for long.
    pub(super) fn is_unheard(&self, node: usize) {
        self.known().granted &= !only(node);
    }

    /// Nothing of it is on its way to the node.
    pub(super) fn resolved(&self, node: usize) {
        let mut known = self.known();
        known.unresolved &= !only(node);
        known.asked &= !only(node);
        drop(known);
        self.bell.notify_waiters();
    }

    /// Resolves when the node may be asked, or nobody wants the lease any more: `false`.
    pub(super) async fn claimed(&self, node: usize) -> bool {
        loop {
            let mut bell = pin!(self.bell.notified());
            bell.as_mut().enable();
            if self.is_over() {
                return false;
            }
            if self.claim(node) {
                return true;
            }
            bell.await;
        }
    }

    pub(super) fn unresolved(&self, node: usize) {
        self.known().unresolved |= only(node);
    }

    /// There will be no answer. `false`: nobody wants it any more.
    #[must_use]
    pub(super) fn doubt(&self, node: usize) -> bool {
        let mut known = self.known();
        known.doubtful |= only(node);
        known.asked &= !only(node);
        !known.over
    }

    /// A question that was answered was sent twice.
    pub(super) fn may_come_again(&self, node: usize) {
        self.known().doubtful |= only(node);
    }

    pub(super) fn is_doubtful(&self, node: usize) -> bool {
        contains(self.known().doubtful, node)
    }

    /// Of an attempt that came to nothing: where a vote stands, and no question is out.
    pub(super) fn to_undo(&self) -> Nodes {
        let known = self.known();
        known.granted & !known.asked
    }

    /// Where it may stand for want of an answer that nobody waits for any more.
    pub(super) fn left_in_doubt(&self) -> Nodes {
        let known = self.known();
        known.touched & known.doubtful & !known.asked
    }

    pub(super) fn may_ask(&self, node: usize) -> bool {
        !contains(self.known().unresolved, node)
    }

    /// Where a vote is still to be taken back, if there is one.
    pub(super) fn being_undone(&self) -> Nodes {
        let known = self.known();
        known.unresolved & !known.touched
    }

    pub(super) fn is_resolved(&self) -> bool {
        self.known().unresolved == 0
    }

    pub(super) fn touched(&self) -> Nodes {
        self.known().touched
    }

    pub(super) fn granted(&self) -> Nodes {
        self.known().granted
    }

    pub(super) fn has_ended(&self) -> bool {
        self.known().ended
    }

    pub(super) fn is_over(&self) -> bool {
        self.known().over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One question to node 0, unanswered when the lease ends.
    fn ending() -> Spread {
        let spread = Spread::default();
        assert!(spread.claim(0));
        spread.end();
        spread.ends_at(0);
        spread
    }

    #[test]
    fn a_late_vote_is_left_to_the_end_that_was_sent_behind_it() {
        let spread = ending();
        assert_eq!(spread.agrees_late(0, false), Late::GivenBack);
        assert!(spread.has_ended_at(0, true));
        // Or the answers are heard the other way round.
        let spread = ending();
        assert!(spread.has_ended_at(0, true));
        assert_eq!(spread.agrees_late(0, false), Late::GivenBack);
    }

    #[test]
    fn a_late_vote_that_the_end_did_not_find_is_undone() {
        let spread = ending();
        assert_eq!(spread.agrees_late(0, false), Late::GivenBack);
        assert!(!spread.has_ended_at(0, false), "it came before the vote");
        let spread = ending();
        assert!(spread.has_ended_at(0, false), "there is nothing yet");
        assert_eq!(spread.agrees_late(0, false), Late::Unwanted);
    }

    #[test]
    fn a_late_vote_to_what_was_asked_twice_is_undone() {
        let spread = ending();
        assert!(spread.has_ended_at(0, true));
        assert_eq!(spread.agrees_late(0, true), Late::Unwanted);
    }

    #[test]
    fn what_an_end_finds_of_an_earlier_vote_says_nothing_of_a_later_one() {
        let spread = Spread::default();
        assert!(spread.claim(0) && spread.stands(0));
        spread.resolved(0);
        assert!(spread.claim(0));
        spread.end();
        spread.ends_at(0);
        assert!(spread.has_ended_at(0, true));
        assert_eq!(spread.agrees_late(0, false), Late::Unwanted);
    }

    #[test]
    fn a_node_is_asked_again_for_what_it_does_not_have_and_somebody_wants() {
        let spread = Spread::default();
        assert!(spread.claim_again(0));
        assert!(!spread.claim_again(0), "one question at a time");
        assert!(spread.stands(0));
        spread.resolved(0);
        assert!(!spread.claim_again(0), "it has it");
        spread.is_without(0);
        assert!(spread.claim_again(0));
        spread.end();
        assert!(!spread.claim_again(1));
    }

    #[test]
    fn a_vote_is_not_undone_beside_a_question() {
        let spread = Spread::default();
        assert!(spread.claim(0) && spread.stands(0));
        spread.resolved(0);
        assert_eq!(spread.to_undo(), only(0));
        assert!(spread.claim(0), "for a higher number");
        assert_eq!(spread.to_undo(), 0);
        assert!(spread.doubt(0), "nobody will hear of it");
        assert_eq!(
            (spread.to_undo(), spread.left_in_doubt()),
            (only(0), only(0))
        );
    }

    #[test]
    fn a_late_vote_counts_for_a_lease_that_is_wanted() {
        let spread = Spread::default();
        assert!(spread.claim(0));
        assert_eq!(spread.agrees_late(0, true), Late::Counts);
        assert_eq!(spread.granted(), only(0));
    }
}
