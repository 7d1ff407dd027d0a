//! The world of the model: three nodes, clients, and what is on its way between them.

use super::fault::{QuorumFault, Rule};
use super::node::{ModelNode, ModelToken, NodeAnswer, Way};
use crate::lease::Refusal;
use crate::store::quorum::proposal_number;
use crate::store::quorum::tally::{self, Ballot, Decision, decide};
use crate::store::vote::Vote;

pub(super) const NODES: usize = 3;
pub(super) const CLIENTS: usize = 3;

/// What clients take for the time, before any node has lost its data and after that. The servers'
/// clocks have gone on by then for longer than all numbers that were ever proposed are apart.
const TIMES: [u16; 2] = [100, 10_000];

/// How large the world is, and what may go wrong in it.
#[derive(Clone, Debug)]
pub(super) struct QuorumBounds {
    /// How many leases each client begins.
    pub(super) leases: [u8; CLIENTS],
    /// How often a lease asks again after an attempt came to nothing.
    pub(super) attempts: u8,
    /// How often a higher number is proposed in one attempt.
    pub(super) rounds: u8,
    /// How often an attempt is repeated when it is contested: what it has is given back, and the time
    /// goes on to be counted from its first question.
    pub(super) repeats: u8,
    /// How often leases that are held are proposed to nodes that are without them.
    pub(super) rejoins: u8,
    /// By how much clients' clocks may be ahead, in units of a fencing token.
    pub(super) guesses: &'static [u16],
    /// Whether an answer may be on its way for long. If not it is heard when it is given.
    pub(super) apart: bool,
    /// Messages that are sent twice.
    pub(super) copies: u8,
    /// Whether a server comes back empty.
    pub(super) restarts: bool,
    /// Those of the nodes, for who believes in them.
    pub(super) clocks: [u16; NODES],
    pub(super) rule: Rule,
    pub(super) fault: Option<QuorumFault>,
}

impl QuorumBounds {
    pub(super) fn has(&self, fault: QuorumFault) -> bool {
        self.fault == Some(fault)
    }

    /// What a client may take for the time.
    pub(super) fn times(&self, era: Era) -> impl Iterator<Item = u16> + '_ {
        let late = era == Era::After && !self.has(QuorumFault::NumbersAreCounted);
        let time = TIMES[usize::from(late)];
        self.guesses.iter().map(move |guess| time + guess)
    }
}

