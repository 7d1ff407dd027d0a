//! The protocol with the words of the Lua scripts: their keys and arguments, their replies, and the keys as a Redis server
//! holds them. `tests/sim` compares these with the scripts.

mod call;
mod reply;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use self::reply::Value;
use super::{Around, Document, step};
use crate::base::clock::ServerTime;

/// The keys of one server.
#[derive(Clone, Default)]
pub struct Server {
    keys: BTreeMap<String, Document>,
    mark: u64,
    /// The addresses at which processes listen.
    pub listeners: BTreeSet<String>,
    /// Whether the server is out of memory.
    pub is_full: bool,
}

impl Server {
    /// Runs a script at a Unix time in microseconds. Returns its reply, and for each push the address and the message.
    ///
    /// # Panics
    ///
    /// If the words are not those of the script.
    pub fn run(
        &mut self,
        script: &str,
        micros: u64,
        keys: &[String],
        arguments: &[String],
    ) -> (Value, Vec<(String, String)>) {
        self.settle(micros);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let listeners = &self.listeners;
        let mut around = Around {
            now: ServerTime(micros),
            mark: self.mark,
            used: 0,
            has_room: !self.is_full,
            listens: &|address| listeners.contains(&address.to_string()),
            pushes: Vec::new(),
        };
        let each = call::calls(script, keys, &arguments);
        let replies = each.into_iter().map(|(key, operation)| {
            let document = self.keys.entry(key.to_owned()).or_default();
            let reply = step(document, &operation, &mut around);
            reply::of(script, &reply, document, micros)
        });
        let replies: Vec<_> = replies.collect();
        self.mark = around.mark;
        let pushes = around.pushes.iter();
        let pushes = pushes.map(|push| reply::message(push, &keys[0], micros));
        (reply::joined(script, replies), pushes.collect())
    }

    /// Forgets what has ended, as a server does by itself.
    pub fn settle(&mut self, micros: u64) {
        for document in self.keys.values_mut() {
            document.settle(micros / 1000);
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}
