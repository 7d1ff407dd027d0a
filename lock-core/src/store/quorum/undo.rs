//! Withdrawing votes, at once or when the node answers again.

use std::sync::Arc;

use super::Quorum;
use super::acquire::Candidacy;
use super::departing::Departure;
use super::fan_out::FanOut;
use super::proposal_number;
use super::vote_ledger::{VoteLedger, contains};
use crate::store::vote::{UpTo, VoteOperation, Withdrawal};
use crate::store::{AcquireCommand, Lane, Operation, Outcome, Release};

/// A vote to withdraw.
#[derive(Clone)]
pub(super) struct Undoing {
    pub(super) release: Release,
    pub(super) ledger: Arc<VoteLedger>,
    pub(super) lane: Lane,
    /// `None`: the lease never asks again.
    pub(super) up_to: Option<UpTo>,
}

impl Undoing {
    pub(super) fn new(acquire: &AcquireCommand, ledger: &Arc<VoteLedger>, lane: Lane) -> Self {
        let up_to = UpTo {
            register: proposal_number::register_of(&acquire.key),
            number: ledger.proposed(),
        };
        Self {
            release: acquire.undo(),
            ledger: Arc::clone(ledger),
            lane,
            up_to: Some(up_to),
        }
    }

    /// The number above which a vote is a newer one of the lease. After the end there is no newer one, and the register of the
    /// node may have been raised since the question.
    pub(super) fn up_to(&self) -> Option<UpTo> {
        self.up_to.filter(|_| !self.ledger.has_ended())
    }

    /// Counts its votes on these nodes as departing.
    pub(super) fn departs(
        &self,
        quorum: &Quorum,
        places: impl IntoIterator<Item = usize>,
    ) -> Departure {
        let departing = &quorum.leases.departing;
        departing.begins(&self.release.key, &self.ledger, places)
    }

    /// The operation that withdraws the vote.
    fn withdraw(&self, how: Withdrawal) -> Operation {
        Operation::Vote(VoteOperation::Withdraw(
            self.release.clone(),
            how,
            self.up_to(),
        ))
    }
}

impl Quorum {
    /// Ends an attempt that has failed, and leaves no vote behind.
    pub(super) async fn give_up(self: &Arc<Self>, attempt: &mut Candidacy) {
        let ledger = Arc::clone(&attempt.ledger);
        // From here on a vote that arrives late is undone by the task that receives it.
        self.leases.pause(attempt.acquire.token);
        self.undo(attempt, Withdrawal::Over).await;
        let doubtful = ledger.left_in_doubt();
        for place in (0..self.nodes.len()).filter(|place| contains(doubtful, *place)) {
            self.keep_hint(place, &attempt.undoing());
        }
    }

    /// Withdraws the granted votes and waits for the answers, so that they stand in the way of no client,
    /// including this process's next attempt. Where a question is open, the vote stays until its answer
    /// arrives.
    pub(super) async fn undo(self: &Arc<Self>, attempt: &mut Candidacy, how: Withdrawal) {
        let undoing = attempt.undoing();
        let granted = attempt.ledger.to_undo();
        let asked = (0..self.nodes.len())
            .filter(|place| contains(granted, *place))
            .map(|place| {
                attempt.ledger.unresolved(place);
                let node = &self.nodes[place];
                (place, node.ask(undoing.withdraw(how), attempt.lane))
            });
        let overdue = self.timers.now() + self.patience(attempt.acquire.ttl);
        let mut answers = FanOut::new(asked).until(&self.timers, overdue);
        while let Some((place, outcome)) = answers.next().await {
            match outcome {
                Outcome::Vote(vote) if vote.is_withdrawn() => {
                    attempt.ledger.is_without(place);
                    attempt.ledger.resolved(place);
                }
                // Also after an answer: a copy of the withdrawal may arrive behind the lease's next vote.
                _ => self.keep_hint(place, &undoing),
            }
        }
        answers.note_silence(self);
        answers
            .silent()
            .for_each(|place| self.keep_hint(place, &undoing));
    }

