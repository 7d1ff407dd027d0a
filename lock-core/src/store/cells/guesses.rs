//! What this process believes the store to have.
//!
//! A belief that is wrong costs a round trip and nothing else, because each write compares the write before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Written;
use super::codec::Cell;
use crate::base::clock::Moment;
use crate::base::sync::lock;

/// For how long a key is remembered that this process neither holds nor waits for.
const KEPT: Duration = Duration::from_secs(1);

/// The state of a key, and the write that made it. Number 0: the store has nothing about the key, or what it has is over.
#[derive(Clone, Debug, Default)]
pub(super) struct Guess {
    pub(super) cell: Arc<Cell>,
    pub(super) seen: Written,
}

#[derive(Default)]
pub(super) struct Guesses(Mutex<Known>);

#[derive(Default)]
struct Known {
    keys: HashMap<Arc<str>, (Guess, Moment)>,
    /// The number of keys at which the next sweep forgets those that are old.
    sweep_at: usize,
}

impl Guesses {
    /// Returns what is known of a key, or that the store has nothing.
    pub(super) fn of(&self, key: &str, now: Moment) -> Guess {
        let known = lock(&self.0);
        let known = known.keys.get(key).filter(|(_, until)| *until > now);
        known.map(|(guess, _)| guess.clone()).unwrap_or_default()
    }

    /// Notes the state of a key, for `lasts` where this process holds the key or waits for it.
    pub(super) fn note(&self, key: &Arc<str>, guess: Guess, lasts: Option<Duration>, now: Moment) {
        let until = now + lasts.unwrap_or_default().max(KEPT);
        let mut known = lock(&self.0);
        known.keys.insert(Arc::clone(key), (guess, until));
        if known.keys.len() >= known.sweep_at {
            known.keys.retain(|_, (_, until)| *until > now);
            known.sweep_at = (known.keys.len() * 2).max(64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_others_is_forgotten_after_a_second_and_one_of_this_process_at_its_end() {
        let (guesses, now) = (Guesses::default(), Moment(1_000_000_000));
        let guess = |revision| Guess {
            seen: Written {
                revision,
                ..Written::default()
            },
            ..Guess::default()
        };
        let minute = Some(Duration::from_secs(60));
        guesses.note(&"theirs".into(), guess(1), None, now);
        guesses.note(&"ours".into(), guess(2), minute, now);
        let later = now + KEPT;
        assert_eq!(guesses.of("theirs", now).seen.revision, 1);
        assert_eq!(guesses.of("theirs", later).seen.revision, 0);
        assert_eq!(guesses.of("ours", later).seen.revision, 2);
        for number in 0..1_000 {
            let then = now + 2 * KEPT * number;
            guesses.note(&format!("{number}").into(), guess(3), None, then);
        }
        assert!(lock(&guesses.0).keys.len() < 100, "the old ones are gone");
    }
}
