//! Standing back for others: pure, `now` is an argument.
//!
//! A lock that is free goes to the first who asks, and a process that has just given it back would always
//! be the first. So it stays away from the key for a moment, where others may want it that are not given it
//! by the store: waiters of a quorum, and clients of other libraries.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::base::clock::Moment;
use crate::base::sync::lock;

#[derive(Default)]
pub(crate) struct Courtesy(Mutex<HashMap<Arc<str>, Moment>>);

impl Courtesy {
    /// The key is left to others until then.
    pub(crate) fn stand_back(&self, key: &Arc<str>, until: Moment, now: Moment) {
        let mut keys = lock(&self.0);
        keys.retain(|_, until| *until > now);
        keys.insert(Arc::clone(key), until);
    }

    /// Until when to leave the key to others: told once.
    pub(crate) fn until(&self, key: &str, now: Moment) -> Option<Moment> {
        let mut keys = lock(&self.0);
        if keys.is_empty() {
            return None;
        }
        keys.remove(key).filter(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_key_is_left_to_others_once_and_for_a_moment() {
        let (courtesy, now) = (Courtesy::default(), Moment(1_000_000_000));
        let until = now + Duration::from_millis(10);
        assert_eq!(courtesy.until("k", now), None);
        courtesy.stand_back(&"k".into(), until, now);
        assert_eq!(courtesy.until("other", now), None);
        assert_eq!(courtesy.until("k", now), Some(until));
        assert_eq!(courtesy.until("k", now), None);
        courtesy.stand_back(&"k".into(), until, now);
        assert_eq!(courtesy.until("k", until), None, "the moment is over");
    }
}
