//! Gives a lock back on every node.
//!
//! A hint deletes the token, so that the node does not keep it to its end. A cooldown is sent again until a majority has
//! answered, and needs the token until then. So its hints are kept when the majority has answered. If the caller gives up
//! before that, only hints of the entry in the queue are kept, because the entry has no end of its own.

use std::sync::Arc;
use std::time::Duration;

use super::Quorum;
use super::departing::Departure;
use super::fan_out::FanOut;
use super::tally;
use super::undo::Undoing;
use super::vote_ledger::{NodeSet, VoteLedger, contains, only};
use crate::lease::backoff::jitter;
use crate::store::vote::{VoteOperation, VoteOutcome, Withdrawal};
use crate::store::{Ended, Failure, Lane, Operation, Outcome, Release};

/// After a majority has confirmed a release, the caller waits so long for the other nodes that are up. If the
/// runtime were blocked or ended before that, the release would not be sent to them.
const GRACE: Duration = Duration::from_millis(20);
/// For so long at most the process leaves the key to waiters that were notified. It covers a push and a round
/// trip on a busy network and machine. No node gives the key to a waiter.
const YIELD: Duration = Duration::from_millis(12);

impl Quorum {
    /// Runs a release, a leave or a cooldown on every node.
    pub(super) async fn give_back(self: &Arc<Self>, operation: Operation, lane: Lane) -> Outcome {
        let (release, how) = match &operation {
            Operation::Release(release) => (release.clone(), Some(Withdrawal::Over)),
            Operation::Vacate(release) => (release.clone(), Some(Withdrawal::Gap)),
            Operation::Leave(release) => (release.clone(), Some(Withdrawal::Leave)),
            Operation::Cool(release, _) => (release.clone(), None),
            _ => return Outcome::Failed(Failure::not_understood()),
        };
        let at_nodes = match how {
            Some(how) => Operation::Vote(VoteOperation::Withdraw(release.clone(), how, None)),
            None => operation,
        };
        let deletes = matches!(how, Some(Withdrawal::Over | Withdrawal::Gap));
        let cools = how.is_none();
        let (ttl, patient) = (release.ttl, release.in_background);
        // From here on a vote that arrives late is undone by the task that receives it.
        let ledger = self.leases.end(release.token);
        let undoing = Undoing {
            release,
            ledger: ledger.unwrap_or_else(|| match deletes || cools {
                // Its votes may be forgotten, although an undoing of them was never sent, or no majority has its cooldown.
                true => VoteLedger::forgotten(self.nodes.len()),
                false => Arc::default(),
            }),
            lane,
            up_to: None,
        };
        let mut giving_back = GivingBack {
            answers: vec![None; self.nodes.len()],
            notified: false,
            needs_token: cools,
            missing: 0,
            departure: undoing.departs(self, 0..self.nodes.len()),
            undoing,
            quorum: Arc::clone(self),
        };
        let mut asked = Vec::with_capacity(self.nodes.len());
        for (place, node) in self.nodes.iter().enumerate() {
            // Read once: a node that is not asked gets a hint, even if it comes up at this moment.
            let is_up = node.is_up();
            if is_up {
                if deletes {
                    giving_back.undoing.ledger.ends_at(place);
                }
                asked.push((place, node.ask(at_nodes.clone(), lane)));
            } else {
                giving_back.departure.answered(place);
            }
            giving_back.note_missing(place, is_up);
        }
        let overdue = self.timers.now() + self.patience(ttl);
        // From here on a caller that gives up leaves a hint for each node that has not answered.
        let mut late = LateAnswers {
            giving_back,
            answers: FanOut::new(asked).until(&self.timers, overdue),
        };
        let LateAnswers {
            giving_back,
            answers,
        } = &mut late;
        let mut confirmed = false;
        let outcome = loop {
            let decided = tally::given_back(&giving_back.answers, answers.open());
            if let Some(released) = decided {
                if answers.open() == 0 {
                    break Some(released);
                }
                if !patient && !std::mem::replace(&mut confirmed, true) {
                    let now = self.timers.now();
                    answers.set_time(&self.timers, overdue.min(now + GRACE));
                }
            }
            match answers.next().await {
                Some((place, outcome)) => giving_back.came(place, &outcome),
                None => break tally::given_back(&giving_back.answers, 0),
            }
        };
        if outcome.is_some() {
            giving_back.is_decided();
        }
        while let Some((place, outcome)) = answers.at_hand() {
            giving_back.came(place, &outcome);
        }
        giving_back.stand_back();
        if answers.open() > 0 {
            answers.set_time(&self.timers, overdue);
            self.leave_behind(late.come());
        }
        match outcome {
            Some(released) => Outcome::Released(released),
            None => Outcome::Failed(Failure::unanswered(
                "less than a majority of the nodes confirmed the release",
            )),
        }
    }
}

