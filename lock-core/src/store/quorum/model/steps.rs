//! All steps that can happen next.

use super::fault::QuorumFault;
use super::inside::ModelToken;
use super::node::Way;
use super::world::{CLIENTS, ClientPhase, Era, NODES, QuorumBounds, QuorumWorld};
use crate::store::quorum::tally::Decision;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuorumStep {
    /// The client asks for a new lease, with this time.
    Begin {
        client: usize,
        time: u16,
    },
    /// A question, or its undoing, arrives.
    Arrive {
        client: usize,
        node: usize,
    },
    /// An answer arrives.
    Hear {
        client: usize,
        node: usize,
    },
    /// Its connection breaks, so that it is sent once more.
    Copy {
        client: usize,
        node: usize,
    },
    /// It is known never to arrive.
    Lost {
        client: usize,
        node: usize,
    },
    ArriveLate {
        client: usize,
        node: usize,
    },
    /// A majority has agreed.
    Grant {
        client: usize,
    },
    /// A majority has the lock for the lease, but not the number.
    ProposeHigher {
        client: usize,
    },
    /// The client withdraws its votes, and the same lease asks again.
    AskAgain {
        client: usize,
        time: u16,
    },
    /// The client withdraws its votes, and the same attempt goes on with another round.
    Repeat {
        client: usize,
        time: u16,
    },
    /// The lease is over: released, given up, past its deadline, or its client is dead. One of its open
    /// questions may still arrive.
    End {
        client: usize,
        arrives: Option<usize>,
    },
    /// A renewal finds a vote of an earlier attempt, and lengthens it.
    Renew {
        client: usize,
        node: usize,
    },
    /// A renewal finds a node without the lease, and a majority with it, and proposes it there.
    Rejoin {
        client: usize,
        node: usize,
    },
    /// A held lease takes a higher number, from the registers of another key.
    Raise {
        client: usize,
    },
    /// A majority has noted the higher number.
    Raised {
        client: usize,
    },
    /// The key, or the place of a reader, expires.
    Expire {
        node: usize,
        token: ModelToken,
    },
    RestartEmpty {
        node: usize,
    },
    TimeGoesOn,
    /// The locks that the node may have forgotten have expired, and it votes again.
    Reopen {
        node: usize,
    },
}

impl QuorumWorld {
    pub(super) fn steps(&self, limits: &QuorumBounds, steps: &mut Vec<QuorumStep>) {
        for client in 0..CLIENTS {
            match self.clients[client].phase {
                ClientPhase::Idle if self.clients[client].leases < limits.leases[client] => {
                    let times = limits.times(self.era);
                    steps.extend(times.map(|time| QuorumStep::Begin { client, time }));
                }
                ClientPhase::Idle => {}
                ClientPhase::Asking => self.steps_of_who_asks(client, limits, steps),
                ClientPhase::Holding => self.steps_of_who_holds(client, limits, steps),
            }
            for node in 0..NODES {
                self.steps_between(client, node, limits, steps);
            }
        }
        for node in 0..NODES {
            let tokens = self.nodes[node].inside.tokens();
            let ended = tokens.filter(|token| self.may_expire(node, *token, limits));
            steps.extend(ended.map(|token| QuorumStep::Expire { node, token }));
            if limits.restarts && self.era == Era::Before {
                steps.push(QuorumStep::RestartEmpty { node });
            }
            if self.nodes[node].kept_out && self.may_reopen(node, limits) {
                steps.push(QuorumStep::Reopen { node });
            }
        }
        if self.era == Era::Restarted {
            steps.push(QuorumStep::TimeGoesOn);
        }
    }

    fn steps_of_who_asks(&self, client: usize, limits: &QuorumBounds, steps: &mut Vec<QuorumStep>) {
        let it = &self.clients[client];
        let decision = match self.decision(client, true, limits) {
            Decision::Wait => self.decision(client, false, limits),
            clear => clear,
        };
        match decision {
            Decision::Granted => steps.push(QuorumStep::Grant { client }),
            Decision::TooLow if it.rounds < limits.rounds => {
                steps.push(QuorumStep::ProposeHigher { client });
            }
            decision => {
                if it.attempts < limits.attempts {
                    let times = limits.times(self.era);
                    steps.extend(times.map(|time| QuorumStep::AskAgain { client, time }));
                }
                let repeats = !matches!(decision, Decision::Unavailable | Decision::Wait);
                if repeats && it.repeats < limits.repeats {
                    let times = limits.times(self.era);
                    steps.extend(times.map(|time| QuorumStep::Repeat { client, time }));
                }
            }
        }
        self.ends(client, steps);
    }