    /// Withdraws one vote while the caller goes on, so that a silent node delays no other vote.
    pub(super) fn take_back(self: &Arc<Self>, place: usize, undoing: &Undoing) {
        undoing.ledger.is_taken_back(place);
        let taking_back = TakingBack {
            quorum: Arc::clone(self),
            _departure: undoing.departs(self, [place]),
            undoing: undoing.clone(),
            place,
            done: false,
        };
        self.leave_behind(taking_back.run());
    }

    /// Keeps a hint for the node. The node is not asked for the lease until the hint is delivered.
    pub(super) fn keep_hint(&self, place: usize, undoing: &Undoing) {
        let node = &self.nodes[place];
        let queued = contains(undoing.ledger.queued(), place);
        undoing.ledger.is_taken_back(place);
        undoing.ledger.is_hinted(place);
        let departure = undoing.departs(self, [place]);
        self.leases
            .is_hinted(undoing.release.token, &undoing.ledger);
        let now = self.timers.now();
        node.hints
            .add(undoing, Withdrawal::Over, queued, Some(departure), now);
        node.bell.notify_one();
    }

    /// Keeps a hint for the node, if the lease may have an entry in the queue there. A vote stays.
    pub(super) fn keep_hint_of_entry(&self, place: usize, undoing: &Undoing) {
        if contains(undoing.ledger.queued(), place) {
            let node = &self.nodes[place];
            let now = self.timers.now();
            node.hints.add(undoing, Withdrawal::Leave, true, None, now);
            node.bell.notify_one();
        }
    }
}

/// One withdrawal. If it fails, or its runtime ends, it is left to the keeper.
struct TakingBack {
    quorum: Arc<Quorum>,
    undoing: Undoing,
    place: usize,
    done: bool,
    _departure: Departure,
}

impl TakingBack {
    async fn run(mut self) {
        let node = &self.quorum.nodes[self.place];
        if !node.is_up() {
            return;
        }
        let patience = self.quorum.patience(self.undoing.release.ttl);
        let asked = node.ask(self.undoing.withdraw(Withdrawal::Over), self.undoing.lane);
        let timers = &self.quorum.timers;
        let overdue = timers.now() + patience;
        let mut answer = FanOut::new([(self.place, asked)]).until(timers, overdue);
        match answer.next().await {
            // A question that was never answered may arrive behind this.
            Some((_, Outcome::Vote(vote))) => {
                self.done = vote.is_withdrawn() && !self.undoing.ledger.is_doubtful(self.place);
            }
            Some(_) => {}
            None => node.is_silent(),
        }
    }
}

impl Drop for TakingBack {
    fn drop(&mut self) {
        if self.done {
            self.undoing.ledger.resolved(self.place);
        } else {
            self.quorum.keep_hint(self.place, &self.undoing);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::base::clock::Clock;
    use crate::base::token::{Address, TokenSource};
    use crate::store::vote::Propose;
    use crate::store::{Extension, MemoryStore, Store};

    #[tokio::test]
    async fn a_vote_is_withdrawn_behind_the_end_although_its_register_was_raised_since() {
        let node = MemoryStore::new(Clock::default());
        let lease = Extension {
            key: "k".into(),
            token: TokenSource::new(Address::random()).fresh(),
            ttl: Duration::from_secs(60),
        };
        let at = |number| Propose {
            acquire: lease.acquire(),
            register: proposal_number::register_of(&lease.key),
            number,
            max_ttl: lease.ttl,
        };
        let ledger = Arc::<VoteLedger>::default();
        ledger.proposes(1);
        let undoing = Undoing::new(&lease.acquire(), &ledger, Lane::KEEPER);
        for vote in [VoteOperation::Propose(at(1)), VoteOperation::Reserve(at(2))] {
            node.execute(Operation::Vote(vote), Lane::KEEPER).await;
        }
        node.execute(undoing.withdraw(Withdrawal::Over), Lane::KEEPER)
            .await;
        assert_eq!(node.counts().0, 1, "it may be a newer vote");
        ledger.end();
        node.execute(undoing.withdraw(Withdrawal::Over), Lane::KEEPER)
            .await;
        assert_eq!(node.counts().0, 0);
    }
}