struct GivingBack {
    quorum: Arc<Quorum>,
    undoing: Undoing,
    departure: Departure,
    answers: Vec<Option<Ended>>,
    /// Whether a node has notified a waiter that the key is free.
    notified: bool,
    /// Whether the nodes need the token, because a majority of them does not have the cooldown yet.
    needs_token: bool,
    /// The nodes that get a hint when they do not need the token any more.
    missing: NodeSet,
}

impl GivingBack {
    /// Keeps a hint for a node that cannot be notified now, or where an earlier question may arrive after the
    /// release.
    fn note_missing(&mut self, place: usize, asked: bool) {
        let ledger = &self.undoing.ledger;
        let may_stand = contains(ledger.touched(), place);
        let doubtful = may_stand && ledger.is_doubtful(place);
        if doubtful || (may_stand && !asked) {
            self.keep_hint(place);
        }
    }

    fn keep_hint(&mut self, place: usize) {
        match self.needs_token {
            true => self.missing |= only(place),
            false => self.quorum.keep_hint(place, &self.undoing),
        }
    }

    /// Takes the nodes whose hints were put off.
    fn take_missing(&mut self) -> impl Iterator<Item = usize> + use<> {
        let missing = std::mem::take(&mut self.missing);
        (0..self.answers.len()).filter(move |place| contains(missing, *place))
    }

    /// Notes that the caller does not send the release again.
    fn is_decided(&mut self) {
        self.needs_token = false;
        for place in self.take_missing() {
            self.quorum.keep_hint(place, &self.undoing);
        }
    }

    fn came(&mut self, place: usize, outcome: &Outcome) {
        match outcome {
            Outcome::Vote(VoteOutcome::Withdrawn {
                released,
                notified,
                repeated,
            }) => {
                self.answers[place] = Some(*released);
                self.notified |= notified;
                let found = *released == Ended::Yes && !repeated;
                if !self.undoing.ledger.has_ended_at(place, found) {
                    self.keep_hint(place);
                }
            }
            Outcome::Released(released) => self.answers[place] = Some(*released),
            _ => {
                if contains(self.undoing.ledger.touched(), place) {
                    self.keep_hint(place);
                }
            }
        }
        // The hint counts from here on.
        self.departure.answered(place);
    }

    fn stand_back(&self) {
        if self.notified {
            let Release { key, token, .. } = &self.undoing.release;
            let now = self.quorum.timers.now();
            let until = now + YIELD / 2 + jitter(*token, 0, YIELD / 2);
            self.quorum.yielded.stand_back(key, until, now);
        }
    }
}

/// The answers that are open. When its caller gives up, or its runtime ends, it leaves them to the keeper.
struct LateAnswers {
    giving_back: GivingBack,
    answers: FanOut,
}

impl LateAnswers {
    async fn come(mut self) {
        let quorum = Arc::clone(&self.giving_back.quorum);
        let came = |place, outcome| self.giving_back.came(place, &outcome);
        self.answers.rest(&quorum, came).await;
    }
}

impl Drop for LateAnswers {
    fn drop(&mut self) {
        for place in self.answers.left() {
            self.giving_back.came(
                place,
                &Outcome::Failed(Failure::unanswered("no task waits for the answer")),
            );
        }
        for place in self.giving_back.take_missing() {
            let GivingBack {
                quorum, undoing, ..
            } = &self.giving_back;
            quorum.keep_hint_of_entry(place, undoing);
        }
    }
}
