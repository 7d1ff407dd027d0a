//! What a quorum asks its nodes. A node is an ordinary store that also keeps *registers*: see
//! [`quorum`](super::quorum).

use std::sync::Arc;
use std::time::Duration;

use super::{Acquire, Release, Released};
use crate::base::clock::ServerTime;
use crate::base::token::Token;
use crate::lease::{Refusal, cohort};

/// How many fencing tokens before its number each grant takes. A lease that passes from task to task of its
/// process gives each task one of them without asking the nodes.
pub(crate) const BLOCK: u64 = cohort::MOST as u64;

/// Whether a node accepts a number for a lease. `register`: the highest number that the register has
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
    /// Who is this, and may it vote?
    Join(Join),
    /// Takes the key for the lease, and the number for its fencing tokens.
    Propose(Propose),
    /// Gives the key back, if it is the lease's. No waiter is given it: a node alone cannot say whose it is.
    /// `None`: whichever vote of the lease it finds.
    Withdraw(Release, Withdrawal, Option<UpTo>),
    /// Sets more fencing tokens aside, and says whether anybody stands in the queue of waiters.
    Reserve(Reserve),
}

impl VoteOperation {
    /// The key that it is about; nothing, where it is about the node.
    #[cfg(feature = "redis")]
    pub(crate) fn key(&self) -> &str {
        match self {
            VoteOperation::Join(_) => "",
            VoteOperation::Propose(propose) => &propose.acquire.key,
            VoteOperation::Withdraw(release, ..) => &release.key,
            VoteOperation::Reserve(reserve) => &reserve.key,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub(crate) welcome: Welcome,
    pub(crate) max_ttl: Duration,
    /// What the node is called from now on, if it has no name yet.
    pub(crate) name: Token,
}

/// What becomes of a node that has no data. It may have had some, and have forgotten locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Welcome {
    /// Nothing: it is only looked at.
    Look,
    /// It votes when every lock that it may have forgotten has run out.
    Wait,
    /// It votes at once.
    Fresh,
}

#[derive(Clone, Debug)]
pub(crate) struct Propose {
    pub(crate) acquire: Acquire,
    /// In which register the number is kept.
    pub(crate) register: u16,
    pub(crate) number: u64,
    pub(crate) max_ttl: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withdrawal {
    /// It is over: whoever waits is told.
    Over,
    /// As `Over`, and whoever waits is told to leave the key to others for [`GAP`](crate::lease::cohort::GAP).
    Gap,
    /// It is over, and was never more than a place in the queue.
    Leave,
    /// The same lease asks again soon.
    Pause,
}

/// The votes of a lease that have this number or a lower one. The lease may ask again after a withdrawal, with the
/// same token: a copy of the withdrawal that arrives then leaves the newer vote alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UpTo {
    pub(crate) register: u16,
    pub(crate) number: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Reserve {
    pub(crate) key: Arc<str>,
    pub(crate) token: Token,
    pub(crate) register: u16,
    pub(crate) number: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum VoteOutcome {
    Joined(Joined),
    Voted {
        vote: Vote,
        /// It was sent more than once: another one of it may come after whatever was sent since.
        repeated: bool,
    },
    Withdrawn {
        released: Released,
        /// Somebody who waited was told.
        told: bool,
        /// It was sent more than once: the one that was not answered may have found the key. Or it may
        /// still arrive: what the lease is given by this node until then may be undone by it.
        repeated: bool,
    },
    Reserved(Reserved),
    /// The question was not put.
    NotAsked,
}

impl VoteOutcome {
    pub(crate) fn voted(vote: Vote) -> Self {
        VoteOutcome::Voted {
            vote,
            repeated: false,
        }
    }

    pub(crate) fn withdrawn(released: Released, told: bool) -> Self {
        VoteOutcome::Withdrawn {
            released,
            told,
            repeated: false,
        }
    }

    /// Given back, and nothing of that can arrive any more.
    pub(crate) fn is_withdrawn(&self) -> bool {
        matches!(self, VoteOutcome::Withdrawn { repeated, .. } if !repeated)
    }

    /// As the answer to the last of several sends.
    pub(crate) fn of_the_last_send(self) -> Self {
        match self {
            VoteOutcome::Voted { vote, .. } => VoteOutcome::Voted {
                vote,
                repeated: true,
            },
            VoteOutcome::Withdrawn { told, .. } => VoteOutcome::Withdrawn {
                // The first may have been the one that found it.
                released: Released::Yes,
                told,
                repeated: true,
            },
            other => other,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Joined {
    /// What no other server is called.
    pub(crate) names: Vec<String>,
    /// Until it votes; `None`: it has no data, and was only looked at.
    pub(crate) opens_in: Option<Duration>,
    pub(crate) time: ServerTime,
}

/// A node's answer to a proposal.
#[derive(Clone, Debug)]
pub(crate) enum Vote {
    /// The key is the lease's on this node.
    Yes {
        /// Whether the number is too, or is too low.
        accepted: bool,
        /// The highest number that its register holds now.
        highest: u64,
    },
    /// Somebody else has the key.
    Taken {
        /// What stands in it.
        owner: Box<str>,
        refusal: Refusal,
        highest: u64,
    },
    /// The key is free, and others have waited for it: let them have it.
    Yields,
    /// It came back without data, and does not vote for so long.
    Empty(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reserved {
    NobodyWaits,
    SomebodyWaits,
    /// Nothing is set aside: the key is not the lease's.
    NotOurs,
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
