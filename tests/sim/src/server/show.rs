//! Keys that show what a server of another kind has.

use super::{Entry, Server, SortedSet};

impl Server {
    /// Has a key be like this. `None`: it is absent.
    pub fn show(&mut self, micros: i64, key: &[u8], entry: Option<Entry>) {
        self.set_time(micros);
        if self.entries.get(key) == entry.as_ref() {
            return;
        }
        match entry {
            Some(entry) => self.put(key, entry),
            None => {
                self.entries.remove(key);
                self.changed(key);
            }
        }
        self.settle();
    }
}

impl FromIterator<(String, f64)> for SortedSet {
    fn from_iter<T: IntoIterator<Item = (String, f64)>>(members: T) -> Self {
        let mut set = Self::default();
        for (member, score) in members {
            set.insert(member.as_bytes(), score);
        }
        set
    }
}
