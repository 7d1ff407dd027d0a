//! The faults of the usual weathers.

use super::{Plan, Topology, Weather, lock_name};
use crate::rng::Rng;
use crate::server::Refusal;
use crate::world::{Fault, LAST, MILLI, Planned, Ways};

impl Plan {
    pub(super) fn draw_faults(&mut self, rng: &mut Rng) {
        if self.topology == Topology::Cluster {
            return self.draw_faults_of_cluster(rng);
        }
        if self.may_depose() && rng.percent(50) {
            return self.depose(rng);
        }
        if self.draw_faults_of_orders(rng) {
            return;
        }
        if self.weather == Weather::Calm {
            return;
        }
        let (least, most) = match self.topology {
            Topology::Sentinel => (0, 3),
            _ => (1, 6),
        };
        for _ in 0..rng.between(least, most) {
            let at = rng.between(100, 4_500) * MILLI;
            let lasts = (rng.between(20, 2_500) * MILLI).min(LAST - at);
            let fault = self.fault(rng);
            for fault in self.spread(fault, rng) {
                let overlaps = |it: &Planned| {
                    it.fault.has_the_target_of(&fault) && it.at < at + lasts && at < it.end()
                };
                if !self.faults.iter().any(overlaps) {
                    self.faults.push(Planned { at, lasts, fault });
                }
            }
        }
        if self.weather == Weather::Momentary {
            self.end_all_connections(rng);
        }
        self.faults.sort_by_key(|planned| planned.at);
    }

    /// Ends the connections to all servers at nearly the same time, as a change of a password does.
    pub(super) fn end_all_connections(&mut self, rng: &mut Rng) {
        for _ in 0..rng.between(0, 3) {
            let at = rng.between(1_000, 5_500) * MILLI;
            for server in 0..self.topology.servers() {
                self.faults.push(Planned {
                    at: at + rng.below(30) * MILLI,
                    lasts: 0,
                    fault: Fault::EndConnections { server },
                });
            }
        }
    }

    pub(super) fn fault(&self, rng: &mut Rng) -> Fault {
        if self.topology == Topology::Postgres {
            return self.fault_of_postgres(rng);
        }
        let process = rng.index(self.processes.len());
        let server = match self.topology {
            Topology::Sentinel if self.weather != Weather::Lossy && rng.percent(50) => {
                rng.index(self.data_servers() + self.sentinels)
            }
            _ => rng.index(self.servers),
        };
        let key = rng.index(self.keys);
        let shares = self.topology.shares_name(key).into_bytes();
        let queue = self.topology.queue_name(key).into_bytes();
        let key = lock_name(key).into_bytes();
        match self.weather {
            Weather::Deaths => self.death(rng),
            Weather::Momentary => rng.pick(&[
                Fault::Cut { process, server },
                Fault::EndConnections { server },
                Fault::ForgetScripts { server },
            ]),
            Weather::Strange => self.strange_fault(rng, server, key),
            Weather::Lossy if self.topology == Topology::Redlock && rng.percent(60) => {
                let restart = Fault::Restart {
                    server,
                    keeps_data: false,
                };
                rng.pick(&[restart.clone(), restart, Fault::Flush { server }])
            }
            Weather::Lossy if self.topology == Topology::Redlock && rng.percent(50) => {
                self.network_fault(rng, process, server)
            }
            Weather::Lossy if self.topology == Topology::Redlock => {
                self.other_fault(rng, process, server, key)
            }
            Weather::Lossy if rng.percent(50) => {
                let mut losses = losses(server, key, queue).to_vec();
                losses.push(Fault::Delete {
                    server,
                    key: shares,
                });
                rng.pick(&losses)
            }
            _ if !self.replicas.is_empty() && rng.percent(30) => Fault::StopReplica {
                replica: 1 + rng.index(self.replicas.len()),
            },
            Weather::Network => self.network_fault(rng, process, server),
            _ if rng.percent(50) => self.network_fault(rng, process, server),
            _ => self.other_fault(rng, process, server, key),
        }
    }

