//! Votes that arrive after the attempt was decided.
//!
//! A lock is granted at the third of five votes, and may be released before the other two arrive. The release
//! is sent to these nodes as well, behind the votes. A release that finds the key has undone the vote, because
//! only that vote can have set the key. If it does not find the key, or if either command was sent twice
//! because a connection broke, the vote is undone when it arrives.
//!
//! When an attempt fails while a node has not answered a second question, the vote on that node stays until the
//! answer arrives: one question or one undoing at a time. An undoing beside the question could arrive behind
//! the next vote of the same lease, because the keeper sends it again while the node is silent.

use std::sync::Arc;

use super::Quorum;
use super::departing::Departure;
use super::fan_out::FanOut;
use super::undo::Undoing;
use super::vote_ledger::{Late, contains};
use crate::base::clock::Moment;
use crate::store::Outcome;
use crate::store::vote::{Vote, VoteOutcome};

/// Votes after the decision. They count for a lease that is held, and are undone for one that is over. When its
/// runtime ends, it leaves them to the keeper.
pub(super) struct LateVotes {
    quorum: Arc<Quorum>,
    undoing: Undoing,
    departure: Departure,
    votes: FanOut,
    /// From then on a vote may have ended by its ttl.
    ends: Moment,
}

impl LateVotes {
    pub(super) fn new(
        quorum: &Arc<Quorum>,
        undoing: Undoing,
        mut votes: FanOut,
        sent: Moment,
    ) -> Self {
        let overdue = sent + quorum.patience(undoing.release.ttl);
        votes.set_time(&quorum.timers, overdue);
        Self {
            quorum: Arc::clone(quorum),
            departure: undoing.departs(quorum, votes.left()),
            ends: sent + undoing.release.ttl,
            undoing,
            votes,
        }
    }

    pub(super) async fn come(mut self) {
        let Self {
            quorum,
            undoing,
            departure,
            votes,
            ends,
        } = &mut self;
        let came = |place, outcome| {
            came(quorum, undoing, *ends, place, outcome);
            departure.answered(place);
        };
        votes.rest(quorum, came).await;
    }
}

impl Drop for LateVotes {
    fn drop(&mut self) {
        // The runtime has ended with its connections, so no task receives the answers. The keeper undoes the
        // votes, at once or when the lease is released.
        for place in self.votes.left() {
            if !self.undoing.ledger.doubt(place) {
                self.quorum.keep_hint(place, &self.undoing);
            }
        }
    }
}

fn came(quorum: &Arc<Quorum>, undoing: &Undoing, ends: Moment, place: usize, outcome: Outcome) {
    let ledger = &undoing.ledger;
    let repeated = matches!(
        outcome,
        Outcome::Vote(VoteOutcome::Voted { repeated: true, .. })
    );
    if repeated {
        ledger.may_come_again(place);
    }
    let unwanted = match outcome {
        Outcome::Vote(VoteOutcome::NotAsked) => return,
        Outcome::Vote(VoteOutcome::Voted {
            vote: Vote::Yes { .. },
            ..
        }) => match ledger.agrees_late(place, repeated) {
            Late::Counts | Late::GivenBack => {
                if quorum.timers.now() >= ends {
                    ledger.is_unheard(place);
                }
                return ledger.resolved(place);
            }
            Late::Unwanted => true,
        },
        Outcome::Vote(vote) => {
            if let VoteOutcome::Voted {
                vote: Vote::Taken { refusal, .. },
                ..
            } = vote
                && refusal.queued
            {
                ledger.is_queued(place);
            }
            // The question may have entered the queue after the lease had left it.
            ledger.has_ended() || (repeated && ledger.is_over())
        }
        // The undoing of an earlier vote was left to this answer.
        Outcome::Failed(failure) if !failure.ambiguous => {
            ledger.is_over() && contains(ledger.granted(), place)
        }
        _ => {
            // The vote of a held lease stays in doubt. The node gets a hint when the lease is released.
            if !ledger.doubt(place) {
                quorum.keep_hint(place, undoing);
            }
            return;
        }
    };
    if unwanted {
        return quorum.take_back(place, undoing);
    }
    if !contains(ledger.granted(), place) {
        ledger.is_without(place);
    }
    ledger.resolved(place);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::test_nodes::one_node;
    use super::*;
    use crate::base::clock::Clock;
    use crate::base::token::{Address, TokenSource};
    use crate::store::{Extension, Lane};
    use crate::timer::Timers;

    /// Returns whether a vote counts that arrives when its time ends so much later than now.
    fn counts(left: Duration) -> bool {
        let timers = Timers::new(Clock::default());
        let store = one_node(&timers);
        let lease = Extension {
            key: "k".into(),
            token: TokenSource::new(Address::random()).fresh(),
            ttl: Duration::from_secs(10),
        };
        let ledger = Arc::default();
        let undoing = Undoing::new(&lease.acquire(), &ledger, Lane::KEEPER);
        assert!(ledger.claim(0));
        let vote = VoteOutcome::voted(Vote::Yes {
            accepted: true,
            highest: 1,
        });
        let ends = timers.now() + left;
        came(&store.quorum, &undoing, ends, 0, Outcome::Vote(vote));
        contains(ledger.granted(), 0)
    }

    #[test]
    fn a_vote_that_arrives_after_its_ttl_does_not_count() {
        assert!(counts(Duration::from_secs(10)));
        assert!(!counts(Duration::ZERO));
    }
}