/// Where time stands, beside a restart without data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Era {
    Before,
    /// A server has just come back empty.
    Restarted,
    /// Long enough ago for the clocks to be above all numbers of before.
    After,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ClientPhase {
    /// It asks for nothing, whether because it has been given what it wanted or because it has died.
    Idle,
    Asking,
    Holding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Client {
    pub(super) phase: ClientPhase,
    /// Leases that it has begun, attempts of this one, and numbers proposed in this attempt.
    pub(super) leases: u8,
    pub(super) attempts: u8,
    pub(super) rounds: u8,
    pub(super) repeats: u8,
    /// When its attempt began.
    pub(super) era: Era,
    /// What it proposes, or may use: the last number of its block.
    pub(super) number: u16,
    /// The highest number that it has heard of.
    pub(super) seen: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct QuorumWorld {
    pub(super) nodes: [ModelNode; NODES],
    pub(super) clients: [Client; CLIENTS],
    /// The highest fencing token that anybody may have used.
    pub(super) last: u16,
    pub(super) era: Era,
    pub(super) copies: u8,
    pub(super) rejoins: u8,
}

/// What must never be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuorumViolation {
    /// A lock is granted whose token is not above all of those before it.
    TokenNotHigher { before: u16, now: u16 },
    /// A lock is granted that another still counts on.
    TwoHold,
}

impl QuorumWorld {
    pub(super) fn new(limits: &QuorumBounds) -> Self {
        let client = Client {
            phase: ClientPhase::Idle,
            leases: 0,
            attempts: 0,
            rounds: 0,
            repeats: 0,
            era: Era::Before,
            number: 0,
            seen: 0,
        };
        Self {
            nodes: limits.clocks.map(ModelNode::new),
            clients: [client; CLIENTS],
            last: 0,
            era: Era::Before,
            copies: 0,
            rejoins: 0,
        }
    }

    /// What the client's ballots amount to, by the kit's own count. `in_time`: if it still waits for
    /// those who have not answered.
    pub(super) fn decision(&self, client: usize, in_time: bool, limits: &QuorumBounds) -> Decision {
        let ballots = self.ballots(client, in_time);
        if limits.has(QuorumFault::AMinorityIsEnough) {
            let accepted = |ballot: &Ballot| {
                matches!(ballot, Ballot::Answered(Vote::Yes { accepted: true, .. }))
            };
            if ballots.iter().any(accepted) {
                return Decision::Granted;
            }
        }
        decide(&ballots)
    }

    pub(super) fn ballots(&self, client: usize, in_time: bool) -> [Ballot; NODES] {
        self.nodes.map(|node| match node.with[client].ballot {
            None if in_time => Ballot::Open,
            None => Ballot::Dead,
            Some(answer) => Ballot::Answered(vote(answer)),
        })
    }

    /// Whether a majority has a client's lease for certain without this node, so that it is renewed
    /// without it. A vote that is being undone is none.
    pub(super) fn stands_without(
        &self,
        client: usize,
        without: usize,
        limits: &QuorumBounds,
    ) -> bool {
        let token = ModelToken::Current(u8::try_from(client).expect("small"));
        let counts = |node: &ModelNode| {
            let undone = node.with[client].way == Way::Withdraw;
            node.keeps(token) && (!undone || limits.has(QuorumFault::WhatIsBeingUndoneIsRenewed))
        };
        let nodes = self.nodes.iter().enumerate();
        let having = nodes.filter(|(place, node)| *place != without && counts(node));
        having.count() >= tally::quorum(NODES)
    }

    /// The client has a majority. Its token must be above all others, and nobody else's may count.
    pub(super) fn grant(
        &mut self,
        client: usize,
        limits: &QuorumBounds,
    ) -> Result<(), QuorumViolation> {
        let holds = |it: &Client| it.phase == ClientPhase::Holding;
        if self.clients.iter().any(holds) {
            return Err(QuorumViolation::TwoHold);
        }
        let number = match limits.rule {
            Rule::ClientsPropose => self.clients[client].number,
            _ => u16::try_from(tally::highest(&self.ballots(client, true))).expect("small"),
        };
        let first = match limits.rule {
            Rule::ClientsPropose => {
                let fence = proposal_number::first_fence(u64::from(number)).expect("in range");
                u16::try_from(u64::from(fence)).expect("small")
            }
            _ => number,
        };
        if first <= self.last {
            return Err(QuorumViolation::TokenNotHigher {
                before: self.last,
                now: first,
            });
        }
        self.last = number;
        let it = &mut self.clients[client];
        it.phase = ClientPhase::Holding;
        it.number = number;
        (it.attempts, it.rounds, it.repeats) = (0, 0, 0);
        for node in &mut self.nodes {
            node.with[client].ballot = None;
        }
        Ok(())
    }

    /// The same world, however its nodes and its clients that are alike are numbered.
    pub(super) fn canonical(&self, limits: &QuorumBounds) -> Self {
        const ORDERS: [[usize; CLIENTS]; 6] = [
            [0, 1, 2],
            [1, 0, 2],
            [0, 2, 1],
            [2, 1, 0],
            [1, 2, 0],
            [2, 0, 1],
        ];
        let alike = |order: &&[usize; CLIENTS]| {
            (0..CLIENTS).all(|place| limits.leases[order[place]] == limits.leases[place])
        };
        let worlds = ORDERS.iter().filter(alike).map(|order| {
            let mut world = self.with_clients_in(*order);
            world.nodes.sort_unstable();
            world
        });
        worlds.min().expect("as it is")
    }

    fn with_clients_in(&self, order: [usize; CLIENTS]) -> Self {
        if order == [0, 1, 2] {
            return *self;
        }
        let mut to = [0; CLIENTS];
        for (place, client) in order.iter().enumerate() {
            to[*client] = u8::try_from(place).expect("small");
        }
        let named = |token: ModelToken| match token {
            ModelToken::Over => ModelToken::Over,
            ModelToken::Late(client) => ModelToken::Late(to[usize::from(client)]),
            ModelToken::Current(client) => ModelToken::Current(to[usize::from(client)]),
        };
        let mut world = *self;
        world.clients = order.map(|client| self.clients[client]);
        for node in &mut world.nodes {
            node.with = order.map(|client| node.with[client]);
            if let Some(lock) = &mut node.lock {
                lock.token = named(lock.token);
            }
            if let Some((_, owner)) = &mut node.register {
                *owner = named(*owner);
            }
        }
        world
    }
}

fn vote(answer: NodeAnswer) -> Vote {
    match answer {
        NodeAnswer::Accepted(highest) => Vote::Yes {
            accepted: true,
            highest: highest.into(),
        },
        NodeAnswer::TooLow(highest) => Vote::Yes {
            accepted: false,
            highest: highest.into(),
        },
        // Whose it is makes no difference here: what is refused is repeated as what is split is.
        NodeAnswer::Taken(highest) => Vote::Taken {
            owner: "another".into(),
            refusal: Refusal {
                cooling: false,
                remaining: None,
                queued: false,
                pushed: false,
                server_time: None,
            },
            highest: highest.into(),
        },
        NodeAnswer::Empty => Vote::Empty(std::time::Duration::ZERO),
    }
}
