//! The keys of an embedded store and their queues: pure, `now` is an argument.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::records::Records;
use super::shares::AskedWaiter;
use super::vote::Registers;
use crate::base::clock::Moment;
use crate::base::fence::FencingToken;
use crate::base::token::{Address, Token};
use crate::lease::Refusal;
use crate::lease::cohort::{GAP, MOST};
use crate::lease::deadline::GRANT;
use crate::store::{
    AcquireCommand, Event, Events, Extended, Extension, Failure, News, Outcome, Release, Released,
    Swap, Swapped,
};

/// For how long a released key is kept for the first waiter. Without it, an owner that takes the key again at
/// once would always come before the waiter that it has just woken.
const TURN: Duration = Duration::from_millis(5);

#[derive(Default)]
pub(super) struct MemoryState {
    pub(super) keys: HashMap<Arc<str>, StoredKey>,
    /// Tokens of waiters by key, in the order of arrival.
    pub(super) queues: HashMap<Arc<str>, VecDeque<Token>>,
    /// For each key the first waiter that was asked whether it still waits.
    pub(super) asked: HashMap<Arc<str>, AskedWaiter>,
    pub(super) records: Records,
    /// The highest fencing token given.
    pub(super) mark: u64,
    /// Used where the store is a node of a quorum.
    pub(super) registers: Registers,
    /// The managers that use this store.
    pub(super) listeners: HashMap<Address, Events>,
    /// The number of keys at which the next sweep removes expired ones.
    sweep_at: usize,
    /// Set by a test: every operation fails with it.
    pub(super) fault: Option<Failure>,
}

pub(super) struct StoredKey {
    pub(super) owner: Owner,
    pub(super) expires: Moment,
    /// The shares of a key that has such, with their ends.
    pub(super) shares: Vec<(Token, Moment)>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Owner {
    Lease(Token),
    Cooling(Token),
    /// Ended with a record, by its number.
    Done(Token, u64),
    /// Released, and kept for the waiter that was notified.
    Promised(Token),
    /// Shares, of which there is at least one.
    Shared,
    /// A client of another library, in a test.
    #[cfg_attr(
        not(feature = "test-util"),
        allow(dead_code, reason = "only tests make one")
    )]
    Stranger,
}

impl Owner {
    /// The value that a server would hold.
    pub(super) fn text(self) -> Box<str> {
        match self {
            Owner::Lease(token) | Owner::Promised(token) => token.to_string().into(),
            Owner::Cooling(token) => format!("cooling/{token}").into(),
            Owner::Done(token, _) => format!("done/{token}").into(),
            Owner::Shared => crate::store::vote::SEVERAL_READERS.into(),
            Owner::Stranger => "a stranger's".into(),
        }
    }
}

/// An event to report once the lock is released.
pub(super) type Wake = Option<(Events, Event)>;

impl MemoryState {
    pub(super) fn acquire(
        &mut self,
        acquire: &AcquireCommand,
        now: Moment,
        unix_micros: u64,
    ) -> (Outcome, Wake) {
        let AcquireCommand {
            key,
            token,
            replaces,
            ..
        } = acquire;
        self.forget_if_over(key, now);
        match self.live(key, now) {
            None => {}
            Some((Owner::Lease(owner) | Owner::Promised(owner), _)) if owner == *token => {}
            Some((Owner::Lease(owner), _))
                if replaces.is_some_and(|replaced| replaced.token == owner) =>
            {
                self.raise(replaces.and_then(|replaced| replaced.fence));
                // The superseded release is under way, and is done here and now. A waiter comes first.
                self.keys.remove(key);
                self.leave_queue(key, *token);
                if let Some(wake) = self.wake(key, now) {
                    let refusal = self.refused(acquire, Owner::Lease(*token), TURN);
                    return (Outcome::Busy(refusal), Some(wake));
                }
            }
            Some((owner, expires)) => {
                return (
                    Outcome::Busy(self.refused(acquire, owner, expires.since(now))),
                    None,
                );
            }
        }
        self.sweep(now);
        let fence = match self.next_fence(unix_micros) {
            Ok(fence) => fence,
            Err(failure) => return (Outcome::Failed(failure), None),
        };
        self.leave_queue(key, *token);
        self.set(key, Owner::Lease(*token), now + acquire.ttl);
        (Outcome::Granted(fence), None)
    }

    /// Gives the next fencing token.
    pub(super) fn next_fence(&mut self, unix_micros: u64) -> Result<FencingToken, Failure> {
        let next = (self.mark + 1).max(unix_micros);
        // A clock that is corrected later leaves no mark behind that is too high.
        let countable = next <= FencingToken::HIGH_WATER_LIMIT;
        let fence = FencingToken::new(next).filter(|_| countable);
        let fence = fence.ok_or_else(|| {
            Failure::refused("the clock is too far in the future for a fencing token")
        })?;
        self.mark = next;
        Ok(fence)
    }

