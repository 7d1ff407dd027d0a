//! The effect of a step.

use super::fault::QuorumFault;
use super::inside::ModelToken;
use super::node::{NodeAnswer, Straggler, Way};
use super::steps::QuorumStep;
use super::world::{Client, ClientPhase, Era, QuorumBounds, QuorumViolation, QuorumWorld};
use crate::store::quorum::proposal_number;

/// By how much the number of another key is higher.
const RAISE: u16 = 100;

fn current(client: usize) -> ModelToken {
    ModelToken::Current(u8::try_from(client).expect("small"))
}

fn late(client: usize) -> ModelToken {
    ModelToken::Late(u8::try_from(client).expect("small"))
}

/// The number to propose, as the kit computes it.
fn next_number(time: u16, highest: u16) -> u16 {
    let number = proposal_number::next(u64::from(time), u64::from(highest));
    u16::try_from(number).expect("small")
}

impl QuorumWorld {
    /// The world after a step, or its violation.
    pub(super) fn after(
        &self,
        step: QuorumStep,
        limits: &QuorumBounds,
    ) -> Result<QuorumWorld, QuorumViolation> {
        let mut world = *self;
        match step {
            QuorumStep::Begin { client, time } => world.begin(client, time),
            QuorumStep::Arrive { client, node } => world.arrive(client, node, limits),
            QuorumStep::Hear { client, node } => {
                if let Way::Answered(number, answer) = world.nodes[node].with[client].way {
                    world.hear(client, node, number, answer, limits);
                }
            }
            QuorumStep::Copy { client, node } => {
                let between = &mut world.nodes[node].with[client];
                between.straggler = Some(Straggler {
                    what: between.way,
                    current: true,
                });
                world.copies += 1;
            }
            QuorumStep::Lost { client, node } => {
                world.nodes[node].with[client].way = Way::Propose(world.clients[client].number);
            }
            QuorumStep::ArriveLate { client, node } => world.arrive_late(client, node, limits),
            QuorumStep::Grant { client } => world.grant(client, limits)?,
            QuorumStep::ProposeHigher { client } => world.propose_higher(client),
            QuorumStep::AskAgain { client, time } => world.ask_again(client, time, limits),
            QuorumStep::Repeat { client, time } => world.repeat(client, time, limits),
            QuorumStep::End { client, arrives } => world.end(client, arrives, limits),
            QuorumStep::Renew { client, node } => {
                world.nodes[node].inside.lengthen(current(client));
            }
            QuorumStep::Rejoin { client, node } => world.rejoin(client, node),
            QuorumStep::Raise { client } => world.raise(client),
            QuorumStep::Raised { client } => world.is_raised_to(client),
            QuorumStep::Expire { node, token } => world.nodes[node].expire(token, limits),
            QuorumStep::RestartEmpty { node } => world.restart_empty(node, limits),
            QuorumStep::TimeGoesOn => world.era = Era::After,
            QuorumStep::Reopen { node } => world.nodes[node].kept_out = false,
        }
        Ok(world)
    }

    fn begin(&mut self, client: usize, time: u16) {
        let it = &mut self.clients[client];
        it.leases += 1;
        it.phase = ClientPhase::Asking;
        it.era = self.era;
        it.number = next_number(time, it.seen);
        it.seen = it.number;
        for node in &mut self.nodes {
            node.with[client].way = Way::Propose(it.number);
        }
    }

