//! Taking votes back, at once or when the node is there again.

use std::sync::Arc;
use std::time::Duration;

use super::Quorum;
use super::acquire::Attempt;
use super::fan_out::FanOut;
use super::proposal_number;
use super::vote_ledger::{Spread, contains};
use crate::base::token::Token;
use crate::store::vote::{UpTo, VoteOperation, Withdrawal};
use crate::store::{Extension, Lane, Operation, Outcome, Release};

/// What it takes to take a vote back.
#[derive(Clone)]
pub(super) struct Undoing {
    pub(super) release: Release,
    pub(super) spread: Arc<Spread>,
    pub(super) lane: Lane,
    /// `None`: the lease never asks again.
    pub(super) up_to: Option<UpTo>,
}

impl Undoing {
    pub(super) fn new(
        key: &Arc<str>,
        token: Token,
        ttl: Duration,
        spread: &Arc<Spread>,
        lane: Lane,
    ) -> Self {
        let up_to = UpTo {
            register: proposal_number::register_of(key),
            number: spread.proposed(),
        };
        Self {
            release: Release {
                key: Arc::clone(key),
                token,
                ttl,
                fence: None,
                in_background: true,
            },
            spread: Arc::clone(spread),
            lane,
            up_to: Some(up_to),
        }
    }

    pub(super) fn of(extension: &Extension, spread: &Arc<Spread>, lane: Lane) -> Self {
        Self::new(&extension.key, extension.token, extension.ttl, spread, lane)
    }
}

impl Quorum {
    /// The attempt has come to nothing, and leaves nothing behind.
    pub(super) async fn give_up(self: &Arc<Self>, attempt: &mut Attempt) {
        let spread = Arc::clone(&attempt.spread);
        // From here on whatever comes late is undone by whoever hears of it.
        self.leases.pause(attempt.acquire.token);
        self.undo(attempt, Withdrawal::Over).await;
        let doubtful = spread.left_in_doubt();
        for place in (0..self.nodes.len()).filter(|place| contains(doubtful, *place)) {
            self.tell_later(place, &attempt.undoing());
        }
    }

    /// Gives back what the nodes have, and waits for it: it must not stand in anybody's way, this
    /// process's next attempt included. Where a question is out the vote stays until that is answered.
    pub(super) async fn undo(self: &Arc<Self>, attempt: &mut Attempt, how: Withdrawal) {
        let undoing = attempt.undoing();
        let granted = attempt.spread.to_undo();
        let asked = (0..self.nodes.len())
            .filter(|place| contains(granted, *place))
            .map(|place| {
                attempt.spread.unresolved(place);
                let withdraw = VoteOperation::Withdraw(undoing.release.clone(), how, undoing.up_to);
                (
                    place,
                    self.nodes[place].ask(Operation::Vote(withdraw), attempt.lane),
                )
            });
        let overdue = self.timers.now() + self.patience(attempt.acquire.ttl);
        let mut answers = FanOut::new(asked).until(&self.timers, overdue);
        while let Some((place, outcome)) = answers.next().await {
            match outcome {
                Outcome::Vote(vote) if vote.is_withdrawn() => {
                    attempt.spread.is_without(place);
                    attempt.spread.resolved(place);
                }
                // Also if it has been told, and a copy of that may come behind the lease's next vote.
                _ => self.tell_later(place, &undoing),
            }
        }
        for place in answers.silent() {
            self.nodes[place].is_silent();
            self.tell_later(place, &undoing);
        }
    }

    /// Takes one vote back, while the caller goes on: a node that does not answer keeps no other's vote
    /// waiting.
    pub(super) fn take_back(self: &Arc<Self>, place: usize, undoing: &Undoing) {
        undoing.spread.is_taken_back(place);
        let taking_back = TakingBack {
            quorum: Arc::clone(self),
            undoing: undoing.clone(),
            place,
            done: false,
        };
        self.leave_behind(taking_back.run());
    }

    /// The node is told when it can be; until then it is not asked for the lease again.
    pub(super) fn tell_later(&self, place: usize, undoing: &Undoing) {
        let node = &self.nodes[place];
        undoing.spread.is_taken_back(place);
        node.left_overs.add(undoing, self.timers.now());
        node.bell.notify_one();
    }
}

/// One vote that is taken back. What comes of it otherwise, its runtime's end included, is left to the
/// keeper.
struct TakingBack {
    quorum: Arc<Quorum>,
    undoing: Undoing,
    place: usize,
    done: bool,
}

impl TakingBack {
    async fn run(mut self) {
        let node = &self.quorum.nodes[self.place];
        if !node.is_up() {
            return;
        }
        let release = self.undoing.release.clone();
        let patience = self.quorum.patience(release.ttl);
        let withdraw = VoteOperation::Withdraw(release, Withdrawal::Over, self.undoing.up_to);
        let asked = node.ask(Operation::Vote(withdraw), self.undoing.lane);
        let timers = &self.quorum.timers;
        let overdue = timers.now() + patience;
        let mut answer = FanOut::new([(self.place, asked)]).until(timers, overdue);
        match answer.next().await {
            // What was sent before and never answered may arrive behind this.
            Some((_, Outcome::Vote(vote))) => {
                self.done = vote.is_withdrawn() && !self.undoing.spread.is_doubtful(self.place);
            }
            Some(_) => {}
            None => node.is_silent(),
        }
    }
}

impl Drop for TakingBack {
    fn drop(&mut self) {
        if self.done {
            self.undoing.spread.resolved(self.place);
        } else {
            self.quorum.tell_later(self.place, &self.undoing);
        }
    }
}
