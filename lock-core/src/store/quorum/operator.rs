//! What an operator sees and does on several nodes: a holder is the one that a majority of them names, and so is each
//! reader.
//!
//! An order to free a key goes to all nodes. It is done when so few nodes may still have the holder's token that they
//! are no majority. No later fencing token is below those of the holder, because its number stands in the registers of
//! a majority. An order raises the register of each node to the highest number that any of them names, so that a
//! minority that has missed the number has it too.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::Quorum;
use super::proposal_number::register_of;
use crate::base::holder_token::HolderToken;
use crate::base::token::Address;
use crate::store::{
    ClosedFor, Failure, Force, Forced, Inspect, Inspected, Lane, Operation, OperatorOperation,
    OperatorOutcome, Outcome, Scan, ScanCursor, Scanned, StoredHolder, Told,
};

impl Quorum {
    pub(super) async fn operate(
        self: &Arc<Self>,
        operation: OperatorOperation,
        lane: Lane,
    ) -> Outcome {
        let done = match operation {
            OperatorOperation::Inspect(inspect) => self.inspect(&inspect.key, lane).await,
            OperatorOperation::Force(force) => self.force(force, lane).await,
            OperatorOperation::Scan(scan) => self.scan(scan, lane).await,
            OperatorOperation::ReadCard(_) => {
                let mut cards = self.ask_all(operation, lane).await.into_iter();
                let card = cards.find_map(|(_, answer)| match answer {
                    OperatorOutcome::Card(card) => card,
                    _ => None,
                });
                Ok(OperatorOutcome::Card(card))
            }
            OperatorOperation::WriteCard(..) | OperatorOperation::Answer(_) => {
                self.ask_all(operation, lane).await;
                Ok(OperatorOutcome::Told(Told::Maybe))
            }
            OperatorOperation::Ask(_) => {
                let told = self.ask_all(operation, lane).await;
                let missed = |(_, answer): &(usize, OperatorOutcome)| {
                    matches!(answer, OperatorOutcome::Told(Told::NoReceiver))
                };
                // A process that has lost some nodes listens at the others.
                let gone = told.len() >= self.quorum() && told.iter().all(missed);
                Ok(OperatorOutcome::Told(match gone {
                    true => Told::NoReceiver,
                    false => Told::Maybe,
                }))
            }
        };
        done.map_or_else(Outcome::Failed, Outcome::Operator)
    }

    async fn inspect(&self, key: &Arc<str>, lane: Lane) -> Result<OperatorOutcome, Failure> {
        let seen = self.look(key, lane).await?;
        let silent = self.nodes.len() - seen.len();
        let inspected = merged(seen, silent, self.quorum());
        Ok(OperatorOutcome::Inspected(Box::new(inspected)))
    }

    /// Asks all nodes for what they know of a key. A majority answers.
    async fn look(&self, key: &Arc<str>, lane: Lane) -> Result<Vec<Inspected>, Failure> {
        let inspect = OperatorOperation::Inspect(Inspect {
            key: Arc::clone(key),
            register: Some(register_of(key)),
        });
        let answers = self.ask_all(inspect, lane).await.into_iter();
        let seen: Vec<Inspected> = answers
            .filter_map(|(_, answer)| match answer {
                OperatorOutcome::Inspected(inspected) => Some(*inspected),
                _ => None,
            })
            .collect();
        match seen.len() >= self.quorum() {
            true => Ok(seen),
            false => Err(self.too_few(None)),
        }
    }

    async fn force(&self, force: Force, lane: Lane) -> Result<OperatorOutcome, Failure> {
        let register = register_of(&force.key);
        let seen = self.look(&force.key, lane).await?;
        let highest = seen.iter().map(|node| node.mark).max().unwrap_or(0);
        self.numbers.saw(register, highest);
        let force = OperatorOperation::Force(Force {
            register: Some((register, highest)),
            ..force
        });
        let asked = self.ask_up(&Operation::Operator(force), lane);
        let mut doubtful = asked.len();
        let mut forced = Vec::new();
        for (_, answer) in self.all_answers(asked).await {
            match answer {
                Outcome::Operator(OperatorOutcome::Forced(answer)) => forced.push(answer),
                Outcome::Failed(failure) if !failure.ambiguous => {}
                _ => continue,
            }
            doubtful -= 1;
        }
        let silent = self.nodes.len() - forced.len();
        freed(&forced, silent, doubtful, self.quorum())
            .map(OperatorOutcome::Forced)
            .ok_or_else(|| {
                Failure::unanswered(
                    "nodes that did not confirm the order may still have the holder, or may have freed it; inspect the key again",
                )
            })
    }

