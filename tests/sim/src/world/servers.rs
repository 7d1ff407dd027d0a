//! The machines that servers run on: bytes in, bytes out, in the order in which segments arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::cluster::News;
use super::events::Event;
use super::failover::Part;
use super::replication::Following;
use super::writes::{Value, Write};
use super::{EPOCH, MICRO, MILLI, State};
use crate::postgres::{Postgres, Table};
use crate::server::{self, Bytes, Change, Cluster, Data, Entry, Role, Server, SortedSet};

/// A process that is stopped for longer gives the operation up that it is at.
const LONGEST_PAUSE: u64 = 900 * MILLI;

#[derive(Default)]
pub struct Host {
    pub server: Server,
    /// The server is one of PostgreSQL, and `server` shows the ledger what it has.
    pub postgres: Option<Box<Postgres>>,
    pub(super) is_up: bool,
    /// How many reasons stop it.
    pub(super) stops: u32,
    /// How far the server's clock is ahead, in microseconds.
    pub clock: i64,
    /// How fast the server's clock is, in millionths.
    pub ppm: i64,
    /// Segments that arrived while it was stopped.
    pub(super) unread: Vec<(usize, Bytes)>,
    /// In a cluster, what it has missed while it was stopped or down.
    pub(super) unheard: Vec<News>,
    pub(super) follows: Following,
    /// Its part in failovers.
    pub(super) part: Part,
    /// For the ledger: the life of each key in true time.
    pub lives: Lives,
    /// For the ledger: the texts of each key, and since when they are there.
    pub texts: BTreeMap<Bytes, Vec<(u64, Bytes)>>,
    /// For the ledger: when a key was given to a waiter, and how long that had waited by the server's clock, in microseconds.
    pub given: BTreeMap<Bytes, Vec<(u64, i64)>>,
    /// The queues before the present command.
    queues: BTreeMap<Bytes, Rc<SortedSet>>,
    /// The keys that a stranger deletes right after their next renewal.
    pub(super) strikes: BTreeSet<Bytes>,
    /// Whether a stranger runs a command now.
    pub(super) is_strange: bool,
    /// For the ledger: the writes of locks, in their order.
    pub writes: Vec<Write>,
    /// The present values of locks.
    pub(super) values: BTreeMap<usize, Value>,
}

/// The states of a key in true time: from when, and until when at most, if it is there.
pub type Lives = BTreeMap<Bytes, Vec<(u64, Option<u64>)>>;

impl Host {
    pub fn new(run_id: String) -> Self {
        Self {
            server: Server::new(run_id),
            is_up: true,
            ..Self::default()
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stops > 0
    }
}

impl State {
    /// Adds a server. Its address is `10.0.0.<number>:6379`.
    pub fn add_server(&mut self) -> usize {
        let number = self.hosts.len();
        self.hosts.push(Host::new(run_id(number, 0)));
        number
    }

    /// Returns whether a server is up and not stopped.
    pub(super) fn runs(&self, server: usize) -> bool {
        self.hosts[server].is_up && !self.hosts[server].is_stopped()
    }

    pub(super) fn host_at(&self, address: &str) -> Option<usize> {
        let host = address.split(':').next()?.strip_prefix("10.0.0.")?;
        let number: usize = host.parse().ok()?;
        (number < self.hosts.len()).then_some(number)
    }

    /// Unix time by a server's clock, in microseconds.
    pub fn server_time(&self, server: usize) -> i64 {
        self.server_time_at(server, self.now)
    }

    /// The same at another time, if the clock has not stepped in between.
    pub fn server_time_at(&self, server: usize, now: u64) -> i64 {
        let host = &self.hosts[server];
        let now = now as i64;
        EPOCH + (now + now * host.ppm / 1_000_000) / MICRO as i64 + host.clock
    }

    /// True time that is left until a server's clock shows `millis`.
    pub fn true_time_left(&self, server: usize, millis: i64) -> i64 {
        let left = millis * 1_000 - self.server_time(server);
        let ppm = i128::from(self.hosts[server].ppm);
        (i128::from(left) * 1_000 * 1_000_000 / (1_000_000 + ppm)) as i64
    }

