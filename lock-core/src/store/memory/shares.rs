//! Shares of a key in an embedded store, by the rules of `share.lua`.

use std::sync::Arc;
use std::time::Duration;

use super::state::{MemoryState, Owner};
use crate::base::clock::{Moment, ServerTime};
use crate::base::share::ShareLimit;
use crate::base::token::Token;
use crate::lease::Grant;
use crate::lease::Refusal;
use crate::lease::deadline::GRANT;
use crate::store::{
    AcquireCommand, Event, Events, Extended, Extension, News, Outcome, Release, Released,
};

/// Events to report once the lock is released.
type Told = Vec<(Events, Event)>;

/// A waiter that keeps others out, and was asked whether it still waits.
#[derive(Clone, Copy)]
pub(super) struct AskedWaiter {
    pub(super) token: Token,
    pub(super) at: Moment,
}

impl MemoryState {
    /// Lets a share in, or refuses it. Returns the events for the waiters that were let in too.
    pub(super) fn acquire_share(
        &mut self,
        acquire: &AcquireCommand,
        now: Moment,
        unix_micros: u64,
    ) -> (Outcome, Told) {
        let AcquireCommand {
            key, token, ttl, ..
        } = acquire;
        self.forget_ended(key, now);
        let mut told = Vec::new();
        let asks_again = self.ask_the_one_in_the_way(key, *token, now, &mut told);
        if matches!(self.live(key, now), Some((Owner::Shared, _))) {
            // A waiter that asks is let in by this, if it is its turn.
            told.extend(self.admit(key, now, unix_micros));
        }
        let enters = self.is_inside(key, *token)
            || match self.live(key, now) {
                None => true,
                Some((Owner::Promised(waiter), _)) => waiter == *token,
                Some(_) => self.fits(key, *token, now) && !self.queues.contains_key(key),
            };
        if !enters {
            let (owner, ends) = self.live(key, now).unwrap_or((Owner::Shared, now));
            let earliest = self.keys.get(key).and_then(|stored| {
                let ends = stored.shares.iter().map(|(_, end)| *end);
                ends.min()
            });
            let remaining = earliest.unwrap_or(ends).since(now);
            let remaining = match asks_again {
                Some(after) if acquire.queues() => remaining.min(after),
                _ => remaining,
            };
            let refusal = Refusal {
                full: token.share().filter(|_| self.is_full(key, *token, now)),
                ..self.refused(acquire, owner, remaining)
            };
            return (Outcome::Busy(refusal), told);
        }
        self.sweep(now);
        match self.next_fence(unix_micros) {
            Err(failure) => (Outcome::Failed(failure), told),
            Ok(fence) => {
                self.leave_queue(key, *token);
                self.enter(key, *token, now + *ttl, now);
                told.extend(self.admit(key, now, unix_micros));
                (Outcome::Granted(fence), told)
            }
        }
    }

    /// Returns whether `share.lua` would end this lease or wait.
    pub(super) fn is_beside_shares(&mut self, release: &Release, now: Moment) -> bool {
        release.token.share().is_some()
            || matches!(self.live(&release.key, now), Some((Owner::Shared, _)))
    }

    /// Ends a share, and the wait of a waiter. Those that fit then are let in.
    pub(super) fn end_share(
        &mut self,
        release: &Release,
        leaves: bool,
        now: Moment,
        unix_micros: u64,
    ) -> (Outcome, Told) {
        let Release { key, token, .. } = release;
        self.forget_ended(key, now);
        let released = match self.live(key, now) {
            Some((Owner::Shared, _)) if !leaves && self.remove_share(key, *token) => {
                self.raise(release.fence);
                Released::Yes
            }
            None | Some((Owner::Promised(_), _)) => Released::Absent,
            Some(_) => Released::Other,
        };
        self.leave_queue(key, *token);
        if let Some((Owner::Promised(waiter), _)) = self.live(key, now)
            && waiter == *token
        {
            self.remove(key);
        }
        (
            Outcome::Released(released),
            self.admit(key, now, unix_micros),
        )
    }

    pub(super) fn extend_share(&mut self, extension: &Extension, now: Moment) -> Extended {
        let Extension { key, token, ttl } = extension;
        self.forget_ended(key, now);
        if !self.is_inside(key, *token) {
            return Extended::NotOurs;
        }
        self.enter(key, *token, now + *ttl, now);
        Extended::Yes
    }

