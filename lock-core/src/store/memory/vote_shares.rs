//! The embedded store as a node of a quorum, for readers, by the rules of `propose_share.lua`.

use std::sync::Arc;

use super::state::{MemoryState, Owner, Wake};
use crate::base::clock::Moment;
use crate::base::token::Token;
use crate::lease::cohort::GAP;
use crate::store::vote::{Propose, Vote, VoteOutcome, Withdrawal};
use crate::store::{News, Release, Released};

impl MemoryState {
    pub(super) fn propose_share(&mut self, propose: &Propose, now: Moment) -> (Vote, Wake) {
        let acquire = &propose.acquire;
        let (key, token) = (&acquire.key, acquire.token);
        self.forget_ended(key, now);
        let has = self.is_inside(key, token);
        match self.live(key, now) {
            None => {}
            Some((Owner::Shared, _)) if has || !self.is_behind_a_lock(key, token) => {}
            Some((owner, expires)) => {
                let vote = Vote::Taken {
                    owner: self.owner_name(key, owner),
                    refusal: self.refused(acquire, owner, expires.since(now)),
                    highest: self.registers.highest(propose.register),
                };
                return (vote, None);
            }
        }
        self.sweep(now);
        self.leave_queue(key, token);
        self.enter(key, token, now + acquire.ttl, now);
        let next = self.head(key).map(|(_, token)| token);
        // Each reader that enters notifies the one behind it.
        let wake = match next.filter(|next| !has && next.share().is_some()) {
            Some(_) => self.tell_head(key, News::Ask),
            None => None,
        };
        let vote = self.registers.vote(propose.register, propose.number, token);
        (vote, wake)
    }

    pub(super) fn withdraw_share(
        &mut self,
        release: &Release,
        how: Withdrawal,
        now: Moment,
    ) -> (VoteOutcome, Wake) {
        let Release { key, token, .. } = release;
        self.forget_ended(key, now);
        let released = match self.live(key, now) {
            None => Released::Absent,
            Some((Owner::Shared, _)) if self.is_inside(key, *token) => Released::Yes,
            Some(_) => Released::Other,
        };
        if how != Withdrawal::Leave && released == Released::Yes {
            self.remove_share(key, *token);
        }
        let mut wake = None;
        if how != Withdrawal::Pause {
            self.leave_queue(key, *token);
            if self.live(key, now).is_none() {
                let news = match how {
                    Withdrawal::Gap => News::Next(GAP),
                    _ => News::Ask,
                };
                wake = self.tell_head(key, news);
            }
        }
        let told = wake.is_some();
        (VoteOutcome::withdrawn(released, told), wake)
    }

    /// The name under which the owner of a key is counted.
    pub(super) fn owner_name(&self, key: &str, owner: Owner) -> Box<str> {
        let shares = self.keys.get(key).map_or(&[][..], |stored| &stored.shares);
        match (owner, shares) {
            (Owner::Shared, [(lone, _)]) => lone.to_string().into(),
            _ => owner.text(),
        }
    }

    /// Returns whether a waiter for the whole key stands before the reader.
    fn is_behind_a_lock(&self, key: &Arc<str>, token: Token) -> bool {
        let waiting = self.queues.get(key).into_iter().flatten();
        let mut before = waiting.take_while(|waiter| **waiter != token);
        before.any(|waiter| {
            waiter.share().is_none() && self.listeners.contains_key(&waiter.address())
        })
    }
}
