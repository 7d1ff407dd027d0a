//! The keys of a server, their ends, and the log of their changes.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::resp::Failure;
use super::sorted::SortedSet;
use super::{Bytes, Server};

pub(super) const WRONG_TYPE: Failure =
    Failure::Borrowed("WRONGTYPE Operation against a key holding the wrong kind of value");

/// The value of a key, and when it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub data: Data,
    /// In milliseconds of Unix time.
    pub ends: Option<i64>,
}

/// Sets and hashes are shared with the log of changes, and copied when they change.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    Text(Bytes),
    Sorted(Rc<SortedSet>),
    Hash(Rc<BTreeMap<Bytes, Bytes>>),
}

/// What a command has left in a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub key: Bytes,
    /// `None`: the key is gone.
    pub now: Option<Entry>,
}

impl Data {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Data::Text(_) => "string",
            Data::Sorted(_) => "zset",
            Data::Hash(_) => "hash",
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Data::Text(_) => false,
            Data::Sorted(set) => set.is_empty(),
            Data::Hash(hash) => hash.is_empty(),
        }
    }
}

impl Entry {
    /// A key exists in the whole last millisecond.
    pub fn is_over(&self, now: i64) -> bool {
        self.ends.is_some_and(|ends| now > ends)
    }
}

impl Server {
    /// Returns a key that has not ended. An ended one is deleted by the first command that meets it, except on a replica,
    /// which waits for its master to delete it.
    pub(super) fn find(&mut self, key: &[u8]) -> Option<&mut Entry> {
        match self.entries.get(key) {
            None => return None,
            Some(entry) if entry.is_over(self.now) => {
                if !self.is_replica() {
                    self.drop_ended(key);
                }
                return None;
            }
            Some(_) => {}
        }
        self.entries.get_mut(key)
    }

    pub(super) fn text(&mut self, key: &[u8]) -> Result<Option<&Bytes>, Failure> {
        match self.find(key).map(|entry| &entry.data) {
            None => Ok(None),
            Some(Data::Text(text)) => Ok(Some(text)),
            Some(_) => Err(WRONG_TYPE),
        }
    }

    pub(super) fn sorted(&mut self, key: &[u8]) -> Result<Option<&mut Rc<SortedSet>>, Failure> {
        match self.find(key).map(|entry| &mut entry.data) {
            None => Ok(None),
            Some(Data::Sorted(set)) => Ok(Some(set)),
            Some(_) => Err(WRONG_TYPE),
        }
    }

    pub(super) fn hash(
        &mut self,
        key: &[u8],
    ) -> Result<Option<&mut Rc<BTreeMap<Bytes, Bytes>>>, Failure> {
        match self.find(key).map(|entry| &mut entry.data) {
            None => Ok(None),
            Some(Data::Hash(hash)) => Ok(Some(hash)),
            Some(_) => Err(WRONG_TYPE),
        }
    }

    pub(super) fn put(&mut self, key: &[u8], entry: Entry) {
        match self.entries.get_mut(key) {
            Some(old) => *old = entry,
            None => drop(self.entries.insert(key.to_vec(), entry)),
        }
        self.changed(key);
    }

    /// Deletes a key. Answers whether it was there.
    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        let was_there = self.find(key).is_some();
        if was_there {
            self.entries.remove(key);
            self.changed(key);
        }
        was_there
    }

    /// Notes a change of a set or a hash, and deletes it with its last member.
    pub(super) fn shrunk(&mut self, key: &[u8]) {
        if self
            .entries
            .get(key)
            .is_some_and(|entry| entry.data.is_empty())
        {
            self.entries.remove(key);
        }
        self.changed(key);
    }

    /// Notes a change of a key, and reports it to the clients that have read it.
    pub(super) fn changed(&mut self, key: &[u8]) {
        self.note(key);
        self.invalidate(key);
    }

    fn note(&mut self, key: &[u8]) {
        if !self.touched.iter().any(|touched| touched == key) {
            self.touched.push(key.to_vec());
        }
    }

    /// Deletes all keys whose end is over.
    ///
    /// A server does so a few times a second, by itself. A replica does not.
    pub fn expire(&mut self, micros: i64) {
        self.set_time(micros);
        if self.is_replica() {
            return;
        }
        let ended = |(key, entry): (&Bytes, &Entry)| entry.is_over(self.now).then(|| key.clone());
        let ended: Vec<_> = self.entries.iter().filter_map(ended).collect();
        for key in ended {
            self.drop_ended(&key);
        }
        self.settle();
    }

    fn drop_ended(&mut self, key: &[u8]) {
        self.entries.remove(key);
        self.changed(key);
    }

    /// Deletes all keys.
    pub(super) fn clear(&mut self) {
        for key in std::mem::take(&mut self.entries).into_keys() {
            self.note(&key);
        }
        self.invalidate_all();
    }

    /// Writes the touched keys into the log of changes. A command is one step, also if it is a script that has changed a
    /// key twice.
    pub(super) fn settle(&mut self) {
        for key in self.touched.drain(..) {
            let now = self.entries.get(&key).cloned();
            self.offset += 1;
            self.changes.push(Change { key, now });
        }
    }

    /// Takes a change of the master over. It is no change of this server's own, and so is not logged.
    pub fn apply(&mut self, change: &Change) {
        match &change.now {
            Some(entry) => drop(self.entries.insert(change.key.clone(), entry.clone())),
            None => drop(self.entries.remove(&change.key)),
        }
        self.invalidate(&change.key);
        self.offset += 1;
    }

    /// Takes all data of a master over, as a replica that has been away does.
    pub fn copy(&mut self, master: &Server) {
        self.entries.clone_from(&master.entries);
        self.offset = master.offset;
        self.invalidate_all();
    }
}
