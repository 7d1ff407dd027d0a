//! For the ledger: the writes of locks at the servers, with the values that they leave.

use super::{State, hash};
use crate::plan::{MOST_KEYS_WITH_OWN, lock_name};
use crate::server::{Change, Data};

/// One write of a lock's key.
#[derive(Clone, Debug)]
pub struct Write {
    /// In true time.
    pub at: u64,
    /// The number of the key.
    pub key: usize,
    /// A hash of the value; 0 for none.
    pub value: u64,
    pub kind: Kind,
    /// A stranger has written it.
    pub is_strange: bool,
    /// How long the key lasts from now on, in true time.
    pub lasts: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The key was free.
    Set,
    /// The key had another value.
    Replaced,
    /// The key had the same value, and ended before.
    Lengthened,
    Gone,
}

/// A key's value, and when it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    hash: u64,
    ends: Option<i64>,
}

impl State {
    pub(super) fn note_write(&mut self, server: usize, change: &Change) {
        let Some(key) = key_number(&change.key) else {
            return;
        };
        let millis = self.server_time(server) / 1_000;
        let before = self.hosts[server].values.remove(&key);
        let before = before.filter(|it| it.ends.is_none_or(|ends| ends >= millis));
        let now = match &change.now {
            Some(entry) => match &entry.data {
                Data::Text(text) => Some(Value {
                    hash: hash(text),
                    ends: entry.ends,
                }),
                Data::Sorted(_) | Data::Hash(_) => return,
            },
            None => None,
        };
        let kind = match (before, now) {
            (None, None) => return,
            (None, Some(_)) => Kind::Set,
            (Some(_), None) => Kind::Gone,
            (Some(before), Some(now)) if before.hash != now.hash => Kind::Replaced,
            (Some(before), Some(now)) if before.ends < now.ends => Kind::Lengthened,
            (Some(_), Some(_)) => {
                self.hosts[server].values.extend(now.map(|now| (key, now)));
                return;
            }
        };
        let ends = now.and_then(|now| now.ends);
        let lasts = ends.map_or(0, |ends| self.true_time_left(server, ends).max(0) as u64);
        let at = self.now;
        let host = &mut self.hosts[server];
        host.values.extend(now.map(|now| (key, now)));
        let is_strange = host.is_strange;
        host.writes.push(Write {
            at,
            key,
            value: now.map_or(0, |now| now.hash),
            kind,
            is_strange,
            lasts,
        });
        if kind == Kind::Lengthened && !is_strange {
            self.strike_soon(server, &change.key);
        }
    }

    /// The value that a server has of a key now.
    pub fn value_of(&self, server: usize, key: usize) -> Option<u64> {
        let millis = self.server_time(server) / 1_000;
        let value = self.hosts[server].values.get(&key)?;
        let is_over = value.ends.is_some_and(|ends| ends < millis);
        (!is_over).then_some(value.hash)
    }
}

/// The number of a lock's key.
fn key_number(name: &[u8]) -> Option<usize> {
    (0..MOST_KEYS_WITH_OWN).find(|key| lock_name(*key).as_bytes() == name)
}
