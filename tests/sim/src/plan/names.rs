//! The names of keys, in calls and on the servers.

use super::Topology;

/// The most keys of a history.
pub const MOST_KEYS: usize = 5;
/// The same with the keys of leaders and of jobs (`Plan::own_key`).
pub const MOST_KEYS_WITH_OWN: usize = MOST_KEYS + 2;

/// The full name of a lock's key on the servers.
pub fn lock_name(key: usize) -> String {
    format!("lockkit:{}", key_name(key))
}

/// The name of a key in calls. The last one is the first one in braces, and one slot of a cluster has both that have braces.
pub fn key_name(key: usize) -> String {
    match key {
        3 => "{k0}3".to_owned(),
        4 => "{k0}".to_owned(),
        key => format!("k{key}"),
    }
}

impl Topology {
    /// The name of the queue of a key.
    pub fn queue_name(self, key: usize) -> String {
        self.companion_name('q', key)
    }

    /// The name of the set of a key's shares.
    pub fn shares_name(self, key: usize) -> String {
        self.companion_name('s', key)
    }

    /// In a cluster it is in the slot of the lock.
    fn companion_name(self, kind: char, key: usize) -> String {
        let name = key_name(key);
        match self {
            _ if name.contains('{') => format!("lockkit:!{kind}t:{name}"),
            Self::Cluster => format!("lockkit:!{kind}:{{lockkit:{name}}}"),
            _ => format!("lockkit:!{kind}:{{{name}}}"),
        }
    }
}
