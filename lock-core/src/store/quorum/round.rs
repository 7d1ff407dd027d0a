//! One question to all nodes, until their answers decide.

use std::sync::Arc;

use super::Quorum;
use super::acquire::Candidacy;
use super::fan_out::FanOut;
use super::late_votes::LateVotes;
use super::tally::{Ballot, Decision, decide};
use super::vote_ledger::{VoteLedger, contains, only};
use crate::base::clock::Moment;
use crate::store::vote::{Propose, Vote, VoteOperation, VoteOutcome};
use crate::store::{BoxFuture, Operation, Outcome};

pub(super) struct Round {
    pub(super) ballots: Vec<Ballot>,
    pub(super) decision: Decision,
}

impl Quorum {
    /// Asks all nodes that can be asked, until their answers decide.
    pub(super) async fn round(
        self: &Arc<Self>,
        attempt: &mut Candidacy,
        number: u64,
        sent: Moment,
    ) -> Round {
        attempt.refusals.clear();
        attempt.ledger.proposes(number);
        let mut ballots = vec![Ballot::Dead; self.nodes.len()];
        let mut asked = Vec::with_capacity(self.nodes.len());
        let mut held_back = 0;
        for (place, node) in self.up() {
            ballots[place] = Ballot::Open;
            let propose = VoteOperation::Propose(Propose {
                acquire: attempt.acquire.clone(),
                register: attempt.register,
                number,
                max_ttl: self.settings.max_ttl,
            });
            let propose = node.ask(Operation::Vote(propose), attempt.lane);
            if attempt.ledger.claim(place) {
                asked.push((place, propose));
            } else {
                held_back |= only(place);
                let ledger = Arc::clone(&attempt.ledger);
                let waits = once_resolved(ledger, place, number, propose);
                asked.push((place, Box::pin(waits)));
            }
        }
        let patience = self.patience(attempt.acquire.ttl);
        let mut votes = FanOut::new(asked)
            .until(&self.timers, sent + patience)
            .holding_back(held_back);
        let mut decision = decide(&ballots);
        while decision == Decision::Wait {
            let Some((place, outcome)) = votes.next().await else {
                votes.note_silence(self);
                votes
                    .silent()
                    .for_each(|silent| ballots[silent] = Ballot::Dead);
                decision = decide(&ballots);
                break;
            };
            ballots[place] = self.counted(attempt, place, outcome);
            decision = decide(&ballots);
        }
        while let Some((place, outcome)) = votes.at_hand() {
            ballots[place] = self.counted(attempt, place, outcome);
        }
        if votes.open() > 0 {
            self.leave_behind(LateVotes::new(self, attempt.undoing(), votes, sent).come());
        }
        Round { ballots, decision }
    }

    /// Notes an answer in the ledger.
    ///
    /// Another task may have undone the question at this very moment, so the ledger may not want the vote any more. The caller
    /// of the attempt gives back what it is granted then.
    fn counted(&self, attempt: &mut Candidacy, place: usize, outcome: Outcome) -> Ballot {
        let ledger = &attempt.ledger;
        match outcome {
            Outcome::Vote(VoteOutcome::Voted { vote, repeated }) => {
                attempt.repeated |= repeated;
                ledger.resolved(place);
                match &vote {
                    Vote::Yes { .. } => {
                        let _wanted = ledger.stands(place);
                    }
                    Vote::Taken {
                        highest, refusal, ..
                    } => {
                        if refusal.queued {
                            ledger.is_queued(place);
                        }
                        ledger.is_without(place);
                        self.numbers.saw(attempt.register, *highest);
                    }
                    Vote::Yields | Vote::Empty(_) => ledger.is_without(place),
                }
                Ballot::Answered(vote)
            }
            Outcome::Vote(VoteOutcome::NotAsked) => Ballot::Dead,
            Outcome::Failed(failure) if !failure.ambiguous => {
                ledger.resolved(place);
                // The vote of an earlier round stands.
                if !contains(ledger.granted(), place) {
                    ledger.is_without(place);
                }
                if failure.is_final() {
                    attempt.refusals.push(failure);
                }
                Ballot::Dead
            }
            _ => {
                let _wanted = ledger.doubt(place);
                Ballot::Dead
            }
        }
    }
}

/// Waits until the node has no open question of the lease, because a late one would undo the newer vote. Where it is
/// given up, a later round has asked, or the next renewal proposes the lease to the node.
async fn once_resolved(
    ledger: Arc<VoteLedger>,
    place: usize,
    number: u64,
    propose: BoxFuture<'static, Outcome>,
) -> Outcome {
    if ledger.claimed(place, number).await {
        propose.await
    } else {
        Outcome::Vote(VoteOutcome::NotAsked)
    }
}
