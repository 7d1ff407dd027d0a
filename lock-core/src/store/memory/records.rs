//! The records of an embedded store, in the order in which they were left.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::state::{MemoryState, Owner};
use crate::base::clock::Moment;
use crate::base::record::{Record, StoredRecord};
use crate::lease::deadline::GRANT;
use crate::store::{Event, Events, Forgotten, News, Outcome, Release, Remembered};

/// All records of a store together have at most so many bytes. Beyond that, the oldest keys keep their end, and their
/// record becomes empty, so that no work runs twice.
pub(super) const BUDGET: usize = 64 << 20;
/// What a record costs beside its key and its bytes.
const OVERHEAD: usize = 128;

#[derive(Default)]
pub(super) struct Records {
    pub(super) by_number: BTreeMap<u64, (Arc<str>, Arc<StoredRecord>)>,
    last: u64,
    pub(super) bytes: usize,
}

impl Records {
    /// Returns a record, which is empty if there was no room for it any more.
    pub(super) fn get(&self, number: u64) -> Arc<StoredRecord> {
        let record = self.by_number.get(&number);
        record.map_or_else(Arc::default, |(_, record)| Arc::clone(record))
    }

    fn add(&mut self, key: &Arc<str>, record: StoredRecord) -> u64 {
        self.last += 1;
        self.bytes += cost(key, &record);
        let entry = (Arc::clone(key), Arc::new(record));
        self.by_number.insert(self.last, entry);
        self.last
    }

    /// Forgets the record of a key that is no more.
    pub(super) fn remove(&mut self, owner: Owner) {
        if let Owner::Done(_, number) = owner
            && let Some((key, record)) = self.by_number.remove(&number)
        {
            self.bytes -= cost(&key, &record);
        }
    }

    /// Empties the oldest records while there are too many bytes.
    fn shrink(&mut self) {
        while self.bytes > BUDGET
            && let Some((_, (key, record))) = self.by_number.pop_first()
        {
            self.bytes -= cost(&key, &record);
        }
    }
}

fn cost(key: &str, record: &StoredRecord) -> usize {
    key.len() + record.bytes.len() + OVERHEAD
}

impl MemoryState {
    /// Ends a lease with a record. Returns the events for all waiters too.
    pub(super) fn remember(
        &mut self,
        release: &Release,
        record: &Record,
        now: Moment,
    ) -> (Outcome, Vec<(Events, Event)>) {
        let Release { key, token, .. } = release;
        self.forget_if_over(key, now);
        let remembered = match self.live(key, now) {
            Some((Owner::Lease(owner), _)) if owner == *token => Remembered::Yes,
            Some((Owner::Done(owner, _), _)) if owner == *token => {
                return (Outcome::Remembered(Remembered::Yes), Vec::new());
            }
            None | Some((Owner::Promised(_), _)) => Remembered::Absent,
            Some(_) => Remembered::Other,
        };
        if remembered != Remembered::Yes {
            return (Outcome::Remembered(remembered), Vec::new());
        }
        let stored = StoredRecord {
            fence: release.fence.map_or(0, u64::from),
            bytes: record.bytes.clone().into(),
        };
        let number = self.records.add(key, stored);
        self.set(key, Owner::Done(*token, number), now + record.lifetime);
        self.raise(release.fence);
        self.records.shrink();
        (Outcome::Remembered(remembered), self.tell_all(key))
    }

    /// Deletes a record or a cooldown.
    pub(super) fn forget(&mut self, key: &Arc<str>, now: Moment) -> Outcome {
        self.forget_if_over(key, now);
        match self.live(key, now) {
            Some((owner @ (Owner::Done(token, _) | Owner::Cooling(token)), _)) => {
                self.remove(key);
                self.records.remove(owner);
                Outcome::Forgotten(Forgotten::Yes, Some(token))
            }
            None => Outcome::Forgotten(Forgotten::Nothing, None),
            Some(_) => Outcome::Forgotten(Forgotten::Held, None),
        }
    }

    /// Empties the queue of a key. Returns an event for each waiter whose manager still listens.
    fn tell_all(&mut self, key: &Arc<str>) -> Vec<(Events, Event)> {
        let waiting = self.queues.remove(key).unwrap_or_default();
        let told = waiting.into_iter().filter_map(|token| {
            let events = self.listeners.get(&token.address())?;
            let event = Event::News {
                key: Arc::clone(key),
                token,
                grant: GRANT,
                news: News::Ask,
            };
            Some((events.clone(), event))
        });
        told.collect()
    }
}