    /// Lists the keys of one node after the other. Each lock is on a majority of the nodes, so a few may be missing.
    async fn scan(&self, scan: Scan, lane: Lane) -> Result<OperatorOutcome, Failure> {
        let from = scan.from.clone();
        let Some(node) = self.nodes.get(from.place) else {
            let missing = self.nodes.len() - from.listed;
            if missing >= self.quorum() {
                return Err(self.too_few(None));
            }
            return Ok(OperatorOutcome::Scanned(Scanned {
                keys: Vec::new(),
                next: None,
            }));
        };
        let following = |listed| ScanCursor {
            place: from.place + 1,
            cursor: 0,
            listed,
            after: None,
        };
        let asked = match node.is_up() {
            true => {
                let scan = Operation::Operator(OperatorOperation::Scan(scan));
                let asked = vec![(from.place, node.ask(scan, lane))];
                self.all_answers(asked).await.pop()
            }
            false => None,
        };
        let scanned = match asked {
            Some((_, Outcome::Operator(OperatorOutcome::Scanned(scanned)))) => Scanned {
                next: Some(match scanned.next {
                    Some(next) => ScanCursor {
                        cursor: next.cursor,
                        ..from.clone()
                    },
                    None => following(from.listed + 1),
                }),
                ..scanned
            },
            _ => Scanned {
                keys: Vec::new(),
                next: Some(following(from.listed)),
            },
        };
        Ok(OperatorOutcome::Scanned(scanned))
    }

    /// Returns the answers of the nodes that have understood the question.
    async fn ask_all(
        &self,
        operation: OperatorOperation,
        lane: Lane,
    ) -> Vec<(usize, OperatorOutcome)> {
        let asked = self.ask_up(&Operation::Operator(operation), lane);
        let answers = self.all_answers(asked).await.into_iter();
        answers
            .filter_map(|(place, outcome)| match outcome {
                Outcome::Operator(answer) => Some((place, answer)),
                _ => None,
            })
            .collect()
    }
}

/// Makes one picture of those of the nodes. `silent` nodes have not answered, and may agree with the others.
fn merged(nodes: Vec<Inspected>, silent: usize, quorum: usize) -> Inspected {
    let mut votes: HashMap<HolderToken, Vec<Option<Duration>>> = HashMap::new();
    let mut closed = Vec::new();
    let mut merged = Inspected::default();
    let mut waiters: Vec<(Address, Duration)> = Vec::new();
    let mut counts = Vec::new();
    for node in nodes {
        let shares = node.holders.iter().all(|holder| holder.token.is_share());
        counts.push(if shares { node.holder_count } else { 0 });
        for holder in node.holders {
            votes
                .entry(holder.token)
                .or_default()
                .push(holder.remaining);
        }
        closed.extend(node.closed);
        if node.waiter_count > merged.waiter_count {
            merged.waiter_count = node.waiter_count;
            waiters = node.waiters;
        }
        merged.mark = merged.mark.max(node.mark);
    }
    merged.waiters = waiters;
    votes.retain(|_, votes| votes.len() + silent >= quorum);
    if votes.keys().all(HolderToken::is_share) {
        // A node names the first of many readers only.
        counts.sort_unstable_by_key(|count| Reverse(*count));
        let counted = counts.get(quorum.saturating_sub(silent).max(1) - 1);
        merged.holder_count = votes.len().max(counted.copied().unwrap_or(0));
    } else if let Some(most) = most_votes(&votes) {
        // Silent nodes may make two locks look like holders, and one of them is.
        votes.retain(|token, _| *token == most);
        merged.holder_count = 1;
    }
    let holders = votes.into_iter().map(|(token, votes)| StoredHolder {
        token,
        remaining: of_a_majority(votes, silent, quorum),
    });
    merged.holders.extend(holders);
    let by_end = |holder: &StoredHolder| (holder.remaining, holder.token.id());
    merged.holders.sort_by_key(by_end);
    if !merged.holders.is_empty() {
        return merged;
    }
    merged.holder_count = 0;
    if closed.len() + silent >= quorum && !closed.is_empty() {
        merged.closed = Some(ClosedFor {
            has_record: closed.iter().any(|node| node.has_record),
            remaining: of_a_majority(
                closed.into_iter().map(|node| node.remaining).collect(),
                silent,
                quorum,
            ),
        });
    }
    merged
}

/// The holder with the most votes; of two, the one whose vote ends last, because the other one may be over.
fn most_votes(votes: &HashMap<HolderToken, Vec<Option<Duration>>>) -> Option<HolderToken> {
    let most = votes.iter().max_by_key(|(token, votes)| {
        let ends = votes.iter().map(|left| left.unwrap_or(Duration::MAX));
        (votes.len(), ends.max(), token.id())
    });
    most.map(|(token, _)| token.clone())
}

