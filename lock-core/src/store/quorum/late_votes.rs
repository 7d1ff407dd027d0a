//! Votes that come when it is decided already.

use std::sync::Arc;

use super::Quorum;
use super::fan_out::FanOut;
use super::undo::Undoing;
use super::vote_ledger::{Late, contains};
use crate::base::clock::Moment;
use crate::store::Outcome;
use crate::store::vote::{Vote, VoteOutcome};

/// Votes that come when it is decided: they count for a lease that is held, and are undone where it is
/// over. Dropped, with the runtime that it runs on, it leaves them to the keeper.
pub(super) struct LateVotes {
    quorum: Arc<Quorum>,
    undoing: Undoing,
    votes: FanOut,
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
            undoing,
            votes,
        }
    }

    pub(super) async fn come(mut self) {
        loop {
            match self.votes.next().await {
                Some((place, outcome)) => came(&self.quorum, &self.undoing, place, outcome),
                None if self.votes.open() > 0 => {
                    // Out from now on, and still listened to.
                    for place in self.votes.silent() {
                        self.quorum.nodes[place].is_silent();
                    }
                    self.votes.forget_time();
                }
                None => return,
            }
        }
    }
}

impl Drop for LateVotes {
    fn drop(&mut self) {
        // The runtime has ended, and its connections: nobody will hear the answers. What may stand is
        // undone by the keeper, at once or when the lease is given back.
        for place in self.votes.left() {
            if !self.undoing.spread.doubt(place) {
                self.quorum.tell_later(place, &self.undoing);
            }
        }
    }
}

fn came(quorum: &Arc<Quorum>, undoing: &Undoing, place: usize, outcome: Outcome) {
    let spread = &undoing.spread;
    let repeated = matches!(
        outcome,
        Outcome::Vote(VoteOutcome::Voted { repeated: true, .. })
    );
    if repeated {
        spread.may_come_again(place);
    }
    let unwanted = match outcome {
        Outcome::Vote(VoteOutcome::NotAsked) => return,
        Outcome::Vote(VoteOutcome::Voted {
            vote: Vote::Yes { .. },
            ..
        }) => match spread.agrees_late(place, repeated) {
            Late::Counts | Late::GivenBack => return spread.resolved(place),
            Late::Unwanted => true,
        },
        // It may have queued behind the command that left the queue.
        Outcome::Vote(_) => spread.has_ended() || (repeated && spread.is_over()),
        // What it agreed to before was left to this answer.
        Outcome::Failed(failure) if !failure.ambiguous => {
            spread.is_over() && contains(spread.granted(), place)
        }
        _ => {
            // Of a lease that is held it stays in doubt: told when that is given back.
            if !spread.doubt(place) {
                quorum.tell_later(place, undoing);
            }
            return;
        }
    };
    if unwanted {
        return quorum.take_back(place, undoing);
    }
    if !contains(spread.granted(), place) {
        spread.is_without(place);
    }
    spread.resolved(place);
}