    pub(super) fn extend(&mut self, extension: &Extension, now: Moment) -> Extended {
        if extension.token.share().is_some() {
            return self.extend_share(extension, now);
        }
        match self.keys.get_mut(&extension.key) {
            Some(entry) if entry.expires > now && entry.owner == Owner::Lease(extension.token) => {
                entry.expires = entry.expires.max(now + extension.ttl);
                Extended::Yes
            }
            _ => Extended::NotOurs,
        }
    }

    /// Replaces a token by another. No grant lies between them, so the mark stays.
    pub(super) fn swap(&mut self, swap: &Swap, now: Moment) -> Swapped {
        self.forget_if_over(&swap.key, now);
        let ends = now + swap.ttl;
        let ends = match self.live(&swap.key, now) {
            Some((Owner::Lease(owner), _)) if owner == swap.from => ends,
            // A second copy finds its work done, and only lengthens.
            Some((Owner::Lease(owner), before)) if owner == swap.to => ends.max(before),
            Some((Owner::Shared, _)) if self.is_inside(&swap.key, swap.to) => {
                self.enter(&swap.key, swap.to, ends, now);
                return Swapped::Yes;
            }
            None | Some((Owner::Promised(_), _)) => return Swapped::Absent,
            Some(_) => return Swapped::Other,
        };
        match swap.to.share() {
            Some(_) => self.enter(&swap.key, swap.to, ends, now),
            None => self.set(&swap.key, Owner::Lease(swap.to), ends),
        }
        Swapped::Yes
    }

    pub(super) fn release(&mut self, release: &Release, now: Moment) -> (Outcome, Wake) {
        let released = self.free(release, now);
        (Outcome::Released(released), self.leave(release, now).1)
    }

    /// Frees the key and keeps it for no waiter. The first waiter asks after a while.
    pub(super) fn vacate(&mut self, release: &Release, now: Moment) -> (Outcome, Wake) {
        let Release { key, token, .. } = release;
        let released = self.free(release, now);
        self.leave_queue(key, *token);
        let wake = match released {
            Released::Yes => self.tell_head(key, News::Next(GAP)),
            _ => None,
        };
        (Outcome::Released(released), wake)
    }

    fn free(&mut self, release: &Release, now: Moment) -> Released {
        let Release { key, token, .. } = release;
        self.forget_if_over(key, now);
        match self.live(key, now) {
            Some((Owner::Lease(owner), _)) if owner == *token => {
                self.keys.remove(key);
                self.raise(release.fence);
                Released::Yes
            }
            None | Some((Owner::Promised(_), _)) => Released::Absent,
            Some(_) => Released::Other,
        }
    }

    /// Raises the mark: no later fencing token may be lower than one that was used.
    pub(super) fn raise(&mut self, used: Option<FencingToken>) {
        self.mark = self.mark.max(used.map_or(0, u64::from));
    }

    /// Leaves the queue. A key that was kept for this waiter goes to the next one.
    pub(super) fn leave(&mut self, release: &Release, now: Moment) -> (Outcome, Wake) {
        let Release { key, token, .. } = release;
        self.forget_if_over(key, now);
        self.leave_queue(key, *token);
        let wake = match self.live(key, now) {
            None => self.wake(key, now),
            Some((Owner::Promised(owner), _)) if owner == *token => {
                self.keys.remove(key);
                self.wake(key, now)
            }
            Some(_) => None,
        };
        (Outcome::Released(Released::Absent), wake)
    }

    pub(super) fn cool(
        &mut self,
        release: &Release,
        cooldown: Duration,
        now: Moment,
    ) -> (Outcome, Wake) {
        if cooldown.is_zero() {
            return self.release(release, now);
        }
        let Release { key, token, .. } = release;
        self.forget_if_over(key, now);
        let (released, wake) = match self.live(key, now) {
            Some((Owner::Lease(owner), _)) if owner == *token => {
                self.set(key, Owner::Cooling(*token), now + cooldown);
                self.raise(release.fence);
                // The waiters learn that the key ends at another time.
                (Released::Yes, self.wake(key, now))
            }
            Some((Owner::Cooling(owner), _)) if owner == *token => (Released::Yes, None),
            None | Some((Owner::Promised(_), _)) => (Released::Absent, None),
            Some(_) => (Released::Other, None),
        };
        (Outcome::Released(released), wake)
    }

