//! Changes of an embedded store's keys that a test makes.

use std::sync::Arc;
use std::time::Duration;

use super::state::MemoryState;
use crate::base::clock::ServerTime;
use crate::base::token::Token;
use crate::protocol::{Document, Hold, Phase};
use crate::store::Event;
use crate::store::steps::lasts;

impl MemoryState {
    /// Tells the owner of a key that another client is about to change it.
    fn changes(&mut self, key: &Arc<str>, now: ServerTime) {
        let owner = match self.look(key, now).map(|document| &document.phase) {
            Some(Phase::Held(hold)) => hold.token,
            _ => return,
        };
        if let Some(events) = self.listeners.get(&owner.address()) {
            let event = Event::Changed(Arc::clone(key));
            self.messages.push((events.clone(), event));
        }
    }

    /// Gives the key to a client of another library.
    pub(super) fn seize(&mut self, key: &Arc<str>, ttl: Duration, now: ServerTime) {
        self.changes(key, now);
        self.on(key, now, |document, around| {
            document.phase = Phase::Held(Hold {
                // A test has seized the key, and no process has this address.
                token: Token::NOBODY,
                ends: around.now_ms() + lasts(ttl),
            });
        });
    }

    /// Deletes the key, whatever it holds. Returns whether it was there.
    pub(super) fn delete(&mut self, key: &Arc<str>, now: ServerTime) -> bool {
        self.changes(key, now);
        self.on(key, now, |document, around| {
            let existed = !document.is_free();
            document.phase = Phase::Free;
            document.serve_waiters(around);
            existed
        })
    }

    /// Counts the keys that are taken, and the waiters in the queues.
    pub(super) fn counts(&self, now: ServerTime) -> (usize, usize) {
        let is_taken = |document: &&Document| document.ends() >= Some(now.0 / 1000);
        let taken = self.keys.values().filter(is_taken).count();
        let waiting = self.keys.values().map(|document| document.queue.len());
        (taken, waiting.sum())
    }
}
