//! Records on several nodes: each node keeps the record, and the record of one node is an answer.
//!
//! A grant needs a majority, and so does a record that is to last: the two share a node, which refuses the grant with
//! the record. Owners that have lost their majority may leave two records, and the one with the highest fencing token
//! counts. No hint is kept for a node that misses a record, because the token there ends by its ttl.

use std::sync::Arc;

use super::Quorum;
use super::fan_out::FanOut;
use super::tally;
use crate::base::record::Record;
use crate::store::{BoxFuture, Failure, Forgotten, Lane, Operation, Outcome, Release};

impl Quorum {
    /// Leaves a record on every node.
    pub(super) async fn remember(
        self: &Arc<Self>,
        release: Release,
        record: Arc<Record>,
        lane: Lane,
    ) -> Outcome {
        // From here on a vote that arrives late is undone by the task that receives it.
        self.leases.end(release.token);
        let patience = self.patience(release.ttl);
        let patient = release.in_background;
        let asked = self.ask_up(&Operation::Remember(release, record), lane);
        let mut nodes = FanOut::new(asked).until(&self.timers, self.timers.now() + patience);
        let mut answers = vec![None; self.nodes.len()];
        loop {
            let decided = tally::remembered(&answers, nodes.open());
            if let Some(remembered) = decided.filter(|_| !patient || nodes.open() == 0) {
                return Outcome::Remembered(remembered);
            }
            match nodes.next().await {
                Some((place, Outcome::Remembered(answer))) => answers[place] = Some(answer),
                Some(_) => {}
                None => break,
            }
        }
        match tally::remembered(&answers, 0) {
            Some(remembered) => Outcome::Remembered(remembered),
            None => Outcome::Failed(Failure::unanswered(
                "less than a majority of the nodes confirmed the record",
            )),
        }
    }

    /// Deletes a record from every node. A node that does not answer may still have it, and its record is an answer.
    pub(super) async fn forget(self: &Arc<Self>, key: Arc<str>, lane: Lane) -> Outcome {
        let asked = self.ask_up(&Operation::Forget(key), lane);
        let overdue = self.timers.now() + self.settings.operation_timeout / 5 * 4;
        let mut nodes = FanOut::new(asked).until(&self.timers, overdue);
        let mut answers = Vec::with_capacity(self.nodes.len());
        while let Some((_, outcome)) = nodes.next().await {
            match outcome {
                Outcome::Forgotten(forgotten) => answers.push(forgotten),
                Outcome::Failed(failure) if failure.is_final() => return Outcome::Failed(failure),
                _ => {}
            }
        }
        if answers.len() < self.nodes.len() {
            return Outcome::Failed(Failure::unanswered(format!(
                "{} of the {} nodes have confirmed that the record is deleted; the others may have it",
                answers.len(),
                self.nodes.len()
            )));
        }
        let first = [Forgotten::Yes, Forgotten::Held]
            .into_iter()
            .find(|wanted| answers.contains(wanted));
        Outcome::Forgotten(first.unwrap_or(Forgotten::Nothing))
    }

    /// Asks all nodes that are worth asking.
    fn ask_up(
        &self,
        operation: &Operation,
        lane: Lane,
    ) -> Vec<(usize, BoxFuture<'static, Outcome>)> {
        let asked = self
            .up()
            .map(|(place, node)| (place, node.ask(operation.clone(), lane)));
        asked.collect()
    }
}
