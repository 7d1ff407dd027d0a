//! How a lock's data is called in Redis.

use crate::token::ManagerId;

/// A namespace and what stands in it:
///
/// * `<namespace><key>`: the lock, a plain string, so that clients of other libraries on the same
///   key exclude us and are excluded;
/// * `<namespace>!q:<key>`: the queue of waiting tokens, in the lock's cluster slot; expires;
/// * `<namespace>!f`: the mark, the highest fencing token that the clock does not vouch for;
/// * `<namespace>!m:<manager>`: a manager's push channel.
///
/// Users' keys do not begin with `!`.
#[derive(Clone, Debug)]
pub(super) struct Names {
    namespace: String,
    mark: String,
    channels: String,
}

impl Names {
    pub(super) fn new(namespace: String) -> Self {
        let mark = [namespace.as_str(), "!f"].concat();
        let channels = [namespace.as_str(), "!m:"].concat();
        Self {
            namespace,
            mark,
            channels,
        }
    }

    pub(super) fn lock(&self, key: &str) -> String {
        [self.namespace.as_str(), key].concat()
    }

    /// The user's key of a lock's full name.
    pub(super) fn key<'a>(&self, lock: &'a str) -> Option<&'a str> {
        lock.strip_prefix(self.namespace.as_str())
    }

    pub(super) fn queue(&self, key: &str) -> String {
        let tagged = has_hash_tag(key) || has_hash_tag(&self.namespace);
        let (open, close) = if tagged { ("", "") } else { ("{", "}") };
        [self.namespace.as_str(), "!q:", open, key, close].concat()
    }

    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    /// What every manager's channel begins with.
    pub(super) fn channels(&self) -> &str {
        &self.channels
    }

    pub(super) fn channel(&self, manager: ManagerId) -> String {
        format!("{}{manager}", self.channels)
    }
}

/// Whether Redis Cluster hashes only a part of the key: the first `{…}` with something in it.
fn has_hash_tag(key: &str) -> bool {
    key.split_once('{')
        .and_then(|(_, rest)| rest.find('}'))
        .is_some_and(|end| end > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_its_key_in_the_namespace() {
        let names = Names::new("lock:".to_owned());
        assert_eq!(names.lock("order:42"), "lock:order:42");
        assert_eq!(names.key("lock:order:42"), Some("order:42"));
        assert_eq!(names.key("other:order:42"), None);
        assert_eq!(Names::new(String::new()).lock("order:42"), "order:42");
    }

    #[test]
    fn a_queue_stands_in_the_slot_of_its_lock() {
        let names = Names::new("lock:".to_owned());
        assert_eq!(names.queue("order:42"), "lock:!q:{order:42}");
        assert_eq!(names.queue("order:{42}:x"), "lock:!q:order:{42}:x");
        assert_eq!(names.queue("{}x"), "lock:!q:{{}x}");
    }
}