    fn arrive(&mut self, client: usize, node: usize, limits: &QuorumBounds) {
        let asking = self.clients[client].phase == ClientPhase::Asking;
        let at = &mut self.nodes[node];
        match at.with[client].way {
            Way::Propose(number) => {
                let answer = at.propose(current(client), number, limits);
                if limits.apart && asking {
                    at.with[client].way = Way::Answered(number, answer);
                } else {
                    self.hear(client, node, number, answer, limits);
                }
            }
            Way::Withdraw => {
                at.withdraw(current(client), limits);
                // Also of a lease that was granted meanwhile, whose question has waited for this.
                at.with[client].way = Way::Propose(self.clients[client].number);
            }
            Way::Rejoin(number) => {
                let answer = at.rejoin(current(client), number, limits);
                at.with[client].way = match answer {
                    NodeAnswer::TooLow(_) => Way::Aside(number),
                    _ => Way::Nothing,
                };
            }
            Way::Aside(number) => {
                at.set_aside(current(client), number, limits);
                at.with[client].way = Way::Nothing;
                let raises =
                    self.clients[client].is_raising && number == self.clients[client].number;
                if raises && at.inside.has(current(client)) {
                    at.with[client].ballot = Some(NodeAnswer::Accepted(number));
                }
            }
            Way::Nothing | Way::Answered(..) => {}
        }
    }

    /// Counts an answer for its own number only. A node that owes an answer to an earlier number is asked for
    /// the last one when it has answered.
    fn hear(
        &mut self,
        client: usize,
        node: usize,
        number: u16,
        answer: NodeAnswer,
        limits: &QuorumBounds,
    ) {
        let it = &mut self.clients[client];
        let between = &mut self.nodes[node].with[client];
        between.way = Way::Nothing;
        if it.phase != ClientPhase::Asking {
            return;
        }
        it.seen = it.seen.max(answer.highest());
        if number == it.number || limits.has(QuorumFault::AnAnswerToAnotherNumber) {
            between.ballot = Some(answer);
        } else {
            between.way = Way::Propose(it.number);
        }
    }

    fn arrive_late(&mut self, client: usize, node: usize, limits: &QuorumBounds) {
        let Some(straggler) = self.nodes[node].with[client].straggler.take() else {
            return;
        };
        let token = if straggler.current {
            current(client)
        } else {
            late(client)
        };
        match straggler.what {
            Way::Propose(number) => {
                let answer = self.nodes[node].propose(token, number, limits);
                let counts = straggler.current && number == self.clients[client].number;
                if counts && limits.has(QuorumFault::AVoteCountsTwice) {
                    self.count_once_more(client, answer);
                }
            }
            Way::Rejoin(number) => drop(self.nodes[node].rejoin(token, number, limits)),
            Way::Aside(number) => self.nodes[node].set_aside(token, number, limits),
            _ => self.nodes[node].withdraw(token, limits),
        }
        if !straggler.current {
            self.rename(late(client), ModelToken::Over);
        }
    }

    fn count_once_more(&mut self, client: usize, answer: NodeAnswer) {
        let mut open = self
            .nodes
            .iter_mut()
            .map(|node| &mut node.with[client].ballot);
        if let Some(ballot) = open.find(|ballot| ballot.is_none()) {
            *ballot = Some(answer);
        }
    }

    /// Asks nodes that have answered again at once, and the others when they have answered.
    fn propose_higher(&mut self, client: usize) {
        let it = &mut self.clients[client];
        it.rounds += 1;
        it.number = next_number(0, it.seen);
        it.seen = it.number;
        for node in &mut self.nodes {
            let between = &mut node.with[client];
            between.ballot = None;
            if between.way == Way::Nothing {
                between.way = Way::Propose(it.number);
            }
        }
    }

    fn ask_again(&mut self, client: usize, time: u16, limits: &QuorumBounds) {
        let it = &mut self.clients[client];
        it.attempts += 1;
        it.rounds = 0;
        it.era = self.era;
        for node in &mut self.nodes {
            node.inside.is_stale_for(current(client));
        }
        self.give_back_and_ask(client, time, limits);
    }

    fn repeat(&mut self, client: usize, time: u16, limits: &QuorumBounds) {
        self.clients[client].repeats += 1;
        self.give_back_and_ask(client, time, limits);
    }

