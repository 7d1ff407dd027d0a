//! The embedded store as a node of a quorum.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::state::{MemoryState, Owner, Wake};
use crate::base::clock::{Moment, ServerTime};
use crate::base::token::Token;
use crate::lease::cohort::GAP;
use crate::store::vote::{
    Joined, Propose, UpTo, Vote, VoteOperation, VoteOutcome, Withdrawal, accepts,
};
use crate::store::{AcquireCommand, News, Outcome, Release, Released};

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
        let register = self.accepted.entry(register);
        let before = match &register {
            Entry::Occupied(register) => Some(*register.get()),
            Entry::Vacant(_) => None,
        };
        let own = before.map(|(highest, owner)| (highest, owner == lease));
        let accepted = accepts(own, number);
        if accepted {
            register.insert_entry((number, lease));
        }
        Vote::Yes {
            accepted,
            highest: match (accepted, before) {
                (false, Some((highest, _))) => highest,
                _ => number,
            },
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
    pub(super) fn vote(
        &mut self,
        operation: VoteOperation,
        now: Moment,
        unix_micros: u64,
    ) -> (Outcome, Wake) {
        let (outcome, wake) = match operation {
            VoteOperation::Join(join) => {
                let name = *self.registers.name.get_or_insert(join.name);
                let joined = Joined {
                    names: vec![name.to_string()],
                    // The store ends with its process, and so does every lock that it could forget.
                    opens_in: Some(std::time::Duration::ZERO),
                    time: ServerTime(unix_micros),
                };
                (VoteOutcome::Joined(joined), None)
            }
            VoteOperation::Propose(propose) => {
                let (vote, wake) = match propose.acquire.token.share() {
                    Some(_) => self.propose_share(&propose, now),
                    None => self.propose(&propose, now),
                };
                (VoteOutcome::voted(vote), wake)
            }
            VoteOperation::Withdraw(release, how, up_to) => match release.token.share() {
                Some(_) => self.withdraw_share(&release, how, now),
                None => self.withdraw(&release, how, up_to, now),
            },
            VoteOperation::Reserve(reserve) => {
                let reserved = self.reserve(&reserve, now);
                (VoteOutcome::Reserved(reserved), None)
            }
        };
        (Outcome::Vote(outcome), wake)
    }

    fn propose(&mut self, propose: &Propose, now: Moment) -> (Vote, Wake) {
        let Propose {
            acquire,
            register,
            number,
            ..
        } = propose;
        let token = acquire.token;
        match self.live(&acquire.key, now) {
            Some((Owner::Lease(owner), _)) if owner == token => {}
            Some((Owner::Lease(owner), _))
                if acquire
                    .replaces
                    .is_some_and(|replaced| replaced.token == owner) =>
            {
                self.remove(&acquire.key);
                self.leave_queue(&acquire.key, token);
                if let Some(wake) = self.tell_head(&acquire.key, News::Ask) {
                    return (Vote::Yields, Some(wake));
                }
            }
            Some((owner, expires)) => {
                let vote = Vote::Taken {
                    owner: self.owner_name(&acquire.key, owner),
                    refusal: self.refused(acquire, owner, expires.since(now)),
                    highest: self.registers.highest(*register),
                };
                return (vote, None);
            }
            None => {}
        }
        self.sweep(now);
        self.leave_queue(&acquire.key, token);
        self.set(&acquire.key, Owner::Lease(token), now + acquire.ttl);
        (self.registers.vote(*register, *number, token), None)
    }

    fn withdraw(
        &mut self,
        release: &Release,
        how: Withdrawal,
        up_to: Option<UpTo>,
        now: Moment,
    ) -> (VoteOutcome, Wake) {
        if self.has_newer_vote(release.token, up_to) {
            return (VoteOutcome::withdrawn(Released::Other, false), None);
        }
        let released = match self.live(&release.key, now) {
            Some((Owner::Lease(owner), _)) if owner == release.token => {
                if how != Withdrawal::Leave {
                    self.remove(&release.key);
                }
                Released::Yes
            }
            None => Released::Absent,
            Some(_) => Released::Other,
        };
        let mut wake = None;
        if how != Withdrawal::Pause {
            self.leave_queue(&release.key, release.token);
            // The readers behind a waiter that leaves may enter beside others.
            if matches!(
                self.live(&release.key, now),
                None | Some((Owner::Shared, _))
            ) {
                let news = match how {
                    Withdrawal::Gap => News::Next(GAP),
                    _ => News::Ask,
                };
                wake = self.tell_head(&release.key, news);
            }
        }
        let told = wake.is_some();
        (VoteOutcome::withdrawn(released, told), wake)
    }

    /// Returns whether the lease has had a higher number accepted since.
    fn has_newer_vote(&self, token: Token, up_to: Option<UpTo>) -> bool {
        up_to.is_some_and(|up_to| {
            let accepted = self.registers.accepted.get(&up_to.register);
            accepted.is_some_and(|(number, owner)| *owner == token && *number > up_to.number)
        })
    }

    /// `false`: the key is not the lease's.
    fn reserve(&mut self, reserve: &Propose, now: Moment) -> bool {
        let AcquireCommand { key, token, .. } = &reserve.acquire;
        match self.live(key, now) {
            Some((Owner::Lease(owner), _)) if owner == *token => {}
            _ => return false,
        }
        let accepted = &mut self.registers.accepted;
        let register = accepted
            .entry(reserve.register)
            .or_insert((reserve.number, *token));
        if register.0 < reserve.number {
            *register = (reserve.number, *token);
        }
        true
    }
}
