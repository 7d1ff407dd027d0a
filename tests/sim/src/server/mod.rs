//! A Redis server as a state machine: commands in, replies and pushes out.
//!
//! It has no clock, no sockets and no randomness. The caller says when a command runs. `tests/differential` compares
//! it with real servers.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

mod cluster;
mod commands;
mod connection;
mod hashes;
mod info;
mod keys;
mod keyspace;
mod lua;
mod numbers;
pub mod parts;
mod patterns;
mod pubsub;
mod refusals;
mod resp;
mod rights;
mod scripts;
mod sentinel;
mod show;
mod slots;
mod sorted;
mod strings;
#[cfg(test)]
mod tests;
mod tracking;
mod version;
mod waits;
mod zsets;

pub use cluster::{Cluster, Node};
pub use info::{Replica, Role};
pub use keyspace::{Change, Data, Entry};
pub use refusals::Refusal;
pub use resp::parse;
pub use sentinel::Sentinel;
pub use slots::{SLOTS, slot_of};
pub use sorted::SortedSet;
pub use version::Version;

use commands::{Command, Found};
use connection::Session;
use numbers::Float;
use resp::{Answer, Failure, Protocol, Reply};
use scripts::{Hash, Script};

pub type Bytes = Vec<u8>;

/// One server.
#[derive(Default)]
pub struct Server {
    /// Why the server refuses commands at the moment.
    pub refusal: Option<Refusal>,
    /// The commands that the user may not use, in upper case; a subcommand as `CLIENT|TRACKING`.
    pub denied: BTreeSet<String>,
    /// Patterns of the keys that the user may use; `None`: all keys.
    pub allowed_keys: Option<Vec<Bytes>>,
    /// Patterns of the channels that the user may use; `None`: all channels.
    pub allowed_channels: Option<Vec<Bytes>>,
    /// The settings, as `CONFIG` reads and sets them.
    pub settings: BTreeMap<String, String>,
    pub role: Role,
    /// A sentinel, and what it knows; it keeps no data.
    pub sentinel: Option<Sentinel>,
    /// The replicas that are connected, and what they have acknowledged.
    pub replicas: Vec<Replica>,
    /// The part of the server in a cluster, if it is a node of one.
    pub cluster: Option<Box<Cluster>>,
    pub version: Version,
    /// The number of changes so far, for replication.
    pub offset: u64,
    /// The number of commands so far.
    pub commands: u64,
    /// The number of scripts so far.
    pub scripts: u64,
    /// When scripts were asked about each key, in microseconds.
    pub asked: BTreeMap<Bytes, Vec<i64>>,
    /// When a script that the server did not know was asked about each key, in microseconds.
    pub not_known: BTreeMap<Bytes, Vec<i64>>,
    /// How often `CLIENT CACHING` was refused on one connection, at most.
    pub refused_caching: u32,

    run_id: String,
    entries: BTreeMap<Bytes, Entry>,
    /// The keys that the present command has changed.
    touched: Vec<Bytes>,
    changes: Vec<Change>,
    sessions: BTreeMap<usize, Session>,
    /// The number of sessions so far.
    connected: u64,
    /// The clients that listen to each channel.
    listeners: BTreeMap<Bytes, Vec<usize>>,
    /// The sessions that have read each key since its last change.
    watched: BTreeMap<Bytes, BTreeSet<u64>>,
    /// The scripts that `EVALSHA` knows.
    known: BTreeSet<Hash>,
    pushes: Vec<(usize, Bytes)>,

    // The present command.
    micros: i64,
    /// The same in milliseconds.
    now: i64,
    current: Option<usize>,
    protocol: Protocol,
    script: Option<Script>,
    /// Pushes to the present connection, by their place.
    own: [Bytes; 3],
}

/// The place of a push to the client whose command makes it: before the reply, behind it, or behind the messages that are
/// behind it.
const BEFORE: usize = 0;
const BEHIND: usize = 1;
const LAST: usize = 2;

