//! The machines that servers run on: bytes in, bytes out, in the order in which segments arrive.

use std::collections::BTreeMap;

use super::replication::Replica;
use super::{EPOCH, MICRO, State};
use crate::server::{self, Bytes, Change, Server};

pub struct Host {
    pub server: Server,
    pub(super) is_up: bool,
    /// How many reasons stop it.
    pub(super) stops: u32,
    /// How far the server's clock is ahead, in microseconds.
    pub clock: i64,
    /// How fast the server's clock is, in millionths.
    pub ppm: i64,
    /// Segments that arrived while it was stopped.
    pub(super) unread: Vec<(usize, Bytes)>,
    /// The servers that replicate from this one, in the order of the server's own list.
    pub(super) replicas: Vec<Replica>,
    /// For the ledger: the life of each key in true time.
    pub lives: Lives,
}

/// The states of a key in true time: from when, and until when at most, if it is there.
pub type Lives = BTreeMap<Bytes, Vec<(u64, Option<u64>)>>;

impl Host {
    pub fn new(run_id: String) -> Self {
        Self {
            server: Server::new(run_id),
            is_up: true,
            stops: 0,
            clock: 0,
            ppm: 0,
            unread: Vec::new(),
            replicas: Vec::new(),
            lives: Lives::new(),
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

    pub(super) fn host_at(&self, address: &str) -> Option<usize> {
        let host = address.split(':').next()?.strip_prefix("10.0.0.")?;
        let number: usize = host.parse().ok()?;
        (number < self.hosts.len()).then_some(number)
    }

    /// Unix time by a server's clock, in microseconds.
    pub fn server_time(&self, server: usize) -> i64 {
        let host = &self.hosts[server];
        let now = self.now as i64;
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
            let time = self.server_time(server);
            let host = &mut self.hosts[server];
            host.server.run(connection, time, &command, &mut out);
            self.spread(server);
        }
        if self.hosts[server].server.is_blocked(connection) {
            self.plan_wait_end(server);
        }
        self.server_sends(connection, out);
        self.send_pushes(server);
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
        for change in self.hosts[server].server.take_changes() {
            self.note_life(server, &change);
            self.send_to_replicas(server, &change);
        }
    }

    fn note_life(&mut self, server: usize, change: &Change) {
        let until = change.now.as_ref().map(|entry| match entry.ends {
            // A key is there to the end of its last millisecond.
            Some(ends) => {
                let left = self.true_time_left(server, ends + 1);
                self.now.saturating_add_signed(left.max(0))
            }
            None => u64::MAX,
        });
        let lives = &mut self.hosts[server].lives;
        let states = lives.entry(change.key.clone()).or_default();
        states.push((self.now, until));
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
        self.wait_ends(server);
    }

    pub(super) fn shut_down(&mut self, server: usize) {
        for connection in self.connections_to(server) {
            self.cut(connection);
            self.server_hears_end(connection);
        }
        let host = &mut self.hosts[server];
        host.is_up = false;
        host.unread.clear();
    }

    pub(super) fn start_up(&mut self, server: usize, keeps_data: bool) {
        let run_id = run_id(server, self.number());
        let time = self.now;
        let host = &mut self.hosts[server];
        host.is_up = true;
        host.server.restart(run_id, keeps_data);
        if !keeps_data {
            for states in host.lives.values_mut() {
                states.push((time, None));
            }
        }
        self.spread(server);
        self.connect_replicas(server);
    }

    pub(super) fn disconnect_clients(&mut self, server: usize) {
        for connection in self.connections_to(server) {
            self.server_ends(connection);
        }
    }
}

fn run_id(server: usize, life: u64) -> String {
    format!("{server:08x}{life:032x}")
}
