//! Standing back for others.
//!
//! Nobody gives a lock of a quorum to whoever waits for it: it is free, and who comes first takes it.
//! A process that takes it again at once would always come first. So a process that was told, when it
//! gave the lock back, that somebody waited stays away from the key for a moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::split::jitter;
use crate::clock::Moment;
use crate::sync::lock;
use crate::token::Token;

/// A push and a round trip, on a network and a machine that have other things to do too.
const LONGEST: Duration = Duration::from_millis(12);

#[derive(Default)]
pub(super) struct Courtesy(Mutex<HashMap<Arc<str>, Moment>>);

impl Courtesy {
    /// Somebody has waited for the key, and was told that it is free.
    pub(super) fn stand_back(&self, key: &Arc<str>, token: Token, now: Moment) {
        let mut keys = lock(&self.0);
        keys.retain(|_, until| *until > now);
        keys.insert(
            Arc::clone(key),
            now + LONGEST / 2 + jitter(token, 0, LONGEST / 2),
        );
    }

    /// Until when to leave the key to others.
    pub(super) fn until(&self, key: &str, now: Moment) -> Option<Moment> {
        let mut keys = lock(&self.0);
        if keys.is_empty() {
            return None;
        }
        keys.remove(key).filter(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::{Address, TokenSource};

    #[test]
    fn a_key_is_left_to_others_once_and_for_a_moment() {
        let (courtesy, now) = (Courtesy::default(), Moment(1_000_000_000));
        let token = TokenSource::new(Address::random()).fresh();
        assert_eq!(courtesy.until("k", now), None);
        courtesy.stand_back(&"k".into(), token, now);
        assert_eq!(courtesy.until("other", now), None);
        let until = courtesy.until("k", now).expect("left to others");
        assert!(until > now && until <= now + LONGEST);
        assert_eq!(courtesy.until("k", now), None);
    }
}
