//! The table of the locks.

use std::collections::BTreeMap;

use super::Bytes;
use super::run::PASSES;
use crate::world::MILLI;

/// A commit that did not wait for the disk is on it after this time: three turns of the process that writes the log.
const FLUSHED: u64 = 600 * MILLI;

/// A statement that conflicts with others may answer from a snapshot that is up to so much older.
pub const OLDEST_SNAPSHOT: u64 = 20 * MILLI;

/// A row of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub rev: i64,
    pub at: i64,
    pub ends: i64,
    pub fence: Option<i64>,
    pub doc: Bytes,
}

/// A change of a row.
#[derive(Clone, Debug)]
struct Change {
    when: u64,
    key: Bytes,
    before: Option<Row>,
    sequence_before: i64,
}

/// The table, its sequence, and what of them a crash loses.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// It was created.
    pub exists: bool,
    /// The name of the database and of its timeline.
    pub history: u64,
    rows: BTreeMap<Bytes, Row>,
    sequence: i64,
    /// The sequence at the last change.
    sequence_then: i64,
    /// Changes that are not on the disk.
    unflushed: Vec<Change>,
    /// The version of a row before its last change, and when that was.
    before: BTreeMap<Bytes, (u64, Option<Row>)>,
    changed: Vec<Bytes>,
}

impl Table {
    pub fn new(history: u64) -> Self {
        Self {
            history,
            ..Self::default()
        }
    }

    pub fn row(&self, key: &[u8]) -> Option<&Row> {
        self.rows.get(key)
    }

    /// The rows from a key on.
    pub(super) fn rows_from(&self, key: &[u8]) -> impl Iterator<Item = (&Bytes, &Row)> {
        self.rows.range(key.to_vec()..)
    }

    /// Returns the row before its last change, if that was a moment ago. A statement with an older snapshot sees it.
    pub(super) fn seen_before(&self, key: &[u8], now: u64) -> Option<Option<&Row>> {
        let (at, row) = self.before.get(key)?;
        (now - at < OLDEST_SNAPSHOT).then_some(row.as_ref())
    }

    /// The next number of the sequence.
    pub(super) fn next(&mut self) -> i64 {
        self.sequence += 1;
        self.sequence
    }

    /// A commit that waits for the disk sets the sequence.
    pub(super) fn set_sequence(&mut self, number: i64) {
        self.sequence = number;
        self.sequence_then = number;
    }

    /// Returns whether the sequence is behind the clock by more than a second.
    pub(super) fn is_behind(&self, micros: i64) -> bool {
        self.sequence < (micros - 1_000_000) / PASSES
    }

    /// Writes or deletes a row.
    pub fn put(&mut self, now: u64, key: &[u8], row: Option<Row>) {
        let before = match row {
            Some(row) => self.rows.insert(key.to_vec(), row),
            None => self.rows.remove(key),
        };
        self.before.insert(key.to_vec(), (now, before.clone()));
        self.unflushed.push(Change {
            when: now,
            key: key.to_vec(),
            before,
            sequence_before: self.sequence_then,
        });
        self.sequence_then = self.sequence;
        self.changed.push(key.to_vec());
    }

    /// A commit waits for the disk, which has all commits before it then.
    pub fn flush(&mut self) {
        self.unflushed.clear();
    }

    /// How many of the last changes are not on the disk for sure.
    pub(super) fn unflushed(&mut self, now: u64) -> usize {
        self.unflushed.retain(|change| now - change.when < FLUSHED);
        self.unflushed.len()
    }

    /// Loses all changes that are not on the disk but the first ones, and the numbers that were given with them and after them.
    ///
    /// A server writes the sequence to its log for 32 numbers at once, and for the first number behind each checkpoint. Here there
    /// is a checkpoint before each change.
    pub(super) fn lose(&mut self, kept: usize) {
        for change in self.unflushed.drain(kept..).rev() {
            match change.before {
                Some(row) => drop(self.rows.insert(change.key.clone(), row)),
                None => drop(self.rows.remove(&change.key)),
            }
            self.changed.push(change.key);
            self.sequence = change.sequence_before;
        }
        self.sequence_then = self.sequence;
        self.unflushed.clear();
        self.before.clear();
    }

    /// Deletes all rows.
    pub fn clear(&mut self) {
        self.changed
            .extend(std::mem::take(&mut self.rows).into_keys());
        self.unflushed.clear();
        self.before.clear();
    }

    /// Takes the keys that were changed.
    pub fn take_changed(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.changed)
    }
}
