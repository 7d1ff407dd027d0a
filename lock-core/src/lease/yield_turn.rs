//! Keys that this process leaves to other clients for a moment. Everything here is pure, and `now`
//! is an argument.
//!
//! A free lock goes to the client that asks first, and the process that has just released the lock
//! would always ask first. So the process stays away from the key for a moment if the store does
//! not hand the key to a waiter. This is needed on a quorum, and where clients of other libraries
//! want the key.
//!
//! # How clients of other libraries get in
//!
//! These clients stand in no queue, and a hand-over never leaves the key free. So a key with
//! `Interop::On` has a gap at fixed times of the server's clock, about once a second:
//!
//! 1. The owner whose lease is held at that time ends it by `vacate.lua`.
//! 2. The script deletes the key, and tells the head of the queue to ask 50 ms later.
//! 3. The owner's process yields the key for a little longer.
//!
//! The owner knows the server's clock from its fencing token. So all processes share one gap
//! without sharing state.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::base::clock::Moment;
use crate::base::sync::lock;

#[derive(Default)]
pub(crate) struct YieldedKeys(Mutex<HashMap<Arc<str>, Moment>>);

impl YieldedKeys {
    /// Leaves the key to other clients until the moment `until`.
    pub(crate) fn stand_back(&self, key: &Arc<str>, until: Moment, now: Moment) {
        let mut keys = lock(&self.0);
        keys.retain(|_, until| *until > now);
        keys.insert(Arc::clone(key), until);
    }

    /// Returns, once, the moment until which the key is left to other clients.
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
        let (yielded, now) = (YieldedKeys::default(), Moment(1_000_000_000));
        let until = now + Duration::from_millis(10);
        assert_eq!(yielded.until("k", now), None);
        yielded.stand_back(&"k".into(), until, now);
        assert_eq!(yielded.until("other", now), None);
        assert_eq!(yielded.until("k", now), Some(until));
        assert_eq!(yielded.until("k", now), None);
        yielded.stand_back(&"k".into(), until, now);
        assert_eq!(yielded.until("k", until), None, "the pause is over");
    }

    #[test]
    fn a_key_is_left_to_others_whatever_happens_to_another_and_is_forgotten_afterwards() {
        let (yielded, now) = (YieldedKeys::default(), Moment(1_000_000_000));
        let until = now + Duration::from_millis(10);
        yielded.stand_back(&"first".into(), until, now);
        yielded.stand_back(&"second".into(), until, now);
        assert_eq!(yielded.until("first", now), Some(until));
        yielded.stand_back(&"third".into(), until + Duration::from_millis(1), until);
        assert_eq!(lock(&yielded.0).len(), 1, "the second one is over");
    }
}
