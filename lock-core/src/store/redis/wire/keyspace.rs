//! The names of the keys of a lock in Redis.

use std::borrow::Cow;

use redis::Cmd;

use super::scripts::push;
use super::slots::{HashSlot, hash_tag};
use crate::base::error::Error;
use crate::base::token::Address;
use crate::store::CardName;

/// A namespace and its names:
///
/// * `<namespace><key>`: the lock, a plain string, so that clients of other libraries on the same key exclude
///   these locks and are excluded by them.
/// * `<namespace>!q:{<key>}`: the queue of waiting tokens. In a cluster `<namespace>!q:{<lock>}`, so that it is
///   in the lock's slot. It expires.
/// * `<namespace>!qt:<key>`: the queue where the key or the namespace has a hash tag already, which decides the
///   slot. The prefix differs so that the keys `a` and `{a}` have different queues.
/// * `<namespace>!s:{<key>}`, `<namespace>!st:<key>`: the shares of a key that several owners have, in the same
///   way.
/// * `<namespace>!h:<address>`: the identity of a manager, or of one of its runtimes, for operators. It expires.
/// * `<namespace>!f`: the high-water mark, the highest fencing token that the clock does not vouch for. In a
///   cluster one for each slot, `<namespace>!f:{<number>}`, of the smallest number that belongs to it, so that
///   there are never more of them than slots.
/// * `<namespace>!r`: on a node of a quorum its name, the time from which it votes, and its registers.
/// * `<namespace>!m:<address>`: the push channel of a manager, or of one of its runtimes.
///
/// Users' keys do not begin with `!`, and a namespace does not contain it. So no two keys share a name, and
/// neither do companion keys of two namespaces. A lock shares its name with a companion key or a lock of
/// another namespace only where one namespace begins with the other: `""` with the key `lockkit:x` is
/// `lockkit:` with `x`.
#[derive(Clone, Debug)]
pub(in crate::store::redis) struct Keyspace {
    namespace: String,
    /// Whether the namespace decides the slot of all its keys.
    tagged: bool,
    mark: String,
    registers: String,
    in_slots: bool,
    channels: String,
}

impl Keyspace {
    /// Checks the namespace.
    ///
    /// # Errors
    ///
    /// For a namespace whose locks could share names with another one's queues.
    pub(in crate::store::redis) fn checked(namespace: String) -> Result<Self, Error> {
        if namespace.contains('!') {
            return Err(Error::invalid(
                "the namespace contains `!`, where the kit keeps its own data; leave it out",
            ));
        }
        Ok(Self::new(namespace))
    }

    pub(in crate::store::redis) fn new(namespace: String) -> Self {
        let mark = [namespace.as_str(), "!f"].concat();
        let registers = [namespace.as_str(), "!r"].concat();
        let channels = [namespace.as_str(), "!m:"].concat();
        Self {
            tagged: has_hash_tag(&namespace),
            namespace,
            mark,
            registers,
            in_slots: false,
            channels,
        }
    }

    /// Places all keys of a lock in its slot, for a cluster.
    ///
    /// # Errors
    ///
    /// For a namespace with braces that are no hash tag: see [`Keyspace::check`].
    pub(in crate::store::redis) fn in_slots(self) -> Result<Self, Error> {
        let tagged = self.tagged;
        if self.namespace.contains(['{', '}']) && !tagged {
            return Err(Error::invalid(
                "the namespace has a brace but no hash tag; for a cluster write `{tag}` with \
                 something in it, or leave the braces out",
            ));
        }
        Ok(Self {
            // A tag in the namespace puts all keys into one slot.
            in_slots: !tagged,
            ..self
        })
    }

    /// Checks that all keys of the lock can be in its slot.
    ///
    /// # Errors
    ///
    /// For a key with braces that are no hash tag, because no other key can be placed beside it.
    pub(in crate::store::redis) fn check(&self, key: &str) -> Result<(), Error> {
        if self.in_slots && key.contains(['{', '}']) && !has_hash_tag(key) {
            return Err(Error::invalid(
                "the key has a brace but no hash tag, and cannot be locked on a cluster; write \
                 `{tag}` with something in it, as in `order:{42}`, or leave the braces out",
            ));
        }
        Ok(())
    }

    pub(in crate::store::redis) fn lock(&self, key: &str) -> String {
        self.lock_pieces(key).concat()
    }

    pub(in crate::store::redis) fn push_lock(&self, key: &str, command: &mut Cmd) {
        push(command, &self.lock_pieces(key));
    }