    /// Lets in the waiters at the head of the queue that fit, each for its grant.
    pub(super) fn admit(&mut self, key: &Arc<str>, now: Moment, unix_micros: u64) -> Told {
        let mut told = Vec::new();
        while let Some((events, token)) = self.head(key) {
            let is_free = self.live(key, now).is_none();
            if token.share().is_none() {
                // A plain lock takes a free key by itself.
                if is_free {
                    told.extend(self.wake(key, now));
                }
                break;
            }
            if !is_free && !self.fits(key, token, now) {
                break;
            }
            let Ok(fence) = self.next_fence(unix_micros) else {
                break;
            };
            self.leave_queue(key, token);
            self.enter(key, token, now + GRANT, now);
            let given = ServerTime(unix_micros);
            let event = Event::News {
                key: Arc::clone(key),
                token,
                grant: GRANT,
                news: News::Given(Grant {
                    fence,
                    given,
                    ends: given,
                    asks: false,
                }),
            };
            told.push((events, event));
        }
        told
    }

    /// Asks the first waiter to ask again if it alone keeps a share out. Its process takes its turn away if it does not.
    /// Returns in what time the share is to ask about it again.
    fn ask_the_one_in_the_way(
        &mut self,
        key: &Arc<str>,
        token: Token,
        now: Moment,
        told: &mut Told,
    ) -> Option<Duration> {
        if !self.fits(key, token, now) || self.is_inside(key, token) {
            return None;
        }
        let (events, head) = self.head(key)?;
        if head == token || self.fits(key, head, now) {
            return None;
        }
        let asked = self.asked.get(key).filter(|asked| asked.token == head);
        if let Some(asked) = asked
            && now.since(asked.at) < GRANT
        {
            return Some(GRANT.saturating_sub(now.since(asked.at)));
        }
        let asked = AskedWaiter {
            token: head,
            at: now,
        };
        self.asked.insert(Arc::clone(key), asked);
        let event = Event::News {
            key: Arc::clone(key),
            token: head,
            grant: GRANT,
            news: News::Next(Duration::ZERO),
        };
        told.push((events, event));
        Some(GRANT)
    }

    pub(super) fn forget_asked(&mut self, key: &Arc<str>, token: Token) {
        let asked = self.asked.get(key);
        if asked.is_some_and(|asked| asked.token == token) {
            self.asked.remove(key);
        }
    }

    /// Returns whether a share may stand beside those that are inside.
    fn fits(&self, key: &str, token: Token, now: Moment) -> bool {
        self.is_beside_its_kind(key, token, now) && !self.is_full(key, token, now)
    }

    /// Returns whether shares of the same kind are inside: readers, or permits.
    fn is_beside_its_kind(&self, key: &str, token: Token, now: Moment) -> bool {
        let Some((Owner::Shared, _)) = self.live(key, now) else {
            return false;
        };
        let shares = self.keys.get(key).map_or(&[][..], |stored| &stored.shares);
        let is_reader = |token: Token| token.share().map(ShareLimit::is_reader);
        let other = shares.iter().find_map(|(inside, _)| is_reader(*inside));
        is_reader(token).is_some_and(|own| other.is_none_or(|other| own == other))
    }

    /// Returns whether as many shares as the limit of this one are inside.
    fn is_full(&self, key: &str, token: Token, now: Moment) -> bool {
        let inside = self.keys.get(key).map_or(0, |stored| stored.shares.len());
        let limit = token.share().map_or(0, ShareLimit::count);
        self.is_beside_its_kind(key, token, now)
            && u32::try_from(inside).is_ok_and(|inside| inside >= limit)
    }

    pub(super) fn is_inside(&self, key: &str, token: Token) -> bool {
        let stored = self.keys.get(key);
        stored.is_some_and(|stored| stored.shares.iter().any(|(inside, _)| *inside == token))
    }

    /// Lets a share in until `ends`, or lengthens it.
    pub(super) fn enter(&mut self, key: &Arc<str>, token: Token, ends: Moment, now: Moment) {
        if !matches!(self.live(key, now), Some((Owner::Shared, _))) {
            self.set(key, Owner::Shared, ends);
        }
        let Some(stored) = self.keys.get_mut(key) else {
            return;
        };
        match stored
            .shares
            .iter_mut()
            .find(|(inside, _)| *inside == token)
        {
            Some((_, end)) => *end = (*end).max(ends),
            None => stored.shares.push((token, ends)),
        }
        stored.expires = stored.expires.max(ends);
    }

    pub(super) fn remove_share(&mut self, key: &Arc<str>, token: Token) -> bool {
        let Some(stored) = self.keys.get_mut(key) else {
            return false;
        };
        let before = stored.shares.len();
        stored.shares.retain(|(inside, _)| *inside != token);
        let removed = stored.shares.len() < before;
        match stored.shares.iter().map(|(_, end)| *end).max() {
            Some(latest) => stored.expires = latest,
            None => self.remove(key),
        }
        removed
    }

    /// Forgets a key that is over, and shares that have ended beside others.
    pub(super) fn forget_ended(&mut self, key: &Arc<str>, now: Moment) {
        self.forget_if_over(key, now);
        if let Some(stored) = self.keys.get_mut(key) {
            stored.shares.retain(|(_, end)| *end > now);
        }
    }
}