impl Server {
    pub fn new(run_id: String) -> Self {
        Self {
            run_id,
            settings: info::usual_settings(),
            ..Self::default()
        }
    }

    /// Runs a command of connection `conn` at a Unix time, and appends the reply to `out`.
    ///
    /// A `WAIT` may answer nothing now. Then the connection [is blocked](Server::is_blocked), and its reply is among the
    /// pushes later. The caller holds its next commands back until then.
    pub fn run(&mut self, conn: usize, micros: i64, command: &[Bytes], out: &mut Bytes) {
        let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        self.commands += 1;
        self.set_time(micros);
        self.current = Some(conn);
        self.protocol = self.session().protocol;
        // Earlier servers have a client wait for the writes of all.
        let (before, counts_own_writes) = (self.offset, self.version.is_7_2());
        let answer = self.answer(&words);
        let reply = answer.unwrap_or_else(Reply::Error);
        self.settle();
        // `HELLO` answers in the version that it chooses.
        self.protocol = self.session().protocol;
        let (written, session) = (self.offset, self.session());
        if written != before || !counts_own_writes {
            session.written = written;
        }
        if session.caching {
            // Behind an unknown subcommand it is over.
            session.caching = matches!(commands::find(&words), Found::Command(it) if it.name.starts_with("CLIENT|"));
        }
        if session.asking {
            session.asking =
                matches!(commands::find(&words), Found::Command(it) if it.name == "ASKING");
        }
        self.current = None;
        out.append(&mut self.own[BEFORE]);
        reply.write(self.protocol, out);
        out.append(&mut self.own[BEHIND]);
        out.append(&mut self.own[LAST]);
    }

    fn answer(&mut self, words: &[&[u8]]) -> Answer {
        let command = match commands::find(words) {
            Found::Command(command) if self.knows(command) => command,
            Found::UnknownPart(container) if self.knows(container) => {
                let part = String::from_utf8_lossy(words[1]);
                let name = container.name;
                return Err(format!("ERR unknown subcommand '{part}'. Try {name} HELP.").into());
            }
            _ => return Err(unknown(words)),
        };
        if !command.takes(words.len()) {
            let name = command.name.to_lowercase();
            return Err(format!("ERR wrong number of arguments for '{name}' command").into());
        }
        if let Some(denied) = self.denied(command, words) {
            if command.name == "CLIENT|CACHING" {
                let session = self.session();
                session.refused_caching += 1;
                let times = session.refused_caching;
                self.refused_caching = self.refused_caching.max(times);
            }
            return Err(denied.at_top(command, self.version));
        }
        if let Some(misplaced) = self.misplaced(command, words) {
            return Err(misplaced);
        }
        if let Some(refused) = self.refused(command) {
            return Err(refused);
        }
        if self.is_only_listening() && !matches!(command.name, "PING" | "SUBSCRIBE" | "UNSUBSCRIBE")
        {
            let name = command.name.to_lowercase();
            return Err(format!(
                "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
                 RESET are allowed in this context"
            )
            .into());
        }
        self.execute(command, words)
    }

    fn execute(&mut self, command: &Command, words: &[&[u8]]) -> Answer {
        let answer = (command.run)(self, words);
        if command.is(commands::READ) {
            self.watch(command.keys(words));
        }
        answer
    }

    fn session(&mut self) -> &mut Session {
        let conn = self.current.expect("a command runs");
        self.sessions.entry(conn).or_insert_with(|| {
            self.connected += 1;
            Session::new(self.connected)
        })
    }

    fn set_time(&mut self, micros: i64) {
        self.micros = micros;
        self.now = micros.div_euclid(1_000);
    }

    /// Scripts meet the replies of the older version.
    fn speaks_resp3(&self) -> bool {
        self.script.is_none() && self.protocol == Protocol::Resp3
    }

    fn number(&self, value: f64) -> Reply {
        let style = self.version.style();
        Reply::Float(Float { value, style })
    }

    /// Takes the bytes for other connections, in their order.
    pub fn take_pushes(&mut self) -> Vec<(usize, Bytes)> {
        std::mem::take(&mut self.pushes)
    }

