//! Messages that the store pushes to the waiters of this process.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::Queue;
use super::slot::KeyState;
use crate::active::{ActiveLease, slot_name};
use crate::base::holder_token::HolderToken;
use crate::base::sync::lock;
use crate::base::token::Token;
use crate::lease::backoff::LONGEST;
use crate::store::{News, Refusal};

impl Queue {
    /// Delivers a push to the waiter with `token`. `false`: no such waiter is known here.
    pub(crate) fn tell(self: &Arc<Self>, key: &Arc<str>, token: Token, news: News) -> bool {
        let mut slots = lock(&self.slots);
        let key = &*slots.slot_of(key, token);
        if slots.held_with(key, token).is_some() {
            // A late push: the waiter was told before, and holds the key by now.
            return true;
        }
        let Some(slot) = slots.active.get_mut(key) else {
            return false;
        };
        let contender = slot.contender.as_mut();
        let Some(contender) = contender.filter(|contender| contender.token() == Some(token)) else {
            // The key has come to a waiter of this process that is gone, and the refusal does not stand any more.
            if let (News::Given(_), KeyState::Refused { .. }) = (news, &slot.known) {
                slot.known = KeyState::Unknown;
            }
            return slot.is_releasing(token);
        };
        let news = match news {
            // The open request may be answered by a refusal that is later than this hand-over. The waiter asks once
            // more, and gets the lock if the hand-over is the later one.
            News::Given(_) if contender.in_flight => News::Ask,
            // The store may ask whether the waiter still waits, and passes it over if it has no answer in time.
            News::Next(Duration::ZERO) => News::Ask,
            news => news,
        };
        // A hand-over, and an order to ask now, stand until the waiter has asked. No later push replaces them.
        if !matches!(contender.news, Some(News::Given(_) | News::Ask)) {
            contender.news = Some(news);
        }
        let now = self.now();
        contender.due = contender.due.min(now);
        let waker = contender.waker.take();
        slot.known = match (news, std::mem::take(&mut slot.known)) {
            // Another owner has the key now, for so long. That is a fact for newcomers too. Of a key that has cooled down
            // it is not known whether that owner, or another cooldown, has it.
            (News::Next(after), KeyState::Refused { refusal, .. }) if !refusal.cooling => {
                KeyState::Refused {
                    refusal: Refusal {
                        remaining: Some(after),
                        ..refusal
                    },
                    at: now,
                    until: now + after.min(LONGEST),
                }
            }
            // The refusal does not stand any more.
            _ => KeyState::Unknown,
        };
        let look = slot.plan_check();
        drop(slots);
        waker.into_iter().for_each(Waker::wake);
        self.check_at(key, look);
        true
    }

    /// Returns the lease of a key whose token this is, if this process holds it.
    pub(crate) fn held_by(&self, key: &Arc<str>, holder: &HolderToken) -> Option<Arc<ActiveLease>> {
        let token = holder.token()?;
        let slots = lock(&self.slots);
        let lease = slots.held_with(&slot_name(key, token), token);
        lease.map(Arc::clone)
    }

    /// As [`held_by`](Self::held_by), because an operator has freed the key. A waiter that was given the key and has
    /// not taken it up asks first. One whose question or swap is in flight loses a grant that answers it.
    pub(crate) fn force(
        self: &Arc<Self>,
        key: &Arc<str>,
        holder: &HolderToken,
    ) -> Option<Arc<ActiveLease>> {
        if let Some(lease) = self.held_by(key, holder) {
            return Some(lease);
        }
        let token = holder.token()?;
        let now = self.now();
        let mut slots = lock(&self.slots);
        slots.free_swapped_in(token);
        let name = slots.slot_of(key, token);
        let slot = slots.active.get_mut(&*name)?;
        let contender = slot.contender.as_mut();
        let contender = contender.filter(|contender| contender.token() == Some(token))?;
        contender.news = Some(News::Ask);
        contender.freed = true;
        contender.due = contender.due.min(now);
        let waker = contender.waker.take();
        drop(slots);
        waker.into_iter().for_each(Waker::wake);
        None
    }

    /// Has every contender ask again, at once or after a while. Earlier refusals are no facts any more.
    pub(crate) fn tell_all(self: &Arc<Self>, news: News) {
        let now = self.now();
        let (mut wakers, mut looks) = (Vec::new(), Vec::new());
        let mut slots = lock(&self.slots);
        for (key, slot) in &mut slots.active {
            if let Some(contender) = &mut slot.contender {
                contender.news = Some(news);
                contender.due = contender.due.min(now);
                wakers.extend(contender.waker.take());
                if let KeyState::Refused { refusal, .. } = &mut slot.known {
                    refusal.pushed = false;
                }
                looks.push((Arc::clone(key), slot.plan_check()));
            }
        }
        drop(slots);
        wakers.into_iter().for_each(Waker::wake);
        for (key, look) in looks {
            self.check_at(&key, look);
        }
    }
}

#[cfg(test)]
#[path = "pushes_tests.rs"]
mod tests;
