//! Having nodes that are without a lease take it, while it is held.
//!
//! A node that was out when the lock was taken, or has forgotten it since, is one less of those that
//! may be missed. A renewal finds that out, and proposes the lease to the node like any other vote: the
//! key must be free there, the node must be one that votes, and what comes late is undone. It takes
//! nothing from anybody: whoever else wants the lock cannot have it before this lease has ended.

use std::sync::Arc;

use super::Quorum;
use super::fan_out::FanOut;
use super::late_votes::LateVotes;
use super::node::Node;
use super::proposal_number;
use super::undo::Undoing;
use super::vote_ledger::Spread;
use crate::store::vote::{Propose, Reserve, Vote, VoteOperation, VoteOutcome};
use crate::store::{Acquire, Extension, Lane, Operation, Outcome, Queueing};

/// How many leases at once: a node that has lost all of them has them again some renewals later.
pub(super) const AT_ONCE: usize = 32;

impl Quorum {
    /// Proposes a lease that is held to a node that does not have it.
    pub(super) fn rejoin(
        self: &Arc<Self>,
        place: usize,
        extension: &Extension,
        spread: &Arc<Spread>,
        lane: Lane,
    ) {
        let node = &self.nodes[place];
        let Some(number) = spread.number() else {
            return;
        };
        if !node.is_up() || !node.votes() || !spread.claim_again(place) {
            return;
        }
        let propose = Propose {
            acquire: Acquire {
                key: Arc::clone(&extension.key),
                token: extension.token,
                ttl: extension.ttl,
                queueing: Queueing::Never,
                replaces: None,
                repeated: false,
            },
            register: proposal_number::register_of(&extension.key),
            number,
            max_ttl: self.settings.max_ttl,
        };
        let asked = [(place, propose_whole(Arc::clone(node), propose, lane))];
        let asked = asked.map(|(place, asked)| (place, Box::pin(asked) as _));
        let undoing = Undoing::of(extension, spread, lane);
        let now = self.timers.now();
        let votes = LateVotes::new(self, undoing, FanOut::new(asked), now);
        self.leave_behind(votes.come());
    }
}

/// Sees to it that the node's register knows the lease's number, if it is too low for the usual way: a
/// majority has accepted it before.
async fn propose_whole(node: Arc<Node>, propose: Propose, lane: Lane) -> Outcome {
    let reserve = Reserve {
        key: Arc::clone(&propose.acquire.key),
        token: propose.acquire.token,
        register: propose.register,
        number: propose.number,
    };
    let propose = VoteOperation::Propose(propose);
    let vote = node.ask(Operation::Vote(propose), lane).await;
    if let Outcome::Vote(VoteOutcome::Voted {
        vote: Vote::Yes {
            accepted: false, ..
        },
        ..
    }) = &vote
    {
        let reserve = VoteOperation::Reserve(reserve);
        // Without an answer the majority still knows it.
        let _reserved = node.ask(Operation::Vote(reserve), lane).await;
    }
    vote
}