    /// Takes the changes of keys since the last call. One command makes one change of a key at most.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Returns the changes of keys since they were taken.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns a key as it is stored, also if its end is over.
    pub fn entry(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key)
    }

    pub fn entries(&self) -> impl Iterator<Item = (&Bytes, &Entry)> {
        self.entries.iter()
    }

    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Ends a connection.
    pub fn closed(&mut self, conn: usize) {
        if let Some(session) = self.sessions.remove(&conn) {
            for channel in &session.channels {
                self.leave(conn, channel);
            }
        }
    }

    /// Deletes all data, as an operator does.
    pub fn flush(&mut self) {
        self.clear();
        self.settle();
    }

    /// Deletes a key, as another client does.
    pub fn delete(&mut self, key: &[u8]) {
        if self.entries.remove(key).is_some() {
            self.changed(key);
            self.settle();
        }
    }

    /// Becomes a replica of the server at this address. Returns the connections that end, because they waited for
    /// replicas.
    pub fn follow(&mut self, host: String, port: u16) -> Vec<usize> {
        self.role = Role::Replica(host, port);
        self.replicas.clear();
        self.unblock()
    }

    /// Lengthens a key by a millisecond, as another client may do.
    pub fn lengthen(&mut self, key: &[u8], micros: i64) {
        self.set_time(micros);
        let now = self.now;
        if let Some(entry) = self.entries.get_mut(key)
            && !entry.is_over(now)
            && let Some(ends) = &mut entry.ends
        {
            *ends += 1;
            self.changed(key);
            self.settle();
        }
    }

    /// Takes all rights but these away. A command with subcommands is named by these.
    pub fn allow_only(&mut self, rights: &[String]) {
        self.denied = commands::without(rights);
    }

    /// Puts a hash into a key, as another client does.
    pub fn put_hash(&mut self, key: &[u8]) {
        let hash = [(b"field".to_vec(), b"value".to_vec())];
        self.put(
            key,
            Entry {
                data: Data::Hash(Rc::new(hash.into())),
                ends: None,
            },
        );
        self.settle();
    }

    /// Sets a key that is free, as another client does. Answers whether it was free.
    pub fn set_if_free(&mut self, micros: i64, key: &[u8], value: &[u8], ends: i64) -> bool {
        self.set_time(micros);
        let is_free = self.find(key).is_none();
        if is_free {
            let (data, ends) = (Data::Text(value.to_vec()), Some(ends / 1_000));
            self.put(key, Entry { data, ends });
        }
        self.settle();
        is_free
    }

    /// Deletes a key that has this value, as another client does. Answers whether it had it.
    pub fn delete_if(&mut self, key: &[u8], value: &[u8]) -> bool {
        let entry = self.entries.get(key);
        let has = entry.is_some_and(|entry| entry.data == Data::Text(value.to_vec()));
        if has {
            self.delete(key);
        }
        has
    }

    pub fn forget_scripts(&mut self) {
        self.known.clear();
    }

    /// Ends all connections and what belongs to them, and forgets the scripts.
    pub fn restart(&mut self, run_id: String, keeps_data: bool) {
        self.run_id = run_id;
        self.sessions.clear();
        self.listeners.clear();
        self.watched.clear();
        self.known.clear();
        self.pushes.clear();
        self.replicas.clear();
        if !keeps_data {
            self.clear();
            self.settle();
        }
    }
}

/// Names the first words of a command that does not exist.
fn unknown(words: &[&[u8]]) -> Failure {
    let mut with = String::new();
    for word in words.iter().skip(1) {
        if with.len() >= 128 {
            break;
        }
        let word = String::from_utf8_lossy(&word[..word.len().min(128 - with.len())]);
        with.push_str(&format!("'{word}' "));
    }
    let verb = words.first().copied().unwrap_or_default();
    let verb = String::from_utf8_lossy(&verb[..verb.len().min(128)]);
    format!("ERR unknown command '{verb}', with args beginning with: {with}").into()
}