    /// Sets the key, whatever it holds.
    pub(super) fn set(&mut self, key: &Arc<str>, owner: Owner, expires: Moment) {
        let stored = StoredKey {
            owner,
            expires,
            shares: Vec::new(),
        };
        if let Some(before) = self.keys.insert(Arc::clone(key), stored) {
            self.records.remove(before.owner);
        }
    }

    /// Deletes the key, whatever it holds.
    #[cfg(feature = "test-util")]
    pub(super) fn delete(&mut self, key: &Arc<str>, now: Moment) -> (bool, Wake) {
        let existed = self.keys.remove(key);
        existed
            .iter()
            .for_each(|entry| self.records.remove(entry.owner));
        (existed.is_some(), self.wake(key, now))
    }

    /// The owner of a key, and the end of its lease.
    pub(super) fn live(&self, key: &str, now: Moment) -> Option<(Owner, Moment)> {
        let entry = self.keys.get(key).filter(|entry| entry.expires > now)?;
        Some((entry.owner, entry.expires))
    }

    /// Refuses an acquire, and puts its token into the queue if it waits. A record is an answer, for which no caller
    /// waits.
    pub(super) fn refused(
        &mut self,
        acquire: &AcquireCommand,
        owner: Owner,
        remaining: Duration,
    ) -> Refusal {
        let record = match owner {
            Owner::Done(_, number) => Some(self.records.get(number)),
            _ => None,
        };
        let queues = acquire.queues() && record.is_none();
        if queues {
            let waiting = self.queues.entry(Arc::clone(&acquire.key)).or_default();
            if !waiting.contains(&acquire.token) {
                waiting.push_back(acquire.token);
            }
        }
        Refusal {
            cooling: matches!(owner, Owner::Cooling(_) | Owner::Done(..)),
            record,
            remaining: Some(remaining),
            queued: queues,
            pushed: queues,
            shared: owner == Owner::Shared,
            full: None,
            server_time: None,
        }
    }

    pub(super) fn leave_queue(&mut self, key: &Arc<str>, token: Token) {
        if let Some(waiting) = self.queues.get_mut(key) {
            waiting.retain(|other| *other != token);
            if waiting.is_empty() {
                self.queues.remove(key);
            }
        }
        self.forget_asked(key, token);
    }

    /// Notifies the first waiter, and keeps a free key for it.
    pub(super) fn wake(&mut self, key: &Arc<str>, now: Moment) -> Wake {
        let (_, token) = self.head(key)?;
        if self.live(key, now).is_none() {
            self.set(key, Owner::Promised(token), now + TURN);
        }
        self.tell_head(key, News::Ask)
    }

    /// Notifies the first waiter, and keeps the key for no waiter.
    pub(super) fn tell_head(&mut self, key: &Arc<str>, news: News) -> Wake {
        let (events, token) = self.head(key)?;
        let event = Event::News {
            key: Arc::clone(key),
            token,
            grant: GRANT,
            news,
        };
        Some((events, event))
    }

    /// The first waiter whose manager still listens. Waiters before it are removed.
    pub(super) fn head(&mut self, key: &Arc<str>) -> Option<(Events, Token)> {
        let waiting = self.queues.get_mut(key)?;
        while let Some(token) = waiting.front().copied() {
            if let Some(events) = self.listeners.get(&token.address()) {
                return Some((events.clone(), token));
            }
            waiting.pop_front();
        }
        self.queues.remove(key);
        None
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.keys.remove(key);
    }

    /// Forgets expired keys whenever the number of keys has doubled. So dead owners leave nothing behind, and
    /// each key is looked at a bounded number of times.
    pub(super) fn sweep(&mut self, now: Moment) {
        if self.keys.len() >= self.sweep_at {
            let mut over = Vec::new();
            self.keys.retain(|_, entry| {
                let live = entry.expires > now;
                over.extend((!live).then_some(entry.owner));
                live
            });
            over.into_iter().for_each(|owner| self.ran_out(owner));
            self.sweep_at = (self.keys.len() * 2).max(64);
        }
    }

    pub(super) fn forget_if_over(&mut self, key: &str, now: Moment) {
        if self.keys.get(key).is_some_and(|entry| entry.expires <= now)
            && let Some(entry) = self.keys.remove(key)
        {
            self.ran_out(entry.owner);
        }
    }

    /// Raises the mark for a lease that ran out. Its fencing tokens for the tasks of its process were never
    /// reported, and the clock of the fencing tokens is not the clock that ended it.
    fn ran_out(&mut self, owner: Owner) {
        self.records.remove(owner);
        if let Owner::Lease(_) = owner {
            self.mark += u64::from(MOST);
        }
    }
}
