//! A node of the model: what the embedded store's `vote.rs` and the scripts of a server do, without
//! queues and without time.

use super::fault::{QuorumFault, Rule};
use super::world::{CLIENTS, QuorumBounds};
use crate::store::vote::accepts;

/// Whose a lock or a number is. A lease that nobody counts on and that sends nothing more is nobody's
/// in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ModelToken {
    Over,
    /// Of this client's lease of before, of which a question is still on its way.
    Late(u8),
    /// Of its lease of now.
    Current(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Lock {
    pub(super) token: ModelToken,
    /// It was set before the attempt of now began: it may run out before that does.
    pub(super) stale: bool,
}

/// What a node says to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum NodeAnswer {
    /// The key, and the number. With the naive maximum the number is the node's.
    Accepted(u16),
    /// The key; but the number is too low for what the register holds.
    TooLow(u16),
    /// Another has the key.
    Taken(u16),
    /// It came back without data, and does not vote yet.
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

/// Meanwhile a client and a node. One question, or its undoing, at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Way {
    Nothing,
    Propose(u16),
    /// The vote is given back; the same lease asks again.
    Withdraw,
    /// On its way back, to this number.
    Answered(u16, NodeAnswer),
    /// A lease that is held is proposed to a node that is without it.
    Rejoin(u16),
    /// It has taken it, and its register is still to hear of the number.
    Aside(u16),
}

/// Sent long ago, and not arrived yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Straggler {
    pub(super) what: Way,
    /// Of the lease of now: it was sent twice.
    pub(super) current: bool,
}

/// What one client and one node have to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Meanwhile {
    /// The node's vote in the round of now; nothing: it may still come. Of a lease that sets tokens
    /// aside: whether the node has.
    pub(super) ballot: Option<NodeAnswer>,
    pub(super) way: Way,
    pub(super) straggler: Option<Straggler>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ModelNode {
    pub(super) lock: Option<Lock>,
    /// The highest number accepted, and for whom. With the naive maximum, the count.
    pub(super) register: Option<(u16, ModelToken)>,
    pub(super) kept_out: bool,
    /// What the node's own clock shows, for who believes in it.
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
            lock: None,
            register: None,
            kept_out: false,
            clock,
            with: [between; CLIENTS],
        }
    }

    pub(super) fn has(&self, token: ModelToken) -> bool {
        self.lock.is_some_and(|lock| lock.token == token)
    }

    /// It has it, and keeps it at least until the attempt's deadline.
    pub(super) fn keeps(&self, token: ModelToken) -> bool {
        self.lock
            .is_some_and(|lock| lock.token == token && !lock.stale)
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
        let again = self.has(token);
        if self.lock.is_some() && !again {
            return NodeAnswer::Taken(highest);
        }
        self.lock = Some(Lock {
            token,
            stale: false,
        });
        match limits.rule {
            Rule::ClientsPropose => {}
            // The same question is answered alike.
            _ if again => return NodeAnswer::Accepted(highest),
            Rule::HighestCount => return self.count(token, highest + 1),
            Rule::HighestClock => return self.count(token, (highest + 1).max(self.clock)),
        }
        if !self.accepts(token, number, limits) {
            return NodeAnswer::TooLow(highest);
        }
        if !(again && limits.has(QuorumFault::NotRecordedAtTheSecondRound)) {
            self.register = Some((number, token));
        }
        NodeAnswer::Accepted(number)
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

    /// Deletes what holds this very token. A real node leaves a vote that is newer than the withdrawal; without that
    /// the model finds more than can happen.
    pub(super) fn withdraw(&mut self, token: ModelToken) {
        if self.has(token) {
            self.lock = None;
        }
    }

    /// Takes a lease that is held and that it is without, if the key is free.
    pub(super) fn rejoin(
        &mut self,
        token: ModelToken,
        number: u16,
        limits: &QuorumBounds,
    ) -> NodeAnswer {
        if limits.has(QuorumFault::ARejoiningLeaseTakesTheKey) && !self.kept_out {
            self.lock = None;
        }
        self.propose(token, number, limits)
    }

    /// Raises the register to the number of a lease that has the key.
    pub(super) fn set_aside(&mut self, token: ModelToken, number: u16) {
        if self.has(token) && self.register.is_none_or(|(highest, _)| highest < number) {
            self.register = Some((number, token));
        }
    }

    /// Its server came back without its data.
    pub(super) fn restart_empty(&mut self) {
        self.lock = None;
        self.register = None;
        self.kept_out = true;
    }
}
