//! Records on several nodes: each node keeps the record, and the record of one node is an answer.
//!
//! A grant needs a majority, and so does a record that is to last: the two share a node, which refuses the grant with
//! the record. Owners that have lost their majority may leave two records, and the one with the highest fencing token
//! counts. For a node that misses a record no hint of the token is kept, because the token there ends by its ttl. A hint of
//! the lease's entry in the queue is kept, because the entry has no end of its own.

use std::sync::Arc;

use super::Quorum;
use super::fan_out::FanOut;
use super::tally;
use super::undo::Undoing;
use crate::base::record::Record;
use crate::base::token::Token;
use crate::store::vote::{VoteOperation, VoteOutcome, Withdrawal};
use crate::store::{BoxFuture, Failure, Forgotten, Lane, Operation, Outcome, Release, Remembered};

impl Quorum {
    /// Leaves a record on every node.
    pub(super) async fn remember(
        self: &Arc<Self>,
        release: Release,
        record: Arc<Record>,
        lane: Lane,
    ) -> Outcome {
        // From here on a vote that arrives late is undone by the task that receives it.
        let undoing = Undoing {
            release: release.clone(),
            ledger: self.leases.end(release.token).unwrap_or_default(),
            lane,
            up_to: None,
        };
        let patience = self.patience(release.ttl);
        let patient = release.in_background;
        let remember = Operation::Remember(release, record);
        let up: Vec<usize> = self.up().map(|(place, _)| place).collect();
        for place in 0..self.nodes.len() {
            match up.contains(&place) {
                // The record is sent behind the vote and takes its place, so no withdrawal may overtake it.
                true => undoing.ledger.ends_at(place),
                false => self.keep_hint_of_entry(place, &undoing),
            }
        }
        let asked = self.ask_at(&up, &remember, lane);
        let mut nodes = FanOut::new(asked).until(&self.timers, self.timers.now() + patience);
        let mut answers = vec![None; self.nodes.len()];
        loop {
            let decided = tally::remembered(&answers, nodes.open());
            if let Some(remembered) = decided.filter(|_| !patient || nodes.open() == 0) {
                if nodes.open() > 0 {
                    // The other nodes get the record too, although the caller does not wait for them.
                    let quorum = Arc::clone(self);
                    self.leave_behind(async move {
                        let came = |place, outcome| {
                            quorum.record_came(place, &outcome, &undoing);
                        };
                        nodes.rest(&quorum, came).await;
                    });
                }
                return Outcome::Remembered(remembered);
            }
            match nodes.next().await {
                Some((place, outcome)) => {
                    answers[place] = self.record_came(place, &outcome, &undoing);
                }
                None => break,
            }
        }
        nodes
            .silent()
            .for_each(|place| self.keep_hint_of_entry(place, &undoing));
        match tally::remembered(&answers, 0) {
            Some(remembered) => Outcome::Remembered(remembered),
            None => Outcome::Failed(Failure::unanswered(
                "less than a majority of the nodes confirmed the record",
            )),
        }
    }

    /// Notes the answer of a node to a record.
    fn record_came(
        &self,
        place: usize,
        outcome: &Outcome,
        undoing: &Undoing,
    ) -> Option<Remembered> {
        let Outcome::Remembered(answer) = outcome else {
            self.keep_hint_of_entry(place, undoing);
            return None;
        };
        let found = !matches!(answer, Remembered::Absent | Remembered::Other);
        if !undoing.ledger.has_ended_at(place, found) {
            self.keep_hint(place, undoing);
        }
        Some(*answer)
    }

    /// Deletes a record from every node. A node that does not answer may still have it, and its record is an answer.
    pub(super) async fn forget(self: &Arc<Self>, key: Arc<str>, lane: Lane) -> Outcome {
        let forget = Operation::Forget(Arc::clone(&key));
        let asked = self.ask_up(&forget, lane);
        let mut answers = vec![None; self.nodes.len()];
        let mut owners: Vec<Token> = Vec::new();
        for (place, outcome) in self.all_answers(asked).await {
            match outcome {
                Outcome::Forgotten(forgotten, owner) => {
                    answers[place] = Some(forgotten);
                    owners.extend(owner.filter(|owner| !owners.contains(owner)));
                }
                Outcome::Failed(failure) if failure.is_final() => return Outcome::Failed(failure),
                _ => {}
            }
        }
        // An owner that has left a record has ended. Its record may still be on its way to the other nodes, and must
        // not find the token there.
        let mut again = Vec::new();
        for (place, answer) in answers.iter_mut().enumerate() {
            if *answer == Some(Forgotten::Held) && !owners.is_empty() {
                *answer = None;
                again.push(place);
            }
        }
        for owner in &owners {
            let release = Release {
                key: Arc::clone(&key),
                token: *owner,
                ttl: self.settings.max_ttl,
                fence: None,
                in_background: true,
            };
            let withdraw = VoteOperation::Withdraw(release, Withdrawal::Over, None);
            let withdraw = Operation::Vote(withdraw);
            let asked = self.ask_at(&again, &withdraw, lane);
            let withdrawn = self.all_answers(asked).await;
            // A node that keeps the token may still get the record.
            again.retain(|place| {
                let mut withdrawn = withdrawn.iter();
                withdrawn.any(|(at, outcome)| at == place && is_withdrawn(outcome))
            });
        }
        for (place, outcome) in self.all_answers(self.ask_at(&again, &forget, lane)).await {
            if let Outcome::Forgotten(forgotten, _) = outcome {
                answers[place] = Some(forgotten);
            }
        }
        let answered = answers.iter().flatten().count();
        if answered < self.nodes.len() {
            return Outcome::Failed(Failure::unanswered(format!(
                "{answered} of the {} nodes have confirmed that the record is deleted; the others may have it",
                self.nodes.len()
            )));
        }
        let is_held = |answer: &&Option<Forgotten>| **answer == Some(Forgotten::Held);
        let held = answers.iter().filter(is_held).count();
        let forgotten = match owners.is_empty() {
            // The record was over on a majority, and only a node that got it late still had it.
            _ if held >= tally::quorum(self.nodes.len()) => Forgotten::Held,
            false => Forgotten::Yes,
            true if held > 0 => Forgotten::Held,
            true => Forgotten::Nothing,
        };
        Outcome::Forgotten(forgotten, None)
    }

    /// Waits for the answers of all nodes, as long as an operation may take.
    pub(super) async fn all_answers(&self, asked: Asked) -> Vec<(usize, Outcome)> {
        let overdue = self.timers.now() + self.settings.operation_timeout / 5 * 2;
        let mut nodes = FanOut::new(asked).until(&self.timers, overdue);
        let mut answers = Vec::new();
        while let Some(answer) = nodes.next().await {
            answers.push(answer);
        }
        answers
    }

    /// Asks all nodes that are worth asking.
    pub(super) fn ask_up(&self, operation: &Operation, lane: Lane) -> Asked {
        let up: Vec<usize> = self.up().map(|(place, _)| place).collect();
        self.ask_at(&up, operation, lane)
    }

    fn ask_at(&self, places: &[usize], operation: &Operation, lane: Lane) -> Asked {
        let ask = |place: &usize| (*place, self.nodes[*place].ask(operation.clone(), lane));
        places.iter().map(ask).collect()
    }
}

fn is_withdrawn(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Vote(VoteOutcome::Withdrawn { .. }))
}

/// Questions to nodes, by their places.
pub(super) type Asked = Vec<(usize, BoxFuture<'static, Outcome>)>;
