//! The plan of a history, which follows from its seed: topology, processes, work and faults.
//!
//! Each history draws a subset of the faults and of the work ("swarm testing", Groce et al., 2012), so that no fault hides
//! what another one would show.

use std::fmt;

use crate::rng::Rng;
use crate::server::Refusal;
use crate::world::{Fault, LAST, MILLI, Order, Planned, Ways};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    One,
    Replicas,
    Redlock,
}

impl Topology {
    pub const ALL: [Self; 3] = [Self::One, Self::Replicas, Self::Redlock];

    /// How many servers the managers know.
    pub fn servers(self) -> usize {
        match self {
            Self::One | Self::Replicas => 1,
            Self::Redlock => 3,
        }
    }
}

/// Which faults a history may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    Calm,
    /// Only the network fails.
    Network,
    /// All but losses of data.
    Rough,
    /// Data is lost, so that only tokens keep their promise.
    Lossy,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ProcessPlan {
    pub ppm: i64,
    pub operation_timeout: u64,
    /// The seed of each task's work.
    pub tasks: Vec<u64>,
    /// When the process drains its manager, while its tasks work, and exits at once.
    pub exits: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub seed: u64,
    pub topology: Topology,
    pub weather: Weather,
    pub order: Order,
    pub stops_inside: bool,
    pub latency: u64,
    /// The lag of each replica.
    pub replicas: Vec<u64>,
    pub processes: Vec<ProcessPlan>,
    pub keys: usize,
    /// The ttls of the locks, in milliseconds.
    pub ttls: Vec<u64>,
    /// All tasks begin their calls at the same times.
    pub bursts: bool,
    /// How many of a hundred calls are cancelled.
    pub cancels: u64,
    /// The kinds of work, each with its weight.
    pub verbs: Vec<Verb>,
    /// No call begins after it.
    pub work_ends: u64,
    pub faults: Vec<Planned>,
}

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Acquire,
}

impl Plan {
    pub fn of(seed: u64, topology: Topology) -> Self {
        let mut rng = Rng::of(seed.rotate_left(32) ^ topology as u64);
        let weather = rng.pick(&[
            Weather::Calm,
            Weather::Network,
            Weather::Network,
            Weather::Network,
            Weather::Rough,
            Weather::Rough,
            Weather::Rough,
            Weather::Lossy,
        ]);
        let replicas = match topology {
            Topology::Replicas if rng.percent(70) => vec![rng.below(3) * MILLI],
            Topology::Replicas => vec![rng.below(3) * MILLI, rng.below(40) * MILLI],
            Topology::One | Topology::Redlock => Vec::new(),
        };
        let bursts = rng.percent(30);
        let most = if bursts { 6 } else { 3 };
        let processes = (0..rng.between(1, 3))
            .map(|_| ProcessPlan {
                ppm: if rng.percent(50) {
                    0
                } else {
                    rng.below(10_001) as i64 - 5_000
                },
                operation_timeout: rng.pick(&[200, 500, 1_000]) * MILLI,
                tasks: (0..rng.between(1, most)).map(|_| rng.next()).collect(),
                exits: rng.percent(20).then(|| rng.between(500, 7_500) * MILLI),
            })
            .collect();
        let mut plan = Self {
            seed,
            topology,
            weather,
            order: if rng.percent(25) {
                Order::Fifo
            } else {
                Order::Seeded
            },
            stops_inside: weather != Weather::Calm && rng.percent(50),
            latency: rng.pick(&[100, 300, 1_000, 5_000]) * 1_000,
            replicas,
            processes,
            keys: rng.between(1, 5) as usize,
            ttls: if rng.percent(50) {
                vec![300, 1_000, 2_000]
            } else {
                vec![3_000, 10_000, 300_000]
            },
            bursts,
            cancels: rng.pick(&[0, 15, 15, 50]),
            verbs: vec![Verb::Acquire],
            work_ends: 8_000 * MILLI,
            faults: Vec::new(),
        };
        plan.draw_faults(&mut rng);
        plan
    }

    /// Whether the servers' data, or a clock that the promises rely on, may be lost.
    pub fn loses_data(&self) -> bool {
        // A minority of a quorum may lose its data.
        self.topology != Topology::Redlock && self.has(Fault::loses_data)
    }

    pub fn has(&self, which: impl Fn(&Fault) -> bool) -> bool {
        self.faults.iter().any(|planned| which(&planned.fault))
    }

