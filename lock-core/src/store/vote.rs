//! The questions of a quorum to its nodes. A node is an ordinary store that also keeps *registers*: see
//! [`quorum`](super::quorum).

use std::time::Duration;

use super::{AcquireCommand, Ended, Release};
use crate::base::clock::ServerTime;
use crate::base::token::Token;
use crate::lease::{Refusal, cohort};

/// How many fencing tokens before its number each grant takes. A lease that passes from task to task of its
/// process gives each task one of them without asking the nodes.
pub(crate) const BLOCK: u64 = cohort::MOST_IN_A_COUNT as u64;

/// The name of the owner of a key that several readers have, as in `share_set.lua`.
pub(crate) const SEVERAL_READERS: &str = "shared/lockkit";

/// Returns whether a node accepts a number for a lease. `register`: the highest number that the register has
/// accepted, and whether that was for this lease.
///
/// The number must be above all that the register has accepted, together with its block, or be the very
/// number that this lease has had accepted already. The script `propose.lua` has the same rule.
pub(crate) fn accepts(register: Option<(u64, bool)>, number: u64) -> bool {
    match register {
        None => true,
        Some((highest, own)) => number > highest + BLOCK || (own && number == highest),
    }
}

#[derive(Clone, Debug)]
pub(crate) enum VoteOperation {
    /// Registers the node, and asks for its name and whether it votes.
    Join(Join),
    /// Takes the key for the lease, and the number for its fencing tokens.
    Propose(Propose),
    /// Deletes the key if it is the lease's. No waiter gets it, because one node cannot know who holds a
    /// majority.
    /// `None`: withdraws any vote of the lease.
    Withdraw(Release, Withdrawal, Option<UpTo>),
    /// Raises the register to the proposed number, where the node has the key for the lock. Not for a reader: it uses the
    /// first token of its block only, and a register that found its number too low is not below that.
    Reserve(Propose),
}

impl VoteOperation {
    /// The operation's key; empty for a question about the node.
    #[cfg(feature = "redis")]
    pub(crate) fn key(&self) -> &str {
        match self {
            VoteOperation::Join(_) => "",
            VoteOperation::Propose(propose) | VoteOperation::Reserve(propose) => {
                &propose.acquire.key
            }
            VoteOperation::Withdraw(release, ..) => &release.key,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub(crate) welcome: Welcome,
    /// The names that the node had when it was looked at. One that has others now was started again, and is not
    /// [fresh](Welcome::Fresh).
    pub(crate) seen: Vec<String>,
    pub(crate) max_ttl: Duration,
    /// The name of a node that has none yet.
    pub(crate) name: Token,
}

/// Says how to treat a node without data, which may have forgotten locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Welcome {
    /// Leaves the node as it is.
    Look,
    /// The node votes when every lock that it may have forgotten has run out.
    Wait,
    /// The node votes at once.
    Fresh,
}

#[derive(Clone, Debug)]
pub(crate) struct Propose {
    pub(crate) acquire: AcquireCommand,
    /// The register that keeps the number.
    pub(crate) register: u16,
    pub(crate) number: u64,
    pub(crate) max_ttl: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withdrawal {
    /// The lease is over: the first waiter is notified.
    Over,
    /// As `Over`, and the notified waiter leaves the key to other clients for
    /// [`GAP`](crate::lease::cohort::GAP).
    Gap,
    /// The lease is over, and had only an entry in the queue.
    Leave,
    /// The same lease asks again soon.
    Pause,
}

/// The votes of a lease that have this number or a lower one.
///
/// A lease may ask again after a withdrawal, with the same token. A copy of the withdrawal that arrives later
/// then leaves the newer vote alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UpTo {
    pub(crate) register: u16,
    pub(crate) number: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum VoteOutcome {
    Joined(Joined),
    Voted {
        vote: Vote,
        /// It was sent more than once. A copy may arrive behind any later command.
        repeated: bool,
    },
    Withdrawn {
        released: Ended,
        /// Whether a waiter was notified.
        notified: bool,
        /// It was sent more than once. The unanswered copy may have found the key, or may still arrive and undo
        /// a newer vote of the lease on this node.
        repeated: bool,
    },
    /// Whether the lease has the key, so that the register has at least the number.
    Reserved(bool),
    /// The question was not sent.
    NotAsked,
}

impl VoteOutcome {
    pub(crate) fn voted(vote: Vote) -> Self {
        VoteOutcome::Voted {
            vote,
            repeated: false,
        }
    }

    pub(crate) fn withdrawn(released: Ended, notified: bool) -> Self {
        VoteOutcome::Withdrawn {
            released,
            notified,
            repeated: false,
        }
    }

    /// Returns whether the key is withdrawn and no copy of that can arrive later.
    pub(crate) fn is_withdrawn(&self) -> bool {
        matches!(self, VoteOutcome::Withdrawn { repeated, .. } if !repeated)
    }

    /// Marks the answer to the last of several sends.
    pub(crate) fn of_the_last_send(self) -> Self {
        match self {
            VoteOutcome::Voted { vote, .. } => VoteOutcome::Voted {
                vote,
                repeated: true,
            },
            VoteOutcome::Withdrawn { notified, .. } => VoteOutcome::Withdrawn {
                // The first copy may have found the key.
                released: Ended::Yes,
                notified,
                repeated: true,
            },
            other => other,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Joined {
    /// Names that no other server has.
    pub(crate) names: Vec<String>,
    /// The time until the node votes; `None`: it has no data and was left as it is.
    pub(crate) opens_in: Option<Duration>,
    pub(crate) time: ServerTime,
}

/// The answer of a node to a proposal.
#[derive(Clone, Debug)]
pub(crate) enum Vote {
    /// The key is the lease's on this node.
    Yes {
        /// Whether the number is accepted too, or is too low.
        accepted: bool,
        /// The highest number that the register holds now.
        highest: u64,
    },
    /// Another owner has the key.
    Taken {
        /// The value of the key: the token of a lock or of a lone reader, or [`SEVERAL_READERS`].
        owner: Box<str>,
        refusal: Refusal,
        highest: u64,
    },
    /// The key is free, and left to clients that have waited for it.
    Yields,
    /// The node came back without data, and does not vote for this long.
    Empty(Duration),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_must_be_above_all_that_a_register_has_seen_with_its_whole_block() {
        assert!(accepts(None, 1));
        assert!(accepts(Some((1_000, false)), 1_001 + BLOCK));
        assert!(
            !accepts(Some((1_000, false)), 1_000 + BLOCK),
            "its first token was another's last"
        );
        assert!(!accepts(Some((1_000, false)), 1_000));
        assert!(!accepts(Some((1_000, false)), 999));
    }

    #[test]
    fn the_same_lease_has_the_same_number_accepted_twice() {
        assert!(accepts(Some((1_000, true)), 1_000));
        assert!(!accepts(Some((1_000, true)), 1_001));
        assert!(!accepts(Some((1_000, true)), 999));
    }
}