    pub(super) fn serve(&mut self, connection: usize, bytes: &[u8]) {
        let it = &mut self.connections[connection];
        if !it.is_at_server {
            return;
        }
        let server = it.server;
        if self.with_postgres(server, |postgres, at| {
            postgres.receive(at, connection, bytes);
        }) {
            return;
        }
        let it = &mut self.connections[connection];
        it.input.extend_from_slice(bytes);
        it.commands.extend(server::parse(&mut it.input));
        self.work_off(connection);
    }

    /// Runs the commands of a connection up to one that blocks.
    pub(super) fn work_off(&mut self, connection: usize) {
        let server = self.connections[connection].server;
        let mut out = Vec::new();
        while !self.hosts[server].server.is_blocked(connection)
            && let Some(command) = self.connections[connection].commands.pop_front()
        {
            self.record(connection, &command);
            let time = self.server_time(server);
            let host = &mut self.hosts[server];
            host.server.run(connection, time, &command, &mut out);
            self.may_stop_amid_a_release(connection);
            self.spread(server);
            self.pass_messages_on(server);
        }
        if self.hosts[server].server.is_blocked(connection) {
            self.plan_wait_end(server);
        }
        self.server_sends(connection, out);
        self.send_pushes(server);
    }

    /// Begins the stop of a process whose command has deleted a set of shares.
    fn may_stop_amid_a_release(&mut self, connection: usize) {
        let it = &self.connections[connection];
        let (process, server) = (it.process, &self.hosts[it.server].server);
        let deletes = |it: &Change| it.now.is_none() && it.key.starts_with(b"lockkit:!s");
        let is_amid = self.stops_to_come.contains_key(&process)
            && server.cluster.as_deref().is_some_and(Cluster::is_moving)
            && server.changes().iter().any(deletes);
        if is_amid && let Some(fault) = self.stops_to_come.remove(&process) {
            self.processes[process].stops += 1;
            let soon = self.now + self.rng.below(LONGEST_PAUSE);
            let ends = soon.min(self.faults[fault].end());
            self.at(ends, Event::GoesOn { process });
        }
    }

    pub(super) fn send_pushes(&mut self, server: usize) {
        for (connection, bytes) in self.hosts[server].server.take_pushes() {
            self.server_sends(connection, bytes);
            // It may have waited for replicas.
            if !self.connections[connection].commands.is_empty() {
                self.work_off(connection);
            }
        }
    }

    /// Tells replicas and the ledger what has changed.
    pub(super) fn spread(&mut self, server: usize) {
        let changes = self.hosts[server].server.take_changes();
        if changes.is_empty() || self.hosts[server].server.role != Role::Master {
            return;
        }
        for change in &changes {
            self.note_key(server, &change.key, change.now.as_ref());
            self.note_text(server, change);
            self.note_shares(server, change);
            self.note_write(server, change);
        }
        self.send_to_replicas(server, &changes);
        let queues = &mut self.hosts[server].queues;
        for change in changes {
            match change.now.map(|entry| entry.data) {
                Some(Data::Sorted(queue)) => drop(queues.insert(change.key, queue)),
                _ => drop(queues.remove(&change.key)),
            }
        }
    }

    /// Notes a new text of a key, and whether its owner stood in a queue.
    fn note_text(&mut self, server: usize, change: &Change) {
        let Some(Data::Text(text)) = change.now.as_ref().map(|entry| &entry.data) else {
            return;
        };
        let (now, clock) = (self.now, self.server_time(server));
        let host = &mut self.hosts[server];
        let texts = host.texts.entry(change.key.clone()).or_default();
        if texts.last().is_some_and(|(_, last)| last == text) {
            return;
        }
        texts.push((now, text.clone()));
        let mut waiters = host.queues.values().flat_map(|queue| queue.members());
        if let Some((score, _)) = waiters.find(|(_, waiter)| waiter.starts_with(text)) {
            let given = host.given.entry(change.key.clone()).or_default();
            given.push((now, clock - *score as i64));
        }
    }

