//! Replicas: the writes of a master arrive there later, in order.

use std::collections::VecDeque;

use super::events::Event;
use super::servers::address;
use super::{MILLI, State};
use crate::server::{self, Change, Role};

/// The replication of a server from a master, if it is a replica.
#[derive(Default)]
pub(super) struct Following {
    pub(super) master: Option<usize>,
    /// The usual time until the replica has a write.
    pub(super) lag: u64,
    /// How many reasons stop the replication.
    stops: u32,
    /// It has yet to copy its master's data.
    is_apart: bool,
    /// Writes that it does not have yet, in order.
    behind: VecDeque<Write>,
    /// When the last write on its way arrives.
    last: u64,
}

struct Write {
    arrives: u64,
    /// The master's offset behind it.
    offset: u64,
    change: Change,
}

impl State {
    /// Adds a server that replicates from another one.
    pub fn add_replica(&mut self, of: usize, lag: u64) -> usize {
        let host = self.add_server();
        self.hosts[host].follows.lag = lag;
        self.follow(host, of);
        host
    }

    /// Makes a server a replica of another one, as `REPLICAOF` does.
    pub(super) fn follow(&mut self, host: usize, master: usize) {
        self.leave_master(host);
        let ended = self.hosts[host].server.follow(address(master), 6379);
        for connection in &ended {
            self.connections[*connection].commands.clear();
        }
        self.send_pushes(host);
        for connection in ended {
            self.server_ends(connection);
        }
        let follows = &mut self.hosts[host].follows;
        follows.master = Some(master);
        follows.is_apart = true;
        self.join_master(host);
    }

    /// Takes a replica from its master.
    pub(super) fn leave_master(&mut self, host: usize) {
        let follows = &mut self.hosts[host].follows;
        follows.behind.clear();
        follows.is_apart = true;
        if let Some(master) = follows.master.take() {
            let named = address(host);
            let replicas = &mut self.hosts[master].server.replicas;
            replicas.retain(|replica| replica.host != named);
        }
    }

    /// Gives a replica that is apart all data of its master, if both run.
    pub(super) fn join_master(&mut self, host: usize) {
        let follows = &self.hosts[host].follows;
        let Some(master) = follows.master else {
            return;
        };
        let can = follows.stops == 0 && self.runs(host) && self.runs(master);
        if !follows.is_apart || !can || self.hosts[master].server.role != Role::Master {
            return;
        }
        let [replica, its] = self
            .hosts
            .get_disjoint_mut([host, master])
            .expect("no server follows itself");
        replica.follows.is_apart = false;
        replica.server.copy(&its.server);
        its.server.replicas.push(server::Replica {
            host: address(host),
            port: 6379,
            acknowledged: its.server.offset,
        });
        self.send_pushes(host);
    }

    /// Has a server go on with its replication, and its replicas too, because it runs again.
    pub(super) fn go_on_replicating(&mut self, server: usize) {
        self.replicate(server);
        for host in 0..self.hosts.len() {
            if host == server || self.hosts[host].follows.master == Some(server) {
                self.join_master(host);
            }
        }
    }

    /// Ends the replication of a server that goes down, or to it.
    pub(super) fn end_replication(&mut self, server: usize) {
        for host in 0..self.hosts.len() {
            let master = self.hosts[host].follows.master;
            if host == server || master == Some(server) {
                self.leave_master(host);
                self.hosts[host].follows.master = master;
            }
        }
    }

    /// Sends the changes of one command, which arrive together.
    pub(super) fn send_to_replicas(&mut self, server: usize, changes: &[Change]) {
        let offset = self.hosts[server].server.offset;
        for replica in 0..self.hosts.len() {
            let follows = &self.hosts[replica].follows;
            if follows.master != Some(server) || follows.is_apart {
                continue;
            }
            let jitter = self.rng.below(MILLI / 5);
            let follows = &mut self.hosts[replica].follows;
            let arrives = (self.now + follows.lag + jitter).max(follows.last + 1);
            follows.last = arrives;
            follows.behind.extend(changes.iter().map(|change| Write {
                arrives,
                offset,
                change: change.clone(),
            }));
            if follows.stops == 0 && !changes.is_empty() {
                self.at(arrives, Event::Replicate { replica });
            }
        }
    }

    /// Gives a replica all writes that are on their way.
    pub(super) fn replicate_all(&mut self, host: usize) {
        for write in std::mem::take(&mut self.hosts[host].follows.behind) {
            self.hosts[host].server.apply(&write.change);
        }
    }

    /// Gives a replica all writes that have arrived.
    pub(super) fn replicate(&mut self, host: usize) {
        let runs = self.runs(host);
        let follows = &mut self.hosts[host].follows;
        let Some(master) = follows.master.filter(|_| runs && follows.stops == 0) else {
            return;
        };
        let mut arrived = Vec::new();
        while let Some(write) = follows
            .behind
            .pop_front_if(|write| write.arrives <= self.now)
        {
            arrived.push(write);
        }
        let Some(last) = arrived.last() else {
            return;
        };
        let offset = last.offset;
        for write in &arrived {
            self.hosts[host].server.apply(&write.change);
        }
        self.send_pushes(host);
        let named = address(host);
        let its = &mut self.hosts[master].server;
        let mut replicas = its.replicas.iter();
        if let Some(replica) = replicas.position(|replica| replica.host == named) {
            its.acknowledge(replica, offset);
        }
        if !self.hosts[master].is_stopped() {
            self.send_pushes(master);
        }
    }

    pub(super) fn stop_replica(&mut self, replica: usize) {
        self.hosts[replica].follows.stops += 1;
    }

    pub(super) fn resume_replica(&mut self, replica: usize) {
        let soon = self.now + self.rng.below(20 * MILLI);
        let follows = &mut self.hosts[replica].follows;
        follows.stops -= 1;
        follows.last = follows.last.max(soon);
        for write in &mut follows.behind {
            write.arrives = write.arrives.max(soon);
        }
        self.at(soon, Event::Replicate { replica });
        self.join_master(replica);
    }

    /// Plans the end of the next `WAIT` of a server.
    pub(super) fn plan_wait_end(&mut self, server: usize) {
        let host = &self.hosts[server];
        let Some(end) = host.server.next_wait_end() else {
            return;
        };
        let left = (end - self.server_time(server)).max(0) as u64;
        self.at(self.now + left * 1_000 + 1_000, Event::WaitEnds { server });
    }

    pub(super) fn wait_ends(&mut self, server: usize) {
        if self.hosts[server].is_stopped() {
            return;
        }
        let time = self.server_time(server);
        self.hosts[server].server.end_waits(time);
        self.send_pushes(server);
    }
}
