//! The world of the model: three nodes, clients, and the messages between them.

use super::fault::{QuorumFault, Rule};
use super::inside::ModelToken;
use super::node::{ModelNode, NodeAnswer, Way};
use crate::lease::Refusal;
use crate::store::quorum::proposal_number;
use crate::store::quorum::tally::{self, Ballot, Decision, decide};
use crate::store::vote::Vote;

pub(super) const NODES: usize = 3;
pub(super) const CLIENTS: usize = 3;

/// The time of the clients, before any node has lost its data and after that. Between the two the servers'
/// clocks have gone on by more than the range of all earlier numbers.
const TIMES: [u16; 2] = [100, 10_000];

/// The size of the world, and the faults in it.
#[derive(Clone, Debug)]
pub(super) struct QuorumBounds {
    /// How many leases each client begins.
    pub(super) leases: [u8; CLIENTS],
    /// The clients that are readers.
    pub(super) readers: [bool; CLIENTS],
    /// How often a lease asks again after a failed attempt.
    pub(super) attempts: u8,
    /// How often a higher number is proposed in one attempt.
    pub(super) rounds: u8,
    /// How often a contested attempt withdraws its votes and is repeated. Its time goes on to count from its
    /// first question.
    pub(super) repeats: u8,
    /// How often held leases are proposed to nodes that are without them.
    pub(super) rejoins: u8,
    /// How often a held lease takes a fencing token from the registers of another key.
    pub(super) raises: u8,
    /// By how much clients' clocks may be ahead, in units of a fencing token.
    pub(super) guesses: &'static [u16],
    /// Whether an answer may be on its way for long. Otherwise it arrives when it is given.
    pub(super) apart: bool,
    /// The number of messages that are sent twice.
    pub(super) copies: u8,
    /// Whether a server comes back empty.
    pub(super) restarts: bool,
    /// The clocks of the nodes, for rules that use them.
    pub(super) clocks: [u16; NODES],
    pub(super) rule: Rule,
    pub(super) fault: Option<QuorumFault>,
}

impl QuorumBounds {
    pub(super) fn has(&self, fault: QuorumFault) -> bool {
        self.fault == Some(fault)
    }

    pub(super) fn is_reader(&self, token: ModelToken) -> bool {
        token.client().is_some_and(|client| self.readers[client])
    }

    /// The times that a client may assume.
    pub(super) fn times(&self, era: Era) -> impl Iterator<Item = u16> + '_ {
        let late = era == Era::After && !self.has(QuorumFault::NumbersAreCounted);
        let time = TIMES[usize::from(late)];
        self.guesses.iter().map(move |guess| time + guess)
    }
}

/// The place in time, beside a restart without data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Era {
    Before,
    /// A server has just come back empty.
    Restarted,
    /// Long enough after it for the clocks to be above all earlier numbers.
    After,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ClientPhase {
    /// It asks for nothing, because it has got the lock or has died.
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
    /// Set while the nodes note a higher number. The client does not use this number before a majority has noted it.
    pub(super) is_raising: bool,
    /// The last number of the block that it proposes or may use.
    pub(super) number: u16,
    /// The highest number that it has seen.
    pub(super) seen: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct QuorumWorld {
    pub(super) nodes: [ModelNode; NODES],
    pub(super) clients: [Client; CLIENTS],
    /// The highest fencing token that any client may have used.
    pub(super) last: u16,
    /// The highest that any client but a reader may have used.
    pub(super) last_of_locks: u16,
    pub(super) era: Era,
    pub(super) copies: u8,
    pub(super) rejoins: u8,
    pub(super) raises: u8,
}

/// A state that must never be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuorumViolation {
    /// A lock is granted whose token is not above all earlier ones.
    TokenNotHigher { before: u16, now: u16 },
    /// A lock is granted on which another client still counts.
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
            is_raising: false,
            number: 0,
            seen: 0,
        };
        Self {
            nodes: limits.clocks.map(ModelNode::new),
            clients: [client; CLIENTS],
            last: 0,
            last_of_locks: 0,
            era: Era::Before,
            copies: 0,
            rejoins: 0,
            raises: 0,
        }
    }

    /// The decision on the client's ballots, by the kit's own count. `in_time`: whether it still waits for
    /// silent nodes.
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

    /// Returns whether a majority has a client's lease for certain without this node, so that it is renewed without it.
    /// A vote that is being undone does not count.
    pub(super) fn stands_without(
        &self,
        client: usize,
        without: usize,
        limits: &QuorumBounds,
    ) -> bool {
        let token = ModelToken::Current(u8::try_from(client).expect("small"));
        let counts = |node: &ModelNode| {
            let undone = node.with[client].way == Way::Withdraw;
            node.inside.keeps(token)
                && (!undone || limits.has(QuorumFault::WhatIsBeingUndoneIsRenewed))
        };
        let nodes = self.nodes.iter().enumerate();
        let having = nodes.filter(|(place, node)| *place != without && counts(node));
        having.count() >= tally::quorum(NODES)
    }

    /// The client has a majority. Its token must be above all others, or for a reader above those of all locks. No
    /// other client may count on the key, but a reader beside a reader.
    pub(super) fn grant(
        &mut self,
        client: usize,
        limits: &QuorumBounds,
    ) -> Result<(), QuorumViolation> {
        let is_reader = limits.readers[client];
        let mut holding =
            (0..CLIENTS).filter(|other| self.clients[*other].phase == ClientPhase::Holding);
        if holding.any(|other| !(is_reader && limits.readers[other])) {
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
        let before = match is_reader {
            true => self.last_of_locks,
            false => self.last,
        };
        if first <= before {
            return Err(QuorumViolation::TokenNotHigher { before, now: first });
        }
        // Each task of a lock uses one token of its block. A reader has one.
        let highest = if is_reader { first } else { number };
        self.last = self.last.max(highest);
        if !is_reader {
            self.last_of_locks = number;
        }
        let it = &mut self.clients[client];
        it.phase = ClientPhase::Holding;
        it.number = number;
        (it.attempts, it.rounds, it.repeats) = (0, 0, 0);
        for node in &mut self.nodes {
            node.with[client].ballot = None;
        }
        Ok(())
    }

    /// Returns whether so many nodes have noted a raised number that the lease may use it.
    pub(super) fn is_raised(&self, client: usize, limits: &QuorumBounds) -> bool {
        let noted = self
            .nodes
            .iter()
            .filter(|node| node.with[client].ballot.is_some());
        let enough = match limits.has(QuorumFault::ARaiseNeedsNoMajority) {
            true => 1,
            false => tally::quorum(NODES),
        };
        noted.count() >= enough
    }

    /// The same world, independent of the numbers of nodes and clients that are alike.
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
            (0..CLIENTS).all(|place| {
                limits.leases[order[place]] == limits.leases[place]
                    && limits.readers[order[place]] == limits.readers[place]
            })
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
            node.inside = node.inside.with_clients_in(order);
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
        // The owner makes no difference here, because a refused attempt is repeated like a split vote.
        NodeAnswer::Taken(highest) => Vote::Taken {
            owner: "another".into(),
            refusal: Refusal {
                cooling: false,
                record: None,
                remaining: None,
                queued: false,
                pushed: false,
                shared: false,
                full: None,
                server_time: None,
            },
            highest: highest.into(),
        },
        NodeAnswer::Empty => Vote::Empty(std::time::Duration::ZERO),
    }
}
