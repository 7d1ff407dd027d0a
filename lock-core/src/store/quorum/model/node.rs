//! A node of the model: the embedded store's `vote.rs` and the scripts of a server, without queues and without
//! time.

use super::fault::{QuorumFault, Rule};
use super::inside::{Inside, ModelToken};
use super::world::{CLIENTS, QuorumBounds};
use crate::store::vote::accepts;

/// The answer of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum NodeAnswer {
    /// The key and the number. With the naive maximum the number is the node's.
    Accepted(u16),
    /// The key, but the number is too low for the register.
    TooLow(u16),
    /// Another owner has the key.
    Taken(u16),
    /// The node came back without data, and does not vote yet.
    Empty,
}

impl NodeAnswer {
    pub(super) fn highest(self) -> u16 {
        match self {
            NodeAnswer::Accepted(highest)
            | NodeAnswer::TooLow(highest)
            | NodeAnswer::Taken(highest) => highest,
            NodeAnswer::Empty => 0,
        }
    }
}

/// The message between a client and a node: one question, or its undoing, at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Way {
    Nothing,
    Propose(u16),
    /// Withdraws the vote; the same lease asks again.
    Withdraw,
    /// The answer on its way back, to this number.
    Answered(u16, NodeAnswer),
    /// Proposes a held lease to a node that is without it.
    Rejoin(u16),
    /// The node has taken the lease, and its register still lacks the number.
    Aside(u16),
}

/// A question that was sent long ago and has not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Straggler {
    pub(super) what: Way,
    /// Whether it is a copy of the current lease's question.
    pub(super) current: bool,
}

/// All state between one client and one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Meanwhile {
    /// The node's vote in the current round; `None`: it may still arrive. Of a lease that reserves tokens:
    /// whether the node has them.
    pub(super) ballot: Option<NodeAnswer>,
    pub(super) way: Way,
    pub(super) straggler: Option<Straggler>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ModelNode {
    pub(super) inside: Inside,
    /// The highest number accepted, and its owner. With the naive maximum, the count.
    pub(super) register: Option<(u16, ModelToken)>,
    pub(super) kept_out: bool,
    /// The time of the node's own clock, for rules that use it.
    pub(super) clock: u16,
    pub(super) with: [Meanwhile; CLIENTS],
}

impl ModelNode {
    pub(super) fn new(clock: u16) -> Self {
        let between = Meanwhile {
            ballot: None,
            way: Way::Nothing,
            straggler: None,
        };
        Self {
            inside: Inside::NOTHING,
            register: None,
            kept_out: false,
            clock,
            with: [between; CLIENTS],
        }
    }

    pub(super) fn propose(
        &mut self,
        token: ModelToken,
        number: u16,
        limits: &QuorumBounds,
    ) -> NodeAnswer {
        if self.kept_out {
            return NodeAnswer::Empty;
        }
        let highest = self.register.map_or(0, |(highest, _)| highest);
        let again = self.inside.has(token);
        let is_reader = limits.is_reader(token);
        if !again && !self.admits(is_reader, limits) {
            return NodeAnswer::Taken(highest);
        }
        self.inside.enter(token, is_reader);
        match limits.rule {
            Rule::ClientsPropose => {}
            // The same question has the same answer.
            _ if again => return NodeAnswer::Accepted(highest),
            Rule::HighestCount => return self.count(token, highest + 1),
            Rule::HighestClock => return self.count(token, (highest + 1).max(self.clock)),
        }
        if !self.accepts(token, number, limits) {
            return NodeAnswer::TooLow(highest);
        }
        let forgets = match limits.fault {
            Some(QuorumFault::NotRecordedAtTheSecondRound) => again,
            Some(QuorumFault::AReadersNumberIsNotRecorded) => is_reader,
            _ => false,
        };
        if !forgets {
            self.register = Some((number, token));
        }
        NodeAnswer::Accepted(number)
    }

    /// Returns whether the key is free, or has readers for another reader.
    fn admits(&self, is_reader: bool, limits: &QuorumBounds) -> bool {
        self.inside.is_free()
            || match limits.fault {
                Some(QuorumFault::AReaderEntersBesideALock) => is_reader,
                Some(QuorumFault::ALockEntersBesideReaders) => self.inside.is_shared(),
                _ => is_reader && self.inside.is_shared(),
            }
    }

    fn accepts(&self, token: ModelToken, number: u16, limits: &QuorumBounds) -> bool {
        let register = self
            .register
            .map(|(highest, owner)| (u64::from(highest), owner == token));
        let (number, (highest, _)) = (u64::from(number), register.unwrap_or_default());
        match limits.fault {
            Some(QuorumFault::AnEqualNumberIsAccepted) if number == highest => true,
            Some(QuorumFault::TheBlockIsForgotten) if number > highest => true,
            _ => accepts(register, number),
        }
    }

    fn count(&mut self, token: ModelToken, number: u16) -> NodeAnswer {
        self.register = Some((number, token));
        NodeAnswer::Accepted(number)
    }

    /// Ends the lease if it has the key. A real node leaves a vote of a lock that is newer than the withdrawal. Without
    /// that the model explores more than can happen.
    pub(super) fn withdraw(&mut self, token: ModelToken, limits: &QuorumBounds) {
        if limits.has(QuorumFault::OneReaderEndsAll) && self.inside.has(token) {
            self.inside = Inside::NOTHING;
        }
        self.inside.leave(token);
    }

    /// The place of a lease ends with its ttl.
    pub(super) fn expire(&mut self, token: ModelToken, limits: &QuorumBounds) {
        self.withdraw(token, limits);
    }

    /// Takes a held lease that the node is without, if the key is free.
    pub(super) fn rejoin(
        &mut self,
        token: ModelToken,
        number: u16,
        limits: &QuorumBounds,
    ) -> NodeAnswer {
        if limits.has(QuorumFault::ARejoiningLeaseTakesTheKey) && !self.kept_out {
            self.inside = Inside::NOTHING;
        }
        self.propose(token, number, limits)
    }

    /// Raises the register to the number of a lock that has the key. A reader uses the first token of its block only, and
    /// a register that found its number too low is not below that.
    pub(super) fn set_aside(&mut self, token: ModelToken, number: u16, limits: &QuorumBounds) {
        if self.inside.has(token)
            && !limits.is_reader(token)
            && self.register.is_none_or(|(highest, _)| highest < number)
        {
            self.register = Some((number, token));
        }
    }

    /// Its server came back without its data.
    pub(super) fn restart_empty(&mut self) {
        self.inside = Inside::NOTHING;
        self.register = None;
        self.kept_out = true;
    }
}
