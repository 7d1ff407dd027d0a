//! The embedded store as a node of a quorum, by the rules of `propose.lua`, `propose_share.lua` and `withdraw.lua`.
//!
//! The keys and the queues are those of the protocol. A node gives its key to no waiter, because one node cannot know who
//! holds a majority. It tells the first waiters to ask.

use std::collections::HashMap;
use std::time::Duration;

use super::state::MemoryState;
use crate::base::clock::ServerTime;
use crate::base::token::Token;
use crate::lease::cohort::GAP;
use crate::protocol::{Acquire, Around, Document, Ended, Millis, Phase, WORTH_TELLING};
use crate::store::steps::{asked, millis, refusal};
use crate::store::vote::{
    Joined, Propose, SEVERAL_READERS, UpTo, Vote, VoteOperation, VoteOutcome, Withdrawal, accepts,
};
use crate::store::{AcquireCommand, Refusal, Release};

/// The highest number accepted in each register, and its lease.
#[derive(Default)]
pub(super) struct Registers {
    accepted: HashMap<u16, (u64, Token)>,
    name: Option<Token>,
}

impl Registers {
    /// The highest number that a register has accepted, or 0.
    pub(super) fn highest(&self, register: u16) -> u64 {
        let accepted = self.accepted.get(&register);
        accepted.map_or(0, |(number, _)| *number)
    }

    /// Accepts a number for a lease that has the key, or says that it is too low.
    pub(super) fn vote(&mut self, register: u16, number: u64, lease: Token) -> Vote {
        match self.accepted.get(&register) {
            Some((highest, owner)) if !accepts(Some((*highest, *owner == lease)), number) => {
                Vote::Yes {
                    accepted: false,
                    highest: *highest,
                }
            }
            _ => {
                self.accepted.insert(register, (number, lease));
                Vote::Yes {
                    accepted: true,
                    highest: number,
                }
            }
        }
    }

    /// Raises a register to a number of this lease.
    pub(super) fn raise(&mut self, register: u16, number: u64, lease: Token) {
        if self.highest(register) < number {
            self.accepted.insert(register, (number, lease));
        }
    }
}

impl MemoryState {
    pub(super) fn vote(&mut self, operation: VoteOperation, now: ServerTime) -> VoteOutcome {
        match operation {
            VoteOperation::Join(join) => {
                let name = *self.registers.name.get_or_insert(join.name);
                VoteOutcome::Joined(Joined {
                    names: vec![name.to_string()],
                    // The store ends with its process, and so does every lock that it could forget.
                    opens_in: Some(Duration::ZERO),
                    time: now,
                })
            }
            VoteOperation::Propose(propose) => VoteOutcome::voted(self.propose(&propose, now)),
            VoteOperation::Withdraw(release, how, up_to) => {
                self.withdraw(&release, how, up_to, now)
            }
            VoteOperation::Reserve(reserve) => VoteOutcome::Reserved(self.reserve(&reserve, now)),
        }
    }

    fn propose(&mut self, propose: &Propose, now: ServerTime) -> Vote {
        let Propose {
            acquire,
            register,
            number,
            ..
        } = propose;
        let ask = asked(acquire);
        let taken = self.on(&acquire.key, now, |document, around| {
            document.settle(around.now_ms());
            let answer = match ask.token.share() {
                Some(_) => let_reader_in(document, &ask, around),
                None => let_lock_in(document, &ask, around),
            };
            match answer {
                Answer::In => Ok(None),
                Answer::Yields => Err(()),
                Answer::Taken => {
                    let refused = document.refuse(&ask, around);
                    let refusal = Refusal {
                        // A push of a node is no grant.
                        server_time: None,
                        ..refusal(document, &refused, ask.token, now)
                    };
                    Ok(Some((owner_name(document), refusal)))
                }
            }
        });
        match taken {
            Ok(None) => self.registers.vote(*register, *number, ask.token),
            Ok(Some((owner, refusal))) => Vote::Taken {
                owner,
                refusal,
                highest: self.registers.highest(*register),
            },
            Err(()) => Vote::Yields,
        }
    }

