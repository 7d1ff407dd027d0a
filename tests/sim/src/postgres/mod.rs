//! A PostgreSQL server as a state machine: bytes in, bytes out, and the rows of one table.
//!
//! It has no clock and no sockets. It knows the statements of the store by their texts ([`texts`]), runs each of them as one
//! step ([`run`]), and refuses every other text. What it does not have, such as transactions of the application, cannot be
//! asked of it.

mod kinds;
mod rows;
mod run;
mod session;
#[cfg(test)]
mod tests;
mod texts;
mod wire;

use std::collections::{BTreeMap, BTreeSet};

pub use self::rows::{OLDEST_SNAPSHOT, Row, Table};
use self::session::Session;
use self::texts::Statement;
pub use self::wire::renamed;
use crate::rng::Rng;
pub use crate::server::Bytes;
use crate::server::Refusal;

/// The present time: true time in nanoseconds, and the clock of the server in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub now: u64,
    pub micros: i64,
}

/// A statement that was run for a connection, for a proxy that sends it again.
pub struct Recorded {
    pub connection: usize,
    statement: Statement,
    params: Vec<Option<Bytes>>,
}

/// One server.
#[derive(Default)]
pub struct Postgres {
    pub table: Table,
    /// Why the server refuses statements at the moment.
    pub refusal: Option<Refusal>,
    /// Whether statements meet those of others: a deadlock is found, a row is locked, a snapshot is old.
    pub conflicts: bool,
    /// Texts that the server does not know.
    pub unknown: Vec<String>,
    /// The statements that were run about a key, in microseconds.
    pub asked: Vec<(Bytes, i64)>,
    /// How many statements were run.
    pub statements: u64,
    /// What a proxy will send again.
    pub recorded: Option<Vec<Recorded>>,
    sessions: BTreeMap<usize, Session>,
    /// The sessions that have an advisory lock for themselves.
    advisory: BTreeMap<i64, usize>,
    /// The sessions that wait for one, in their order.
    waiting: Vec<(i64, usize)>,
    /// The sessions that listen to each channel.
    channels: BTreeMap<String, BTreeSet<usize>>,
    out: Vec<(usize, Bytes)>,
    rng: Rng,
}

impl Postgres {
    pub fn new(seed: u64) -> Self {
        Self {
            table: Table::new(1),
            rng: Rng::of(seed),
            ..Self::default()
        }
    }

    /// Takes the bytes for connections, in their order.
    pub fn take_out(&mut self) -> Vec<(usize, Bytes)> {
        std::mem::take(&mut self.out)
    }

    /// The server is killed: sessions end, and the last commits that were not flushed are lost.
    pub fn crash(&mut self, now: u64) {
        self.sessions.clear();
        self.advisory.clear();
        self.waiting.clear();
        self.channels.clear();
        self.out.clear();
        let kept = self.rng.below(self.table.unflushed(now) as u64 + 1);
        self.table.lose(kept as usize);
    }

    /// Runs what a proxy has recorded of some connections once more, in a session of its own.
    pub fn repeat(&mut self, at: Moment, is_its: impl Fn(usize) -> bool) {
        for it in self.recorded.take().unwrap_or_default() {
            if is_its(it.connection) {
                // The session of the proxy throws the answer away.
                let _ = self.run(at, &it.statement, &it.params);
            }
        }
    }
}
