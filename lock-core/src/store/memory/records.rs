//! The records of an embedded store, in the order in which they were left.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::state::MemoryState;
use crate::protocol::Phase;

/// All records of a store together have at most so many bytes. Beyond that, the oldest keys keep their end, and their
/// record becomes empty, so that no work runs twice.
pub(super) const BUDGET: usize = 64 << 20;
/// What a record costs beside its key and its bytes.
const OVERHEAD: usize = 128;

/// The keys with a record that is not empty for want of room.
#[derive(Default)]
pub(super) struct Records {
    by_number: BTreeMap<u64, Arc<str>>,
    /// With the number and the cost of each.
    by_key: HashMap<Arc<str>, (u64, usize)>,
    last: u64,
    pub(super) bytes: usize,
}

impl Records {
    /// Notes the record of a key, unless it is noted already.
    pub(super) fn add(&mut self, key: &Arc<str>, length: usize) {
        if self.by_key.contains_key(key) {
            return;
        }
        let cost = key.len() + length + OVERHEAD;
        self.last += 1;
        self.bytes += cost;
        self.by_number.insert(self.last, Arc::clone(key));
        self.by_key.insert(Arc::clone(key), (self.last, cost));
    }

    /// Forgets the record of a key that is no more.
    pub(super) fn remove(&mut self, key: &str) {
        if let Some((number, cost)) = self.by_key.remove(key) {
            self.by_number.remove(&number);
            self.bytes -= cost;
        }
    }
}

impl MemoryState {
    /// Empties the oldest records while there are too many bytes.
    pub(super) fn shrink_records(&mut self) {
        while self.records.bytes > BUDGET
            && let Some((_, key)) = self.records.by_number.pop_first()
        {
            self.records.remove(&key);
            if let Some(document) = self.keys.get_mut(&key)
                && let Phase::Closed(closed) = &mut document.phase
            {
                closed.record = Some(Arc::default());
            }
        }
    }
}