    fn steps_of_who_holds(
        &self,
        client: usize,
        limits: &QuorumBounds,
        steps: &mut Vec<QuorumStep>,
    ) {
        let token = ModelToken::Current(u8::try_from(client).expect("small"));
        let old = |node: &usize| {
            self.nodes[*node].inside.has(token) && !self.nodes[*node].inside.keeps(token)
        };
        steps.extend(
            (0..NODES)
                .filter(old)
                .map(|node| QuorumStep::Renew { client, node }),
        );
        if self.raises < limits.raises {
            steps.push(QuorumStep::Raise { client });
        }
        if self.is_raised(client, limits) {
            steps.push(QuorumStep::Raised { client });
        }
        if self.rejoins < limits.rejoins {
            let without = |node: &usize| {
                let way = self.nodes[*node].with[client].way;
                let may_be_asked = way == Way::Nothing
                    || (way == Way::Withdraw && limits.has(QuorumFault::RejoinsBesideAnUndoing));
                may_be_asked
                    && !self.nodes[*node].inside.has(token)
                    && self.stands_without(client, *node, limits)
            };
            let rejoin = |node| QuorumStep::Rejoin { client, node };
            steps.extend((0..NODES).filter(without).map(rejoin));
        }
        self.ends(client, steps);
    }

    fn ends(&self, client: usize, steps: &mut Vec<QuorumStep>) {
        let asked = |node: &usize| {
            let way = self.nodes[*node].with[client].way;
            matches!(way, Way::Propose(_) | Way::Rejoin(_) | Way::Aside(_))
        };
        let end = |arrives| QuorumStep::End { client, arrives };
        steps.push(end(None));
        steps.extend((0..NODES).filter(asked).map(|node| end(Some(node))));
    }

    fn steps_between(
        &self,
        client: usize,
        node: usize,
        limits: &QuorumBounds,
        steps: &mut Vec<QuorumStep>,
    ) {
        let between = &self.nodes[node].with[client];
        match between.way {
            Way::Nothing => {}
            Way::Propose(_) | Way::Withdraw | Way::Rejoin(_) | Way::Aside(_) => {
                steps.push(QuorumStep::Arrive { client, node });
                let has_straggler = |node: usize| self.nodes[node].with[client].straggler.is_some();
                // Undoing counts as done when no command of it can arrive any more.
                let most = match between.way {
                    Way::Withdraw => u8::from(limits.has(QuorumFault::UndoneWhenACopyIs)),
                    _ => limits.copies,
                };
                if self.copies < most && !(0..NODES).any(has_straggler) {
                    steps.push(QuorumStep::Copy { client, node });
                }
                let old = |way| matches!(way, Way::Propose(number) if number != self.clients[client].number);
                if old(between.way) && between.ballot.is_none() {
                    steps.push(QuorumStep::Lost { client, node });
                }
            }
            Way::Answered(..) => steps.push(QuorumStep::Hear { client, node }),
        }
        if between.straggler.is_some() {
            steps.push(QuorumStep::ArriveLate { client, node });
        }
    }

    /// Returns whether the key may expire, or get lost within the promises: not while a client counts on it, unless a
    /// majority of other nodes has it.
    fn may_expire(&self, node: usize, token: ModelToken, limits: &QuorumBounds) -> bool {
        let ModelToken::Current(client) = token else {
            return true;
        };
        let client = usize::from(client);
        let asks = self.clients[client].phase == ClientPhase::Asking;
        let is_stale = !self.nodes[node].inside.keeps(token);
        if is_stale || (asks && limits.has(QuorumFault::GrantedAfterTheDeadline)) {
            return true;
        }
        !asks && self.stands_without(client, node, limits)
    }

    /// Returns whether the longest ttl may have passed since the node came back. Every client that asked before that
    /// has been granted the lock or not by then, and a lock on this node and one other is not renewed. An
    /// attempt is much shorter than that, so one that is under way began after the clocks went on.
    fn may_reopen(&self, node: usize, limits: &QuorumBounds) -> bool {
        self.clients
            .iter()
            .enumerate()
            .all(|(client, it)| match it.phase {
                ClientPhase::Idle => true,
                ClientPhase::Asking => it.era == Era::After,
                ClientPhase::Holding => {
                    it.era != Era::Before || self.stands_without(client, node, limits)
                }
            })
            && self.era == Era::After
    }
}