/// The time for which a majority has the key. A key without an end lasts longest.
fn of_a_majority(
    mut remaining: Vec<Option<Duration>>,
    silent: usize,
    quorum: usize,
) -> Option<Duration> {
    remaining.sort_unstable_by_key(|left| std::cmp::Reverse(left.unwrap_or(Duration::MAX)));
    let last = quorum.saturating_sub(silent).max(1) - 1;
    remaining.get(last).copied().flatten()
}

/// Sums up the answers to an order; `None`: `silent` nodes may still be a majority of the holder, or one of the `doubtful`
/// nodes, which were asked and have not answered, may have freed the vote of a holder that others have lost.
fn freed(answers: &[Forced], silent: usize, doubtful: usize, quorum: usize) -> Option<Forced> {
    if silent >= quorum {
        return None;
    }
    if answers.contains(&Forced::Told) {
        return Some(Forced::Told);
    }
    if answers.contains(&Forced::Freed) {
        return Some(Forced::Freed);
    }
    (doubtful == 0).then_some(Forced::Changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(token: &str, left: u64) -> Inspected {
        Inspected {
            holders: vec![StoredHolder {
                token: HolderToken::new(token.as_bytes()),
                remaining: Some(Duration::from_secs(left)),
            }],
            holder_count: 1,
            ..Inspected::default()
        }
    }

    #[test]
    fn the_holder_is_the_one_that_a_majority_names_for_as_long_as_one_does() {
        let nodes = vec![held("a", 9), held("b", 50), held("a", 7), held("a", 3)];
        let one = merged(nodes, 1, 3);
        assert_eq!(one.holders.len(), 1);
        assert_eq!(one.holders[0].token, HolderToken::new(b"a"));
        assert_eq!(one.holders[0].remaining, Some(Duration::from_secs(7)));
        let split = merged(vec![held("a", 9), held("b", 9), held("c", 9)], 0, 2);
        assert!(split.holders.is_empty());
        assert!(
            merged(vec![Inspected::default(), Inspected::default()], 1, 2)
                .holders
                .is_empty()
        );
    }

    #[test]
    fn of_two_that_a_silent_node_may_have_the_one_that_ends_last_is_the_holder() {
        for nodes in [["a", "b"], ["b", "a"]] {
            let left = |name: &str| if name == "b" { 50 } else { 9 };
            let seen = merged(nodes.map(|name| held(name, left(name))).into(), 1, 2);
            assert_eq!(seen.holders.len(), 1);
            assert_eq!(seen.holders[0].token, HolderToken::new(b"b"));
        }
    }

    #[test]
    fn each_reader_that_a_majority_names_is_a_holder() {
        let token = |number: u8| format!("{:016x}/{number:032x}ffffffff", 1);
        let of = |readers: &[u8]| Inspected {
            holders: readers
                .iter()
                .flat_map(|it| held(&token(*it), (*it).into()).holders)
                .collect(),
            holder_count: readers.len(),
            ..Inspected::default()
        };
        let names = |nodes: &[&[u8]], silent| {
            let nodes = nodes.iter().map(|readers| of(readers)).collect();
            let merged = merged(nodes, silent, 2);
            let left = |holder: &StoredHolder| holder.remaining.map_or(0, |left| left.as_secs());
            (
                merged.holder_count,
                merged.holders.iter().map(left).collect::<Vec<_>>(),
            )
        };
        assert_eq!(names(&[&[1, 2], &[2], &[1, 3]], 0), (2, vec![1, 2]));
        assert_eq!(names(&[&[2, 1], &[2, 1]], 1), (2, vec![1, 2]));
        assert_eq!(names(&[&[1], &[2], &[3]], 0), (0, vec![]));
        let more = Inspected {
            holder_count: 40,
            ..of(&[1])
        };
        assert_eq!(
            merged(vec![more.clone(), more, of(&[])], 0, 2).holder_count,
            40
        );
    }

    #[test]
    fn a_lock_is_free_when_the_nodes_that_may_have_it_are_no_majority() {
        use Forced::{Changed, Freed, Told};
        assert_eq!(freed(&[Freed, Changed], 1, 1, 2), Some(Freed));
        assert_eq!(freed(&[Freed, Told, Freed], 0, 0, 2), Some(Told));
        assert_eq!(freed(&[Changed, Changed], 1, 0, 2), Some(Changed));
        assert_eq!(freed(&[Freed], 2, 0, 2), None, "two nodes may have it");
    }

    #[test]
    fn an_order_that_a_silent_node_may_have_carried_out_has_not_failed() {
        assert_eq!(freed(&[Forced::Changed; 2], 1, 1, 2), None);
    }
}
