//! Records on several nodes: the record of one node is an answer.
//!
//! A grant needs a majority, and so does a record that is to last: the two share a node, which refuses the grant with
//! the record. Owners that have lost their majority may leave two records, and the one with the highest fencing token
//! counts. A record that no majority has confirmed is sent again, and needs the tokens until then. So a node that misses it
//! gets only a hint of the lease's entry in the queue, which has no end of its own. When a majority has the record, or had
//! lost the lock, hints delete the token where the record is missing. Otherwise it would keep the key for a ttl, and two such
//! nodes, of two owners, would leave no majority. A record that arrives behind such a hint finds no token, and is not stored.
//!
//! The record is first sent to the nodes whose votes are answered. If a majority of all nodes stores it, the other nodes get
//! no record, and an open vote is withdrawn when it arrives. So `forget`, which has found the record on one node, sees on
//! each other node all that a record can replace. If a node fails at that moment, or is slow, the record needs the nodes with
//! open votes, and is sent behind these votes. Only then may vote and record both arrive behind a `forget`, and the record is
//! an answer again.

use std::sync::Arc;

use super::Quorum;
use super::fan_out::FanOut;
use super::tally;
use super::undo::Undoing;
use super::vote_ledger::{VoteLedger, contains};
use crate::base::record::Record;
use crate::base::token::Token;
use crate::store::vote::{VoteOperation, VoteOutcome, Withdrawal};
use crate::store::{BoxFuture, Failure, Forgotten, Lane, Operation, Outcome, Release, Remembered};

impl Quorum {
    /// Leaves a record on every node that has answered for its vote, and on the others if a majority needs them.
    pub(super) async fn remember(
        self: &Arc<Self>,
        release: Release,
        record: Arc<Record>,
        lane: Lane,
    ) -> Outcome {
        // From here on a vote that arrives late is undone by the task that receives it. The record may be sent again, and the
        // open votes must be known then.
        let ledger = self.leases.end_with_record(release.token);
        let undoing = Undoing {
            release: release.clone(),
            // Its votes may be forgotten, because the record was sent before.
            ledger: ledger.unwrap_or_else(|| VoteLedger::forgotten(self.nodes.len())),
            lane,
            up_to: None,
        };
        let patience = self.patience(release.ttl);
        let patient = release.in_background;
        let remember = Operation::Remember(release, record);
        let up: Vec<usize> = self.up().map(|(place, _)| place).collect();
        for place in (0..self.nodes.len()).filter(|place| !up.contains(place)) {
            self.keep_hint_of_entry(place, &undoing);
        }
        let (heard, mut open): (Vec<usize>, Vec<usize>) =
            up.iter().partition(|place| undoing.ledger.may_ask(**place));
        for place in &open {
            // The record may be sent behind the vote and take its place, so no withdrawal may overtake it.
            undoing.ledger.ends_at(*place);
        }
        let asked = self.ask_at(&heard, &remember, lane);
        let now = self.timers.now();
        let mut nodes = FanOut::new(asked).until(&self.timers, now + patience / 2);
        let mut half_is_over = false;
        let mut answers = vec![None; self.nodes.len()];
        loop {
            let decided = tally::remembered(&answers, nodes.open());
            if let Some(remembered) = decided.filter(|_| !patient || nodes.open() == 0) {
                let is_final = is_final(remembered);
                self.has_record(&open, &undoing);
                if is_final {
                    let left: Vec<usize> = open.iter().copied().chain(nodes.left()).collect();
                    self.take_tokens(&answers, &left, &undoing);
                }
                if nodes.open() > 0 {
                    // The other nodes get the record too, although the caller does not wait for them.
                    nodes.set_time(&self.timers, now + patience);
                    let quorum = Arc::clone(self);
                    self.leave_behind(async move {
                        let came = |place, outcome| {
                            let answer = quorum.record_came(place, &outcome, &undoing);
                            if is_final && is_missing(answer) {
                                quorum.take_token(place, &undoing);
                            }
                        };
                        nodes.rest(&quorum, came).await;
                    });
                }
                return Outcome::Remembered(remembered);
            }
            let hoped_for = if half_is_over { 0 } else { nodes.open() };
            if !tally::may_be_stored(&answers, hoped_for) {
                nodes.ask_too(self.ask_at(&std::mem::take(&mut open), &remember, lane));
            }
            match nodes.next().await {
                Some((place, outcome)) => {
                    answers[place] = self.record_came(place, &outcome, &undoing);
                }
                None if !half_is_over => {
                    half_is_over = true;
                    nodes.set_time(&self.timers, now + patience);
                }
                None => break,
            }
        }
        nodes
            .silent()
            .for_each(|place| self.keep_hint_of_entry(place, &undoing));
        match tally::remembered(&answers, 0) {
            Some(remembered) => {
                self.has_record(&open, &undoing);
                if is_final(remembered) {
                    self.take_tokens(&answers, &open, &undoing);
                }
                Outcome::Remembered(remembered)
            }
            None => Outcome::Failed(Failure::unanswered(
                "less than a majority of the nodes confirmed the record",
            )),
        }
    }