    pub fn is_killed(&self, process: usize) -> bool {
        self.has(|fault| *fault == Fault::Kill { process })
    }

    /// Whether a process is killed or exits in the middle of its work.
    pub fn ends_early(&self, process: usize) -> bool {
        self.is_killed(process) || self.processes[process].exits.is_some()
    }

    fn draw_faults(&mut self, rng: &mut Rng) {
        if self.weather == Weather::Calm {
            return;
        }
        for _ in 0..rng.between(1, 6) {
            let at = rng.between(100, 4_500) * MILLI;
            let lasts = (rng.between(20, 2_500) * MILLI).min(LAST - at);
            let fault = self.fault(rng);
            let kind = std::mem::discriminant(&fault);
            let overlaps = |it: &Planned| {
                std::mem::discriminant(&it.fault) == kind && it.at < at + lasts && at < it.end()
            };
            if !self.faults.iter().any(overlaps) {
                self.faults.push(Planned { at, lasts, fault });
            }
        }
        self.faults.sort_by_key(|planned| planned.at);
    }

    fn fault(&self, rng: &mut Rng) -> Fault {
        let process = rng.index(self.processes.len());
        let server = rng.index(self.topology.servers());
        let key = format!("lockkit:k{}", rng.index(self.keys)).into_bytes();
        let queue = [b"lockkit:!q:{".as_slice(), &key[8..], b"}"].concat();
        match self.weather {
            Weather::Lossy if self.topology == Topology::Redlock => Fault::Restart {
                server: 2,
                keeps_data: false,
            },
            Weather::Lossy if rng.percent(50) => rng.pick(&[
                Fault::Flush { server },
                Fault::Restart {
                    server,
                    keeps_data: false,
                },
                Fault::Delete { server, key },
                Fault::Delete { server, key: queue },
            ]),
            _ if self.topology == Topology::Replicas && rng.percent(30) => Fault::StopReplica {
                server,
                replica: rng.index(self.replicas.len()),
            },
            Weather::Network => self.network_fault(rng, process, server),
            _ if rng.percent(50) => self.network_fault(rng, process, server),
            _ => self.other_fault(rng, process, server),
        }
    }

    fn network_fault(&self, rng: &mut Rng, process: usize, server: usize) -> Fault {
        let ways = rng.pick(&[Ways::Requests, Ways::Replies, Ways::Both]);
        let by = rng.between(5, 900) * MILLI;
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

    fn other_fault(&self, rng: &mut Rng, process: usize, server: usize) -> Fault {
        let refusal = rng.pick(&[
            Refusal::OutOfMemory,
            Refusal::NoReplicas,
            Refusal::ReadOnly,
            Refusal::Misconfigured,
        ]);
        let command = rng.pick(&COMMANDS).to_owned();
        let back = rng.between(5, 2_000) as i64 * -1_000;
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
        ])
    }
}

/// The commands whose right may be taken away.
const COMMANDS: [&str; 12] = [
    "EVALSHA", "SET", "GET", "MGET", "DEL", "EXISTS", "ZADD", "ZREM", "ZRANGE", "ZPOPMIN",
    "PUBLISH", "TIME",
];

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {} on {:?}: {:?}, {:?}, latency {} µs, {} keys, ttls {:?} ms, replicas {:?}{}{}",
            self.seed,
            self.topology,
            self.weather,
            self.order,
            self.latency / 1_000,
            self.keys,
            self.ttls,
            self.replicas,
            if self.bursts { ", bursts" } else { "" },
            if self.stops_inside {
                ", stops inside steps"
            } else {
                ""
            },
        )?;
        for (number, process) in self.processes.iter().enumerate() {
            let tasks = process.tasks.len();
            let timeout = process.operation_timeout / MILLI;
            write!(
                f,
                "  p{number}: {tasks} tasks, {} ppm, timeout {timeout} ms",
                process.ppm
            )?;
            match process.exits {
                Some(exits) => writeln!(f, ", drains at {} ms and exits", exits / MILLI)?,
                None => writeln!(f)?,
            }
        }
        for planned in &self.faults {
            let (at, lasts) = (planned.at / MILLI, planned.lasts / MILLI);
            writeln!(f, "  at {at} ms for {lasts} ms: {:?}", planned.fault)?;
        }
        Ok(())
    }
}