    /// Notes the shares that have entered a set of owners, as texts of the set.
    fn note_shares(&mut self, server: usize, change: &Change) {
        let set = match change.now.as_ref().map(|entry| &entry.data) {
            Some(Data::Sorted(set)) if change.key.starts_with(b"lockkit:!s") => set,
            _ => return,
        };
        let (now, host) = (self.now, &mut self.hosts[server]);
        let before = host.queues.get(&change.key);
        let is_new = |share: &Bytes| before.is_none_or(|before| before.score(share).is_none());
        let new = set.members().iter().filter(|(_, share)| is_new(share));
        let texts = host.texts.entry(change.key.clone()).or_default();
        texts.extend(new.map(|(_, share)| (now, share.clone())));
    }

    /// Notes the state of a key from now on.
    fn note_key(&mut self, server: usize, key: &Bytes, now: Option<&Entry>) {
        let until = now.map(|entry| match entry.ends {
            // A key is there to the end of its last millisecond.
            Some(ends) => {
                let left = self.true_time_left(server, ends + 1);
                self.now.saturating_add_signed(left.max(0))
            }
            None => u64::MAX,
        });
        let lives = &mut self.hosts[server].lives;
        let states = lives.entry(key.clone()).or_default();
        states.push((self.now, until));
    }

    /// Notes for the ledger that a server's keys count from now on.
    pub(super) fn note_keys(&mut self, server: usize) {
        let entries = self.hosts[server].server.entries();
        let entries: Vec<_> = entries.map(|(key, it)| (key.clone(), it.clone())).collect();
        for (key, entry) in entries {
            self.note_key(server, &key, Some(&entry));
        }
    }

    /// Notes for the ledger that a server's keys count no more.
    pub(super) fn forget_keys(&mut self, server: usize) {
        let now = self.now;
        for states in self.hosts[server].lives.values_mut() {
            states.push((now, None));
        }
    }

    pub(super) fn stop_server(&mut self, server: usize) {
        self.hosts[server].stops += 1;
    }

    pub(super) fn resume_server(&mut self, server: usize) {
        self.hosts[server].stops -= 1;
        if self.hosts[server].is_stopped() {
            return;
        }
        for (connection, bytes) in std::mem::take(&mut self.hosts[server].unread) {
            self.serve(connection, &bytes);
        }
        self.catches_up(server);
        self.wait_ends(server);
        self.is_back(server);
    }

    pub(super) fn shut_down(&mut self, server: usize) {
        for connection in self.connections_to(server) {
            self.cut(connection);
            self.server_hears_end(connection);
        }
        let host = &mut self.hosts[server];
        host.is_up = false;
        host.unread.clear();
        self.with_postgres(server, |postgres, at| postgres.crash(at.now));
        self.end_replication(server);
    }

    pub(super) fn start_up(&mut self, server: usize, keeps_data: bool) {
        let run_id = run_id(server, self.number());
        let host = &mut self.hosts[server];
        host.is_up = true;
        host.server.restart(run_id, keeps_data);
        if !keeps_data {
            self.forget_keys(server);
            self.with_postgres(server, |postgres, _| {
                postgres.table = Table::new(postgres.table.history + 1);
            });
        }
        self.spread(server);
        self.is_back(server);
        self.rejoins(server);
    }

    /// Has a server take up again what it has missed.
    fn is_back(&mut self, server: usize) {
        // The nodes of a cluster tell each other what has changed.
        if self.hosts[server].server.cluster.is_none() {
            self.obey(server);
        }
        self.go_on_replicating(server);
    }

    pub(super) fn disconnect_clients(&mut self, server: usize) {
        for connection in self.connections_to(server) {
            self.server_ends(connection);
        }
    }
}

/// The host part of a server's address.
pub(super) fn address(server: usize) -> String {
    format!("10.0.0.{server}")
}

fn run_id(server: usize, life: u64) -> String {
    format!("{server:08x}{life:032x}")
}