    fn lock_pieces<'a>(&'a self, key: &'a str) -> [&'a str; 2] {
        [&self.namespace, key]
    }

    pub(in crate::store::redis) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The full name of an identity.
    pub(in crate::store::redis) fn card(&self, name: &CardName) -> String {
        self.lock(&name.text)
    }

    /// Returns the user's key of a lock's full name.
    pub(in crate::store::redis) fn key<'a>(&self, lock: &'a str) -> Option<&'a str> {
        lock.strip_prefix(self.namespace.as_str())
    }

    pub(in crate::store::redis) fn queue(&self, key: &str) -> String {
        self.queue_pieces(key).concat()
    }

    pub(in crate::store::redis) fn push_queue(&self, key: &str, command: &mut Cmd) {
        push(command, &self.queue_pieces(key));
    }

    fn queue_pieces<'a>(&'a self, key: &'a str) -> [&'a str; 5] {
        self.companion_pieces(key, ["!q:{", "!qt:"])
    }

    pub(in crate::store::redis) fn push_shares(&self, key: &str, command: &mut Cmd) {
        push(command, &self.shares_pieces(key));
    }

    pub(in crate::store::redis) fn shares(&self, key: &str) -> String {
        self.shares_pieces(key).concat()
    }

    fn shares_pieces<'a>(&'a self, key: &'a str) -> [&'a str; 5] {
        self.companion_pieces(key, ["!s:{", "!st:"])
    }

    /// The pieces of a key in the slot of the lock. `names`: its prefix, without and with a hash tag of the lock's.
    fn companion_pieces<'a>(&'a self, key: &'a str, names: [&'a str; 2]) -> [&'a str; 5] {
        let tagged = self.tagged || has_hash_tag(key);
        let (open, close) = if tagged {
            (names[1], "")
        } else {
            (names[0], "}")
        };
        // A cluster hashes the lock's whole name, where it has no tag.
        let hashed = if self.in_slots && !tagged {
            self.namespace.as_str()
        } else {
            ""
        };
        [&self.namespace, open, hashed, key, close]
    }

    /// The high-water mark of the lock of a key.
    pub(in crate::store::redis) fn mark_for(&self, key: &str) -> Cow<'_, str> {
        if self.in_slots {
            let slot = HashSlot::of(&self.lock(key));
            return format!("{}:{{{}}}", self.mark, slot.tag()).into();
        }
        self.mark.as_str().into()
    }

    /// The high-water mark where there is only one.
    pub(in crate::store::redis) fn only_mark(&self) -> &str {
        &self.mark
    }

    pub(in crate::store::redis) fn registers(&self) -> &str {
        &self.registers
    }

    /// The common prefix of all channels.
    pub(in crate::store::redis) fn channels(&self) -> &str {
        &self.channels
    }

    pub(in crate::store::redis) fn channel(&self, address: Address) -> String {
        format!("{}{address}", self.channels)
    }
}

/// Returns whether a cluster hashes only a part of the key.
fn has_hash_tag(key: &str) -> bool {
    hash_tag(key).is_some()
}

#[cfg(test)]
#[path = "keyspace_tests.rs"]
mod no_two_share_a_name;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_its_key_in_the_namespace() {
        let names = Keyspace::new("lockkit:".to_owned());
        assert_eq!(names.lock("order:42"), "lockkit:order:42");
        assert_eq!(names.key("lockkit:order:42"), Some("order:42"));
        assert_eq!(names.key("other:order:42"), None);
        assert_eq!(Keyspace::new(String::new()).lock("order:42"), "order:42");
    }

    #[test]
    fn a_queue_stands_in_the_slot_of_its_lock() {
        let names = Keyspace::new("lockkit:".to_owned());
        assert_eq!(names.queue("order:42"), "lockkit:!q:{order:42}");
        assert_eq!(names.queue("order:{42}:x"), "lockkit:!qt:order:{42}:x");
        assert_eq!(names.queue("{}x"), "lockkit:!q:{{}x}");
    }

    #[test]
    fn in_a_cluster_all_that_belongs_to_a_lock_stands_in_its_slot() {
        for namespace in ["lockkit:", "", "{app}:", "a{b}c}:"] {
            let names = Keyspace::new(namespace.to_owned()).in_slots().unwrap();
            for key in ["order:42", "order:{42}:x", "{a}b}", "x{y}{z}"] {
                names.check(key).unwrap();
                let lock = names.lock(key);
                let mark = names.mark_for(key).into_owned();
                for companion in [names.queue(key), names.shares(key), mark] {
                    assert_eq!(HashSlot::of(&companion), HashSlot::of(&lock), "{lock}");
                }
            }
        }
    }

    #[test]
    fn a_key_whose_companions_would_stand_elsewhere_is_invalid_and_says_what_to_write() {
        let names = Keyspace::new("lockkit:".to_owned()).in_slots().unwrap();
        for key in ["{}x", "a}b", "a{b", "}a{", "{}{a}"] {
            let error = names.check(key).unwrap_err();
            assert_eq!(error.kind(), crate::base::error::ErrorKind::Invalid);
            assert!(error.to_string().contains("order:{42}"), "{error}");
        }
        // The namespace's tag decides.
        let names = Keyspace::new("{app}".to_owned()).in_slots().unwrap();
        assert!(names.check("a}b").is_ok());
        for namespace in ["a{b", "a}b:", "{}"] {
            assert!(Keyspace::new(namespace.to_owned()).in_slots().is_err());
        }
    }
}
