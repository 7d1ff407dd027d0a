//! Sessions: the messages of a connection in their order.

use std::collections::BTreeMap;

use super::texts::{Kind, Statement};
use super::wire::{self, Message};
use super::{Bytes, Moment, Postgres, Recorded};
use crate::server::Refusal;

/// A statement with the types of its parameters.
#[derive(Clone)]
struct Prepared {
    statement: Statement,
    types: Vec<i32>,
}

#[derive(Default)]
pub(super) struct Session {
    input: Bytes,
    is_started: bool,
    /// The one without a name is replaced again and again.
    prepared: BTreeMap<String, Prepared>,
    bound: Option<(Statement, Vec<Option<Bytes>>)>,
    /// A message has failed, and those up to the next `Sync` are passed over.
    has_failed: bool,
    /// The channel that it listens to when it has the lock for which it waits.
    waits: Option<String>,
}

/// An error of a statement.
pub(super) struct Refused {
    pub(super) code: &'static str,
    pub(super) text: String,
}

impl Refused {
    pub(super) fn new(code: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { code, text }
    }
}

impl Postgres {
    /// Takes bytes of a connection.
    pub fn receive(&mut self, at: Moment, connection: usize, bytes: &[u8]) {
        let session = self.sessions.entry(connection).or_default();
        session.input.extend_from_slice(bytes);
        self.work_off(at, connection);
    }

    /// Answers the messages of a session up to one that has to wait.
    fn work_off(&mut self, at: Moment, connection: usize) {
        let mut out = Bytes::new();
        while let Some(session) = self.sessions.get_mut(&connection)
            && session.waits.is_none()
            && let Some(message) = wire::take(&mut session.input, session.is_started)
        {
            if message == Message::Terminate {
                self.closed(at, connection);
                break;
            }
            let is_sync = matches!(message, Message::Sync);
            if session.has_failed && !is_sync {
                continue;
            }
            // A query ends its transaction by itself.
            let is_query = matches!(message, Message::Query(_));
            if let Err(refused) = self.answer(at, connection, message, &mut out) {
                wire::error(&mut out, refused.code, &refused.text);
                if is_query {
                    wire::ready(&mut out);
                } else if let Some(session) = self.sessions.get_mut(&connection) {
                    session.has_failed = true;
                }
            }
        }
        self.out.push((connection, out));
    }

    fn answer(
        &mut self,
        at: Moment,
        connection: usize,
        message: Message,
        out: &mut Bytes,
    ) -> Result<(), Refused> {
        match message {
            Message::Startup => {
                if self.refusal == Some(Refusal::Loading) {
                    return Err(Refused::new("57P03", "the database system is starting up"));
                }
                self.session(connection).is_started = true;
                wire::greeting(out);
            }
            Message::Query(text) => {
                let statement = self.statement(&text)?;
                if statement.kind == Kind::Listen {
                    let (channel, lock) = (&statement.holes[0], &statement.holes[1]);
                    let lock = lock.parse().expect("a number");
                    self.session(connection).waits = Some(channel.clone());
                    self.waiting.push((lock, connection));
                    self.grant_locks(out, connection);
                    return Ok(());
                }
                self.run(at, &statement, &[])?;
                wire::done(out, 0);
                wire::ready(out);
            }
            Message::Parse { name, text, types } => {
                let statement = self.statement(&text)?;
                let prepared = Prepared { statement, types };
                self.session(connection).prepared.insert(name, prepared);
                wire::parsed(out);
            }
            Message::Bind { statement, params } => {
                let statement = self.prepared(connection, &statement).statement.clone();
                self.session(connection).bound = Some((statement, params));
                wire::bound(out);
            }
            Message::Describe(name) => {
                let prepared = self.prepared(connection, &name);
                let columns = prepared.statement.kind.columns();
                wire::described(out, &prepared.types, columns);
            }
            Message::Execute => {
                let bound = self.session(connection).bound.take();
                let (statement, params) = bound.expect("a portal");
                if let Some(recorded) = &mut self.recorded {
                    recorded.push(Recorded {
                        connection,
                        statement: statement.clone(),
                        params: params.clone(),
                    });
                }
                let ran = self.run(at, &statement, &params)?;
                if ran.is_local {
                    let text = "canceling wait for synchronous replication due to user request";
                    wire::warning(out, "01000", text);
                }
                ran.rows.iter().for_each(|row| wire::row(out, row));
                wire::done(out, ran.rows.len());
            }
            Message::Sync => {
                self.session(connection).has_failed = false;
                wire::ready(out);
            }
            Message::Close(name) => {
                self.session(connection).prepared.remove(&name);
                wire::closed(out);
            }
            Message::Terminate => unreachable!("it ends the session"),
        }
        Ok(())
    }

    fn session(&mut self, connection: usize) -> &mut Session {
        self.sessions.get_mut(&connection).expect("a session")
    }

    fn prepared(&mut self, connection: usize, name: &str) -> &Prepared {
        let prepared = self.session(connection).prepared.get(name);
        prepared.expect("a statement that was prepared")
    }

    fn statement(&mut self, text: &str) -> Result<Statement, Refused> {
        Statement::read(text).ok_or_else(|| {
            self.unknown.push(text.to_owned());
            Refused::new("42601", "the simulated server does not know the statement")
        })
    }

    /// Gives advisory locks that are free to the sessions that wait for them. `out`: the answer to this connection.
    fn grant_locks(&mut self, out: &mut Bytes, connection: usize) {
        for (lock, waiter) in std::mem::take(&mut self.waiting) {
            let holder = *self.advisory.entry(lock).or_insert(waiter);
            if holder != waiter {
                self.waiting.push((lock, waiter));
                continue;
            }
            // The transaction commits, so the session listens.
            if let Some(channel) = self.session(waiter).waits.take() {
                let listeners = self.channels.entry(channel).or_default();
                listeners.insert(waiter);
            }
            let mut own = Bytes::new();
            wire::done(&mut own, 1);
            wire::ready(&mut own);
            match waiter == connection {
                true => out.append(&mut own),
                false => self.out.push((waiter, own)),
            }
        }
    }

    /// Ends a session: its locks are free, and it listens no more.
    pub fn closed(&mut self, at: Moment, connection: usize) {
        if self.sessions.remove(&connection).is_none() {
            return;
        }
        self.advisory.retain(|_, holder| *holder != connection);
        self.waiting.retain(|(_, waiter)| *waiter != connection);
        for listeners in self.channels.values_mut() {
            listeners.remove(&connection);
        }
        let waiters: Vec<usize> = self.waiting.iter().map(|(_, waiter)| *waiter).collect();
        self.grant_locks(&mut Bytes::new(), connection);
        for waiter in waiters {
            self.work_off(at, waiter);
        }
    }
}
