//! Shares in the queue of the process.
//!
//! Shares of one key do not wait for one another, so each has a slot of its own, in which it is the only contender. The
//! store decides which of them enter. Few tasks of a process stand in the store's queue at a time, and the others wait
//! here in the order of their arrival.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Contender, Queue};
use crate::active::{ActiveLease, key_of_share};
use crate::base::sync::lock;

/// How many shares of a key one process puts into the store's queue.
const IN_STORE: usize = 16;

/// The places of the process in the store's queue, for each key that a share waits for.
#[derive(Default)]
pub(super) struct Places(Mutex<HashMap<Arc<str>, Weak<Semaphore>>>);

/// A place of the process in the store's queue.
pub(crate) type StorePlace = OwnedSemaphorePermit;

impl Queue {
    /// Makes a share the contender of a slot of its own.
    pub(crate) fn enter_share(self: &Arc<Self>, lease: &ActiveLease) -> Contender {
        let now = self.now();
        let name = lease.slot();
        let mut slots = lock(&self.slots);
        let id = slots.number();
        slots.open(&name).admit(id, now);
        Contender::new(self, &name, id)
    }

    /// Returns the places of this process in the store's queue of the key.
    pub(crate) fn places(&self, key: &Arc<str>) -> Arc<Semaphore> {
        let mut places = lock(&self.places.0);
        if let Some(places) = places.get(key).and_then(Weak::upgrade) {
            return places;
        }
        places.retain(|_, places| places.strong_count() > 0);
        let of_key = Arc::new(Semaphore::new(IN_STORE));
        places.insert(Arc::clone(key), Arc::downgrade(&of_key));
        of_key
    }

    /// Counts the releases that the store has confirmed. A question that was sent at a lower count may have met one.
    pub(crate) fn confirmed_releases(&self) -> u64 {
        self.confirmed_count.load(Ordering::Relaxed)
    }

    /// Waits until no release that may stand in the way of `asking` is under way in this process.
    pub(crate) async fn releases_arrive(&self, asking: &ActiveLease) {
        loop {
            let mut confirmed = std::pin::pin!(self.confirmed.notified());
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