    /// Notes that the record is not sent to these nodes, and not again. A vote that has arrived there meanwhile was left to
    /// the record, and one that failed may stand there.
    fn has_record(self: &Arc<Self>, open: &[usize], undoing: &Undoing) {
        self.leases.end(undoing.release.token);
        let ledger = &undoing.ledger;
        for &place in open {
            if !ledger.has_ended_at(place, false) || contains(ledger.left_in_doubt(), place) {
                self.take_back(place, undoing);
            } else {
                self.keep_hint_of_entry(place, undoing);
            }
        }
    }

    /// Deletes the tokens on the nodes that miss the record and do not get it. On the nodes that are left, others see to them.
    fn take_tokens(&self, answers: &[Option<Remembered>], left: &[usize], undoing: &Undoing) {
        for (place, answer) in answers.iter().enumerate() {
            if is_missing(*answer) && !left.contains(&place) {
                self.take_token(place, undoing);
            }
        }
    }

    fn take_token(&self, place: usize, undoing: &Undoing) {
        if contains(undoing.ledger.touched(), place) {
            self.keep_hint(place, undoing);
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
        let mut answers = vec![None; self.nodes.len()];
        let mut first = answers.clone();
        let mut owners: Vec<Token> = Vec::new();
        let mut places: Vec<usize> = self.up().map(|(place, _)| place).collect();
        while !places.is_empty() {
            for owner in &owners {
                self.withdraw(&key, *owner, &mut places, lane).await;
            }
            let mut found = vec![None; self.nodes.len()];
            for (place, outcome) in self.all_answers(self.ask_at(&places, &forget, lane)).await {
                match outcome {
                    Outcome::Forgotten(forgotten, owner) => {
                        first[place].get_or_insert(forgotten);
                        answers[place] = Some(forgotten);
                        found[place] = owner;
                    }
                    Outcome::Failed(failure) if failure.is_final() => {
                        return Outcome::Failed(failure);
                    }
                    _ => {}
                }
            }
            let known = owners.len();
            for owner in found.iter().flatten() {
                if !owners.contains(owner) {
                    owners.push(*owner);
                }
            }
            places.clear();
            // An owner that has left a record has ended. Its record may still be on its way to the other nodes, or was
            // left when these had been asked, and must not find the token there.
            for (place, answer) in answers.iter_mut().enumerate() {
                let has_all = owners[known..]
                    .iter()
                    .all(|owner| found[place] == Some(*owner));
                if answer.is_some() && !has_all {
                    *answer = None;
                    places.push(place);
                }
            }
        }
        let answered = answers.iter().flatten().count();
        if answered < self.nodes.len() {
            return Outcome::Failed(Failure::unanswered(format!(
                "{answered} of the {} nodes have confirmed that the record is deleted; the others may have it",
                self.nodes.len()
            )));
        }
        // An owner that has come since is not the one before which a record was deleted.
        let is_held = |(first, last)| first == last && last == Some(Forgotten::Held);
        let both = first.into_iter().zip(answers);
        let held = both.filter(|both| is_held(*both)).count();
        let forgotten = match owners.is_empty() {
            // The record was over on a majority, and only a node that got it late still had it.
            _ if held >= tally::quorum(self.nodes.len()) => Forgotten::Held,
            false => Forgotten::Yes,
            true if held > 0 => Forgotten::Held,
            true => Forgotten::Nothing,
        };
        Outcome::Forgotten(forgotten, None)
    }

    /// Withdraws the votes of an owner that has ended. Of the places those stay that confirm it, because a node that keeps
    /// the token may still get the record.
    async fn withdraw(&self, key: &Arc<str>, owner: Token, places: &mut Vec<usize>, lane: Lane) {
        let release = Release {
            key: Arc::clone(key),
            token: owner,
            ttl: self.settings.max_ttl,
            fence: None,
            in_background: true,
        };
        let withdraw = VoteOperation::Withdraw(release, Withdrawal::Over, None);
        let asked = self.ask_at(places, &Operation::Vote(withdraw), lane);
        let withdrawn = self.all_answers(asked).await;
        places.retain(|place| {
            let mut withdrawn = withdrawn.iter();
            withdrawn.any(|(at, outcome)| at == place && is_withdrawn(outcome))
        });
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

/// Returns whether the record is not sent again: a majority has it, or had lost the lock. Elsewhere the tokens are still needed, or
/// keep the key in the record's place.
fn is_final(remembered: Remembered) -> bool {
    matches!(
        remembered,
        Remembered::Yes | Remembered::Other | Remembered::Absent
    )
}

/// Returns whether the token of the owner may stand in place of the record.
fn is_missing(answer: Option<Remembered>) -> bool {
    matches!(answer, None | Some(Remembered::NoRoom))
}

fn is_withdrawn(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Vote(VoteOutcome::Withdrawn { .. }))
}

/// Questions to nodes, by their places.
pub(super) type Asked = Vec<(usize, BoxFuture<'static, Outcome>)>;
