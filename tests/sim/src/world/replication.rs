//! Replicas: the writes of a server arrive there later, in order.

use std::collections::VecDeque;

use super::events::Event;
use super::{MILLI, State};
use crate::server::{self, Change};

/// A replica, as its master has it.
pub(super) struct Replica {
    /// The host that it runs on.
    host: usize,
    /// The usual time until it has a write.
    lag: u64,
    /// How many reasons stop it.
    stops: u32,
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
        self.hosts[of].replicas.push(Replica {
            host,
            lag,
            stops: 0,
            behind: VecDeque::new(),
            last: 0,
        });
        self.hosts[host].server.role = server::Role::Replica(format!("10.0.0.{of}"), 6379);
        self.connect_replicas(of);
        host
    }

    /// Gives each replica all data of its master, as after a restart.
    pub(super) fn connect_replicas(&mut self, server: usize) {
        self.hosts[server].server.replicas.clear();
        let entries = self.hosts[server].server.entries();
        let all: Vec<Change> = entries
            .map(|(key, entry)| Change {
                key: key.clone(),
                now: Some(entry.clone()),
            })
            .collect();
        let offset = self.hosts[server].server.offset;
        for number in 0..self.hosts[server].replicas.len() {
            let replica = &mut self.hosts[server].replicas[number];
            let host = replica.host;
            replica.behind.clear();
            self.hosts[server].server.replicas.push(server::Replica {
                host: format!("10.0.0.{host}"),
                port: 6379,
                acknowledged: offset,
            });
            self.hosts[host].server.flush();
            for change in &all {
                self.hosts[host].server.apply(change);
            }
        }
    }

    pub(super) fn send_to_replicas(&mut self, server: usize, change: &Change) {
        let offset = self.hosts[server].server.offset;
        for number in 0..self.hosts[server].replicas.len() {
            let jitter = self.rng.below(MILLI / 5);
            let replica = &mut self.hosts[server].replicas[number];
            let arrives = (self.now + replica.lag + jitter).max(replica.last + 1);
            replica.last = arrives;
            let change = change.clone();
            replica.behind.push_back(Write {
                arrives,
                offset,
                change,
            });
            if replica.stops == 0 {
                self.at(
                    arrives,
                    Event::Replicate {
                        server,
                        replica: number,
                    },
                );
            }
        }
    }

    /// Gives a replica all writes that have arrived.
    pub(super) fn replicate(&mut self, server: usize, number: usize) {
        let replica = &mut self.hosts[server].replicas[number];
        if replica.stops > 0 {
            return;
        }
        let host = replica.host;
        let mut arrived = Vec::new();
        while let Some(write) = replica
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
        self.hosts[server].server.acknowledge(number, offset);
        if !self.hosts[server].is_stopped() {
            self.send_pushes(server);
        }
    }

    pub(super) fn stop_replica(&mut self, server: usize, replica: usize) {
        self.hosts[server].replicas[replica].stops += 1;
    }

    pub(super) fn resume_replica(&mut self, server: usize, number: usize) {
        let soon = self.now + self.rng.below(20 * MILLI);
        let replica = &mut self.hosts[server].replicas[number];
        replica.stops -= 1;
        replica.last = replica.last.max(soon);
        for write in &mut replica.behind {
            write.arrives = write.arrives.max(soon);
        }
        self.at(
            soon,
            Event::Replicate {
                server,
                replica: number,
            },
        );
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