    pub(super) fn network_fault(&self, rng: &mut Rng, process: usize, server: usize) -> Fault {
        let ways = rng.pick(&[Ways::Requests, Ways::Replies, Ways::Both]);
        let by = rng.between(5, 900) * MILLI;
        if self.keeps_keys() && self.topology == Topology::Redlock && rng.percent(15) {
            return Fault::HoldOthers {
                process,
                server,
                ways,
            };
        }
        rng.pick(&[
            Fault::Slow {
                process,
                server,
                by,
            },
            Fault::Hold {
                process,
                server,
                ways,
            },
            Fault::Freeze {
                process,
                server,
                ways,
            },
            Fault::Freeze {
                process,
                server,
                ways: Ways::Replies,
            },
            Fault::Cut { process, server },
        ])
    }

    /// The first process lives.
    pub(super) fn death(&self, rng: &mut Rng) -> Fault {
        let process = rng.between(1, self.processes.len() as u64 - 1) as usize;
        rng.pick(&[Fault::Kill { process }, Fault::Halt { process }])
    }

    pub(super) fn other_fault(
        &self,
        rng: &mut Rng,
        process: usize,
        server: usize,
        key: Vec<u8>,
    ) -> Fault {
        let refusal = rng.pick(&[
            Refusal::OutOfMemory,
            Refusal::NoReplicas,
            Refusal::ReadOnly,
            Refusal::Misconfigured,
        ]);
        let command = match self.topology {
            Topology::Redlock => rng.pick(&COMMANDS_OF_NODES).to_owned(),
            _ => rng.pick(&COMMANDS).to_owned(),
        };
        let back = rng.between(5, 2_000) as i64 * -1_000;
        let is_one = self.topology.is_alone();
        if self.keeps_keys() && is_one && rng.percent(8) {
            return Fault::OtherType { server, key };
        }
        let value = rng.pick(&["shared", "stranger"]);
        rng.pick(&[
            Fault::Stop { process },
            Fault::Stop { process },
            Fault::Block { process },
            Fault::StopServer { server },
            Fault::EndConnections { server },
            Fault::ForgetScripts { server },
            Fault::Refuse { server, refusal },
            Fault::Refuse { server, refusal },
            Fault::Deny { server, command },
            Fault::Restart {
                server,
                keeps_data: true,
            },
            Fault::Kill { process },
            Fault::StepClock { server, by: back },
            match self.has_shares() && self.topology != Topology::Cluster {
                true => Fault::Stranger { server, key, value },
                false => Fault::Stop { process },
            },
        ])
    }
}

/// The losses of data on a server, of all of it or about one key.
pub(super) fn losses(server: usize, key: Vec<u8>, queue: Vec<u8>) -> [Fault; 4] {
    [
        Fault::Flush { server },
        Fault::Restart {
            server,
            keeps_data: false,
        },
        Fault::Delete { server, key },
        Fault::Delete { server, key: queue },
    ]
}

/// The commands whose right may be taken away.
pub(super) const COMMANDS: [&str; 17] = [
    "EVALSHA",
    "SET",
    "GET",
    "MGET",
    "DEL",
    "EXISTS",
    "ZADD",
    "ZREM",
    "ZRANGE",
    "ZPOPMIN",
    "PUBLISH",
    "TIME",
    "PTTL",
    "PEXPIRE",
    "PEXPIREAT",
    "SUBSCRIBE",
    "CLIENT|CACHING",
];

/// The same, on a server of a quorum.
const COMMANDS_OF_NODES: [&str; 12] = [
    "EVALSHA", "SET", "GET", "DEL", "EXISTS", "ZADD", "ZREM", "ZREM", "ZRANGE", "PUBLISH", "HMGET",
    "HSET",
];
