//! Proposing a held lease to nodes that are without it.
//!
//! A node that was out when the lock was taken, or has forgotten it since, is one node less that may fail.
//! Without this, every restart would cost one, until none is left. A renewal finds such a node and proposes the
//! lease to it as a first vote: the key must be free there, the node must vote, and a late vote is undone. No
//! other client loses anything, because none can have a majority before this lease has ended.

use std::sync::Arc;

use super::Quorum;
use super::fan_out::FanOut;
use super::late_votes::LateVotes;
use super::node::Node;
use super::proposal_number;
use super::undo::Undoing;
use super::vote_ledger::VoteLedger;
use crate::store::vote::{Propose, Vote, VoteOperation, VoteOutcome};
use crate::store::{BoxFuture, Extension, Lane, Operation, Outcome};

/// How many leases one renewal proposes. A node that has lost all of them has them back some renewals later.
pub(super) const AT_ONCE: usize = 32;

impl Quorum {
    /// Proposes a held lease to a node that does not have it.
    pub(super) fn rejoin(
        self: &Arc<Self>,
        place: usize,
        extension: &Extension,
        ledger: &Arc<VoteLedger>,
        lane: Lane,
    ) {
        let node = &self.nodes[place];
        let Some(number) = ledger.number() else {
            return;
        };
        if !node.is_up() || !node.votes() || !ledger.claim_again(place) {
            return;
        }
        let acquire = extension.acquire();
        let undoing = Undoing::new(&acquire, ledger, lane);
        let propose = Propose {
            acquire,
            register: proposal_number::register_of(&extension.key),
            number,
            max_ttl: self.settings.max_ttl,
        };
        let asked: BoxFuture<'static, _> = Box::pin(propose_whole(Arc::clone(node), propose, lane));
        let asked = FanOut::new([(place, asked)]);
        let votes = LateVotes::new(self, undoing, asked, self.timers.now());
        self.leave_behind(votes.come());
    }
}

/// Proposes, and raises the node's register where the number is too low for it. A majority has accepted the
/// number before.
async fn propose_whole(node: Arc<Node>, propose: Propose, lane: Lane) -> Outcome {
    let reserve = VoteOperation::Reserve(propose.clone());
    let propose = VoteOperation::Propose(propose);
    let vote = node.ask(Operation::Vote(propose), lane).await;
    if let Outcome::Vote(VoteOutcome::Voted {
        vote: Vote::Yes {
            accepted: false, ..
        },
        ..
    }) = &vote
    {
        // Without an answer the majority still has the number.
        let _reserved = node.ask(Operation::Vote(reserve), lane).await;
    }
    vote
}
