//! Several keys at once: one caller becomes the contender of all of them, or of none.

use std::sync::Arc;

use super::slot::held_fact;
use super::{Contender, Queue, Slots};
use crate::base::clock::Moment;
use crate::base::sync::lock;
use crate::store::Refusal;

/// A task of this process has to do with one of the keys.
pub(crate) struct Occupied {
    /// The index of the key.
    pub(crate) at: usize,
    /// The refusal, if the process holds the key or the store has refused it, and that still stands.
    pub(crate) fact: Option<Refusal>,
}

impl Queue {
    /// Makes the caller the contender of all keys.
    ///
    /// # Errors
    ///
    /// A task of this process holds one of the keys, asks for it or waits for it. Nothing has changed.
    pub(crate) fn contend_for_all<'a>(
        self: &Arc<Self>,
        keys: impl Iterator<Item = &'a Arc<str>> + Clone,
    ) -> Result<Vec<Contender>, Occupied> {
        let now = self.now();
        let mut slots = lock(&self.slots);
        for (at, key) in keys.clone().enumerate() {
            if let Some(fact) = slots.occupied(key, now) {
                return Err(Occupied { at, fact });
            }
        }
        let contend = keys.map(|key| {
            let id = slots.number();
            slots.open(key).admit(id, now);
            Contender::new(self, key, id)
        });
        Ok(contend.collect())
    }
}

impl Slots {
    /// Returns whether a task of this process has to do with the key; inside, the refusal that this amounts to.
    fn occupied(&self, key: &Arc<str>, now: Moment) -> Option<Option<Refusal>> {
        if let Some(lease) = self.uncontended.get(key) {
            return held_fact(lease, now).map(Some);
        }
        let slot = self.active.get(key)?;
        let busy = slot.is_held(now) || slot.contender.is_some() || !slot.queue.is_empty();
        busy.then(|| slot.fact(now))
    }
}
