//! The protocol with the words of the Lua scripts: their keys and arguments, their replies, and the keys as a Redis server
//! holds them. `tests/sim` compares these with the scripts.

mod call;
mod reply;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use self::reply::Value;
use super::{Around, Document, Reply, acquire_all, step};
use crate::base::clock::ServerTime;
use crate::base::token::Address;

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
    #[cfg(lock_sim)]
    pub(crate) fn of(lock: &str, document: Document) -> Self {
        Self {
            keys: BTreeMap::from([(lock.to_owned(), document)]),
            ..Self::default()
        }
    }

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
        let listens = |address: Address| listeners.contains(&address.to_string());
        let mut around = Around {
            has_room: !self.is_full,
            ..Around::new(ServerTime(micros), self.mark, &listens)
        };
        let reply = match script {
            "ALL" => all(&mut self.keys, &mut around, keys, &arguments),
            _ => each(&mut self.keys, &mut around, script, keys, &arguments),
        };
        self.mark = around.mark;
        let pushes = around.pushes.iter();
        let pushes = pushes.map(|push| reply::message(push, &keys[0], micros));
        (reply, pushes.collect())
    }

    /// Removes keys that have ended, as a server does by itself.
    pub fn settle(&mut self, micros: u64) {
        for document in self.keys.values_mut() {
            document.settle(micros / 1000);
        }
    }
}

/// Runs a script that does the same with each of its keys.
fn each(
    documents: &mut BTreeMap<String, Document>,
    around: &mut Around<'_>,
    script: &str,
    keys: &[String],
    arguments: &[&str],
) -> Value {
    let calls = call::calls(script, keys, arguments).into_iter();
    let replies = calls.map(|(key, operation)| {
        let document = documents.entry(key.to_owned()).or_default();
        let reply = step(document, &operation, around);
        reply::of(script, &reply, document, around.now.0)
    });
    let replies = replies.collect();
    reply::joined(script, replies)
}

/// Takes several keys. The first name is that of the mark.
fn all(
    documents: &mut BTreeMap<String, Document>,
    around: &mut Around<'_>,
    keys: &[String],
    arguments: &[&str],
) -> Value {
    let mut taken: Vec<Document> = keys[1..]
        .iter()
        .map(|key| documents.remove(key).unwrap_or_default())
        .collect();
    let tokens = arguments[1..].iter().map(|token| call::token_of(token));
    let leases: Vec<_> = keys[1..]
        .iter()
        .map(|key| key.as_str().into())
        .zip(tokens)
        .collect();
    let reply = acquire_all(&mut taken, &leases, call::number(arguments[0]), around);
    let shown = match &reply {
        Reply::BusyAt(index, _) => &taken[*index],
        _ => &taken[0],
    };
    let reply = reply::of("ALL", &reply, shown, around.now.0);
    documents.extend(keys[1..].iter().cloned().zip(taken));
    reply
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}