    fn withdraw(
        &mut self,
        release: &Release,
        how: Withdrawal,
        up_to: Option<UpTo>,
        now: ServerTime,
    ) -> VoteOutcome {
        let token = release.token;
        // A newer vote of a reader is not told apart.
        if token.share().is_none() && self.has_newer_vote(token, up_to) {
            return VoteOutcome::withdrawn(Ended::Other, false);
        }
        self.on(&release.key, now, |document, around| {
            document.settle(around.now_ms());
            document.settle_shares(around.now_ms());
            let (mut ended, mut sooner) = (document.taken_by_others(), 0);
            if document.is_inside(token) {
                ended = Ended::Yes;
                if how != Withdrawal::Leave {
                    sooner = document.remove(token).unwrap_or(0);
                }
            }
            if how == Withdrawal::Pause {
                return VoteOutcome::withdrawn(ended, false);
            }
            document.leave_queue(token);
            let gap = match how {
                Withdrawal::Gap => millis(GAP),
                _ => 0,
            };
            let after = match token.share() {
                _ if document.is_free() => Some(gap),
                // The readers behind a waiter that leaves may enter beside others.
                None if document.is_shared() => Some(gap),
                // The waiters count on a later end.
                Some(_) if sooner > WORTH_TELLING => document.left(around.now_ms()),
                _ => None,
            };
            let told = after.is_some_and(|after| tells(document, after, around));
            VoteOutcome::withdrawn(ended, told)
        })
    }

    /// Returns whether the lease has had a higher number accepted since.
    fn has_newer_vote(&self, token: Token, up_to: Option<UpTo>) -> bool {
        up_to.is_some_and(|up_to| {
            let accepted = self.registers.accepted.get(&up_to.register);
            accepted.is_some_and(|(number, owner)| *owner == token && *number > up_to.number)
        })
    }

    /// `false`: the key is not the lock's.
    fn reserve(&mut self, reserve: &Propose, now: ServerTime) -> bool {
        let AcquireCommand { key, token, .. } = &reserve.acquire;
        let has = self.on(key, now, |document, around| {
            document.settle(around.now_ms());
            token.share().is_none() && document.hold_of(*token).is_some()
        });
        if has {
            self.registers
                .raise(reserve.register, reserve.number, *token);
        }
        has
    }
}

/// The answer to a proposal.
enum Answer {
    In,
    Taken,
    /// The key is free, and its waiters were told.
    Yields,
}

fn let_lock_in(document: &mut Document, ask: &Acquire, around: &mut Around<'_>) -> Answer {
    if ask.replaces.is_some_and(|before| document.free(before)) {
        document.leave_queue(ask.token);
        if tells(document, 0, around) {
            return Answer::Yields;
        }
    }
    if !document.may_be_had_by(ask.token) {
        return Answer::Taken;
    }
    document.leave_queue(ask.token);
    document.enter(ask.token, around.now_ms() + ask.ttl);
    Answer::In
}

fn let_reader_in(document: &mut Document, ask: &Acquire, around: &mut Around<'_>) -> Answer {
    document.settle_shares(around.now_ms());
    let has = document.is_inside(ask.token);
    let fits = document.is_shared() && !is_behind_a_lock(document, ask.token, around);
    if !has && !document.is_free() && !fits {
        return Answer::Taken;
    }
    document.leave_queue(ask.token);
    document.enter(ask.token, around.now_ms() + ask.ttl);
    let next = document.queue.first();
    // Each reader that enters notifies the one behind it.
    if !has && next.is_some_and(|next| next.token.share().is_some()) {
        document.tell_next(0, around);
    }
    Answer::In
}

/// Returns whether a waiter for the whole key stands before the reader.
fn is_behind_a_lock(document: &Document, token: Token, around: &Around<'_>) -> bool {
    let tokens = document.queue.iter().map(|waiter| waiter.token);
    let mut before = tokens.take_while(|waiter| *waiter != token);
    before.any(|waiter| waiter.share().is_none() && around.hears(waiter))
}

/// Tells the first waiters to ask after a while. Returns whether there are any.
fn tells(document: &mut Document, after: Millis, around: &mut Around<'_>) -> bool {
    let before = around.pushes.len();
    document.tell_next(after, around);
    around.pushes.len() > before
}

/// The name under which the owner of a key is counted.
fn owner_name(document: &Document) -> Box<str> {
    match &document.phase {
        Phase::Free => "".into(),
        Phase::Held(hold) => hold.token.to_string().into(),
        Phase::Closed(closed) => match closed.record {
            Some(_) => format!("done/{}", closed.of).into(),
            None => format!("cooling/{}", closed.of).into(),
        },
        Phase::Shared(shares) => match shares.inside.as_slice() {
            [lone] => lone.token.to_string().into(),
            _ => SEVERAL_READERS.into(),
        },
    }
}
