//! Shares in the queue of the process.
//!
//! Shares of one key do not wait for one another, so each share that is held has a slot of its own. Those that wait stand
//! in lines, each a slot as that of a lock: the first of a line is the contender and asks the store, and when it has
//! entered, the next one does. So a waiter whose future is not polled loses its turn as one that waits for a lock does, see
//! [`stalled`](super::stalled).
//!
//! Permits of a process stand in one line, so that a process that dies costs the others one grant. Readers stand in
//! several, so that those of a process enter together when a writer ends. A writer that is queued behind them would
//! otherwise come after the first. The store gives them their grants at the same moment.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use super::{Contender, Queue, Slots};
use crate::active::{
    ActiveLease, OWN_LINE, SlotName, is_own_line, key_of_share, line_name, slot_name,
};
use crate::base::clock::Moment;
use crate::base::share::ShareLimit;
use crate::base::sync::lock;
use crate::base::token::Token;

/// How many readers of a key one process puts into the store's queue.
const READERS_IN_STORE: usize = 16;

/// The names of the slots in which shares of a key wait.
fn lines(key: &str, limit: ShareLimit) -> impl Iterator<Item = Arc<str>> {
    let (kind, count) = match limit.is_reader() {
        true => ("readers", READERS_IN_STORE),
        false => ("permits", 1),
    };
    (0..count as u64).map(move |number| line_name(key, kind, number))
}

/// The line of a share that waits.
pub(crate) struct Line {
    pub(crate) name: Arc<str>,
    /// The first share of the line does not rest, so it is not known whether the store refuses this one.
    pub(crate) is_behind_a_question: bool,
}

impl Slots {
    /// Returns the name of the slot of this token. A share that asks or waits is the contender of a line.
    pub(super) fn slot_of<'a>(&self, key: &'a Arc<str>, token: Token) -> SlotName<'a> {
        let own = slot_name(key, token);
        let Some(limit) = token.share() else {
            return own;
        };
        if self.active.contains_key(&**own) || self.uncontended.contains_key(&**own) {
            return own;
        }
        let asks = |line: &Arc<str>| {
            let slot = self.active.get(line);
            let contender = slot.and_then(|slot| slot.contender.as_ref());
            contender.is_some_and(|contender| contender.token() == Some(token))
        };
        let own_line = || {
            let mut slots = self.active.keys();
            slots
                .find(|slot| is_own_line(slot, key) && asks(slot))
                .cloned()
        };
        let line = lines(key, limit).find(asks).or_else(own_line);
        line.map_or(own, SlotName::Owned)
    }
}

impl Queue {
    /// Makes the name of a line in which no other share stands.
    pub(crate) fn own_line(&self, key: &str) -> Arc<str> {
        let number = lock(&self.slots).number();
        line_name(key, OWN_LINE, number)
    }

    /// Makes a share the contender of a line of its own.
    pub(crate) fn enter_own_line(self: &Arc<Self>, key: &str) -> Contender {
        let name = self.own_line(key);
        let now = self.now();
        let mut slots = lock(&self.slots);
        let id = slots.number();
        slots.open(&name).admit(id, now);
        Contender::new(self, &name, id)
    }

    /// Chooses the line of a share: an empty one, or the shortest.
    pub(crate) fn line(&self, key: &str, limit: ShareLimit) -> Line {
        let now = self.now();
        let slots = lock(&self.slots);
        let length = |line: &Arc<str>| {
            let slot = slots.active.get(line);
            slot.map_or(0, |slot| {
                slot.queue.len() + usize::from(slot.contender.is_some())
            })
        };
        let mut shortest: Option<(usize, Arc<str>)> = None;
        for line in lines(key, limit) {
            let length = length(&line);
            if shortest.as_ref().is_none_or(|(least, _)| length < *least) {
                shortest = Some((length, line));
            }
            if length == 0 {
                break;
            }
        }
        let (length, name) = shortest.expect("there is a line for each kind");
        let rests = slots.active.get(&name).is_some_and(|slot| slot.rests(now));
        Line {
            is_behind_a_question: length > 0 && !rests,
            name,
        }
    }

    /// Counts the releases that the store has confirmed. A question that was sent at a lower count may have met one.
    pub(crate) fn confirmed_releases(&self) -> u64 {
        self.confirmed_count.load(Ordering::Relaxed)
    }

    /// Waits until no release that may stand in the way of `asking` is under way in this process.
    async fn releases_arrive(&self, asking: &ActiveLease) {
        loop {
            let mut confirmed = pin!(self.confirmed.notified());
            confirmed.as_mut().enable();
            if !self.is_releasing_before(asking) {
                return;
            }
            confirmed.await;
        }
    }

    /// Returns whether the end of an earlier lease of the key is not confirmed yet, so that it may stand in the way.
    ///
    /// A share waits for the end of each lease. A plain lock waits for the end of shares only, because it steps over
    /// another plain lock.
    pub(crate) fn is_releasing_before(&self, asking: &ActiveLease) -> bool {
        let key = &*asking.key;
        let for_share = asking.token.share().is_some();
        let in_the_way = |name: &str| key_of_share(name) == Some(key) || (for_share && name == key);
        let slots = lock(&self.slots);
        let mut slots = slots.active.iter();
        slots.any(|(name, slot)| slot.is_unreleased() && in_the_way(name))
    }
}

impl Contender {
    /// Waits until no release of this process may stand in the way of `asking`, until `latest`, or for a push. The contender
    /// keeps its turn meanwhile, although it asks nothing. `false`: it was a push.
    pub(crate) async fn lets_releases_arrive(&self, asking: &ActiveLease, latest: Moment) -> bool {
        self.waits(latest);
        let mut arrive = pin!(self.queue.releases_arrive(asking));
        let arrive_or_push = poll_fn(|context| {
            if self.poll_news(context).is_ready() {
                return Poll::Ready(false);
            }
            arrive.as_mut().poll(context).map(|()| true)
        });
        let timers = &self.queue.keeper.timers;
        timers.before(latest, arrive_or_push).await.unwrap_or(true)
    }
}