    /// Withdraws the votes and asks again behind that. A node that owes an answer is left alone until it has
    /// answered.
    fn give_back_and_ask(&mut self, client: usize, time: u16, limits: &QuorumBounds) {
        let it = &mut self.clients[client];
        it.number = next_number(time, it.seen);
        it.seen = it.number;
        for node in &mut self.nodes {
            let between = &mut node.with[client];
            let ballot = between.ballot.take();
            let voted = matches!(
                ballot,
                Some(NodeAnswer::Accepted(_) | NodeAnswer::TooLow(_))
            );
            if voted && limits.has(QuorumFault::VotesOfARoundBeforeCount) {
                between.ballot = ballot;
            }
            if between.way != Way::Nothing {
                if limits.has(QuorumFault::UndoneBesideAQuestion) && between.straggler.is_none() {
                    between.straggler = Some(Straggler {
                        what: Way::Withdraw,
                        current: true,
                    });
                }
                continue;
            }
            between.way = Way::Propose(it.number);
            if voted && limits.has(QuorumFault::AskedAgainBeforeItIsUndone) {
                between.straggler = Some(Straggler {
                    what: Way::Withdraw,
                    current: true,
                });
            } else if voted {
                between.way = Way::Withdraw;
            }
        }
    }

    fn end(&mut self, client: usize, arrives: Option<usize>, limits: &QuorumBounds) {
        if let Some(node) = arrives {
            let what = self.nodes[node].with[client].way;
            for node in &mut self.nodes {
                node.with[client].straggler = None;
            }
            self.nodes[node].with[client].straggler = Some(Straggler {
                what,
                current: true,
            });
        }
        let mut left = ModelToken::Over;
        for node in &mut self.nodes {
            let between = &mut node.with[client];
            (between.way, between.ballot) = (Way::Nothing, None);
            match &mut between.straggler {
                Some(straggler) if straggler.current && straggler.what == Way::Withdraw => {
                    // It finds a vote that may be deleted anyway, or nothing.
                    between.straggler = None;
                }
                Some(straggler) if straggler.current => {
                    straggler.current = false;
                    left = late(client);
                }
                _ => {}
            }
        }
        if left != ModelToken::Over {
            self.rename(left, ModelToken::Over);
        }
        self.rename(current(client), left);
        let it = &mut self.clients[client];
        let asks_again = it.leases < limits.leases[client];
        *it = Client {
            phase: ClientPhase::Idle,
            leases: it.leases,
            attempts: 0,
            rounds: 0,
            repeats: 0,
            era: Era::Before,
            is_raising: false,
            number: 0,
            seen: if asks_again { it.seen } else { 0 },
        };
    }

    fn rejoin(&mut self, client: usize, node: usize) {
        self.rejoins += 1;
        let number = self.clients[client].number;
        let between = &mut self.nodes[node].with[client];
        if between.way == Way::Withdraw {
            between.straggler = Some(Straggler {
                what: Way::Withdraw,
                current: true,
            });
        }
        between.way = Way::Rejoin(number);
    }

    /// Asks the nodes that have the lease to note a number that is higher by more than a block.
    fn raise(&mut self, client: usize) {
        self.raises += 1;
        let it = &mut self.clients[client];
        it.number += RAISE;
        it.is_raising = true;
        for node in &mut self.nodes {
            let asks = node.inside.has(current(client)) && node.with[client].way == Way::Nothing;
            if asks {
                node.with[client].way = Way::Aside(it.number);
            }
        }
    }

    fn is_raised_to(&mut self, client: usize) {
        let it = &mut self.clients[client];
        it.is_raising = false;
        self.last = self.last.max(it.number);
        self.last_of_locks = self.last_of_locks.max(it.number);
        for node in &mut self.nodes {
            node.with[client].ballot = None;
        }
    }

    fn restart_empty(&mut self, node: usize, limits: &QuorumBounds) {
        self.era = Era::Restarted;
        let node = &mut self.nodes[node];
        if limits.has(QuorumFault::RegistersAreLost) {
            node.register = None;
            return;
        }
        node.restart_empty();
        node.kept_out = !limits.has(QuorumFault::AnEmptyNodeVotes);
    }

    fn rename(&mut self, from: ModelToken, to: ModelToken) {
        for node in &mut self.nodes {
            node.inside.rename(from, to);
            if let Some((_, owner)) = &mut node.register
                && *owner == from
            {
                *owner = to;
            }
        }
    }
}
