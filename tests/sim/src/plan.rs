//! The plan of a history, which follows from its seed: topology, processes, work and faults.
//!
//! Each history draws a subset of the faults and of the work ("swarm testing", Groce et al., 2012), so that no fault hides
//! what another one would show.

mod about;
mod cluster;
mod failover;
mod faults;
mod habits;
mod jobs;
mod names;
mod orders;
mod postgres;
mod quorum;
mod repeats;
pub mod rights;
mod share_situations;
mod shown;
mod situations;
mod touches;
mod verbs;
mod weather;

use std::collections::BTreeSet;

pub use self::habits::Habits;
pub use self::names::{MOST_KEYS, MOST_KEYS_WITH_OWN, key_name, lock_name};
pub use self::verbs::Verb;
pub use self::weather::Weather;
use crate::rng::Rng;
use crate::server::Version;
use crate::world::{Fault, MILLI, Order, Planned, SECOND};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    One,
    Replicas,
    Redlock,
    /// A master and its replicas, and sentinels that name the master.
    Sentinel,
    /// Masters that share the keys, whose slots move, with replicas or without.
    Cluster,
    /// One server of PostgreSQL.
    Postgres,
}

impl Topology {
    pub const ALL: [Self; 6] = [
        Self::One,
        Self::Replicas,
        Self::Redlock,
        Self::Sentinel,
        Self::Cluster,
        Self::Postgres,
    ];

    /// Returns whether one server has all keys, and no other server takes its place.
    pub fn is_alone(self) -> bool {
        matches!(self, Self::One | Self::Replicas | Self::Postgres)
    }

    /// How many servers there are, without replicas and sentinels.
    pub fn servers(self) -> usize {
        match self {
            Self::One | Self::Replicas | Self::Sentinel | Self::Postgres => 1,
            Self::Redlock | Self::Cluster => 3,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ProcessPlan {
    pub ppm: i64,
    pub operation_timeout: u64,
    /// The seed of each task's work.
    pub tasks: Vec<u64>,
    /// When the process drains its manager, while its tasks work, and exits at once.
    pub exits: Option<u64>,
    /// When the process drops its manager, without a drain, in the middle of the work, and goes on.
    pub leaves: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub seed: u64,
    pub topology: Topology,
    pub weather: Weather,
    pub order: Order,
    pub stops_inside: bool,
    /// A stop begins when a release has deleted the set of a key's shares in a slot that moves, and not before.
    pub stops_amid_a_release: bool,
    pub latency: u64,
    /// How many servers the managers know.
    pub servers: usize,
    /// The user has exactly the rights that the guide names.
    pub exact_rights: bool,
    /// The lag of each replica. In a cluster each master has one, or none has.
    pub replicas: Vec<u64>,
    /// How many replicas must acknowledge a lock.
    pub acks: u16,
    /// The servers are Redis 8, whose `WAIT` counts the writes of its own connection only.
    pub are_recent: bool,
    pub sentinels: usize,
    /// How far the last sentinel is away.
    pub far: u64,
    /// How far the clocks of the replicas are ahead of the master's, in microseconds. In a cluster, those of all servers.
    pub clocks: Vec<i64>,
    pub processes: Vec<ProcessPlan>,
    pub keys: usize,
    /// The ttls of the locks, in milliseconds.
    pub ttls: Vec<u64>,
    /// All requests leave gaps for clients of other libraries.
    pub interop: bool,
    /// All tasks begin their calls at the same times.
    pub bursts: bool,
    /// How many of a hundred calls are cancelled.
    pub cancels: u64,
    /// How many of a hundred calls are not polled for a time.
    pub rests: u64,
    /// The numbers of permits, of which each call takes one.
    pub permits: Vec<u32>,
    /// The kinds of work, each with its weight.
    pub verbs: Vec<Verb>,
    pub habits: Habits,
    pub version: Version,
    /// No call begins after it.
    pub work_ends: u64,
    pub faults: Vec<Planned>,
}

/// Usually a version with which the simulated server is compared. The oldest one that the kit supports knows less.
fn version(rng: &mut Rng, topology: Topology) -> Version {
    let redis = match rng.percent(10) && topology == Topology::One {
        true => (6, 2, 14),
        false => Version::default().redis,
    };
    Version {
        redis,
        ..Version::default()
    }
}

impl Plan {
    pub fn of(seed: u64, topology: Topology) -> Self {
        let mut rng = Rng::of(seed.rotate_left(32) ^ topology as u64);
        let weather = Weather::draw(&mut rng, topology);
        let replicas = match topology {
            Topology::Replicas if rng.percent(70) => vec![rng.below(3) * MILLI],
            Topology::Sentinel if rng.percent(60) => vec![rng.below(3) * MILLI],
            Topology::Replicas | Topology::Sentinel => {
                vec![rng.below(3) * MILLI, rng.below(40) * MILLI]
            }
            Topology::Cluster if rng.percent(30) => vec![rng.below(20) * MILLI; 3],
            Topology::One | Topology::Redlock | Topology::Cluster | Topology::Postgres => {
                Vec::new()
            }
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
                leaves: match topology {
                    Topology::Redlock => rng.percent(10),
                    Topology::One | Topology::Replicas | Topology::Postgres => rng.percent(3),
                    Topology::Sentinel | Topology::Cluster => false,
                }
                .then(|| rng.between(500, 7_500) * MILLI),
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
            stops_inside: !matches!(weather, Weather::Calm | Weather::Momentary) && rng.percent(50),
            stops_amid_a_release: false,
            latency: rng.pick(&[100, 300, 1_000, 5_000]) * 1_000,
            servers: match topology {
                Topology::Redlock if rng.percent(25) => 5,
                _ => topology.servers(),
            },
            exact_rights: rng.percent(10)
                && !matches!(
                    topology,
                    Topology::Sentinel | Topology::Cluster | Topology::Postgres
                ),
            replicas,
            acks: u16::from(topology == Topology::Replicas),
            are_recent: false,
            sentinels: 0,
            far: 0,
            clocks: Vec::new(),
            processes,
            keys: rng.between(1, MOST_KEYS as u64) as usize,
            ttls: if rng.percent(50) {
                vec![300, 1_000, 2_000]
            } else {
                vec![3_000, 10_000, 300_000]
            },
            interop: false,
            bursts,
            cancels: rng.pick(&[0, 15, 15, 50]),
            rests: 0,
            permits: vec![rng.pick(&[1, 1, 2, 3, 5])],
            verbs: Verb::draw(&mut rng, topology),
            habits: Habits::draw(&mut rng, topology),
            version: version(&mut rng, topology),
            // A history on a quorum is slow.
            work_ends: match topology {
                Topology::Redlock => 5_500 * MILLI,
                _ => 8_000 * MILLI,
            },
            faults: Vec::new(),
        };
        plan.draw_interop(&mut rng);
        plan.draw_shares(&mut rng);
        plan.draw_sentinels(&mut rng);
        plan.draw_cluster(&mut rng);
        plan.draw_failovers(&mut rng);
        if !plan.draw_situation(&mut rng) {
            plan.draw_faults(&mut rng);
        }
        plan.draw_situation_of_shares();
        plan.draw_repeats();
        plan.bound_lost_releases();
        plan.end_work();
        plan.are_recent = !plan.replicas.is_empty() && rng.percent(50);
        plan
    }

    /// Returns whether callers take plain locks only. Some rules know no other kind.
    pub fn is_plain(&self) -> bool {
        let is_plain = |verb: &Verb| matches!(verb, Verb::Acquire | Verb::Ping | Verb::Forget);
        self.verbs.iter().all(is_plain)
    }

    /// Returns whether callers run bodies, lead, run jobs or leave calls without a poll.
    pub fn has_jobs(&self) -> bool {
        self.verbs.iter().any(|verb| Verb::JOBS.contains(verb))
    }

    /// Returns whether keys may stay taken when their owners have ended, or a caller takes several.
    pub fn keeps_keys(&self) -> bool {
        let keeps = |verb: &Verb| matches!(verb, Verb::Records | Verb::Cooldown | Verb::Several);
        self.verbs.iter().any(keeps)
    }

    /// Returns whether operators free locks, or owners pass them on by tickets.
    pub fn has_orders(&self) -> bool {
        self.verbs.iter().any(|verb| Verb::ORDERS.contains(verb))
    }

    /// Returns whether the ledger knows exactly how long each call may last: a caller takes one key alone, and releases it.
    pub fn has_exact_waits(&self) -> bool {
        !self.keeps_keys() && !self.has_jobs() && !self.has_shares() && !self.has_orders()
    }

    /// Settles what is special for owners that share a key.
    fn draw_shares(&mut self, rng: &mut Rng) {
        if !self.has_shares() {
            return;
        }
        self.keys = self.keys.min(4);
        self.habits.unrenewed = false;
        for process in &mut self.processes {
            process.leaves = None;
        }
        self.rests = rng.pick(&[0, 0, 0, 20]);
        if rng.percent(30) {
            self.permits.push(rng.pick(&[1, 2, 4]));
        }
        if self.topology != Topology::Cluster && self.processes.len() > 1 && rng.percent(11) {
            self.weather = Weather::Deaths;
            self.stops_inside = false;
        }
        if self.verbs.contains(&Verb::Crowd) {
            self.gather(rng);
        }
    }

    /// Makes it a history of more readers than a server lets in at once.
    fn gather(&mut self, rng: &mut Rng) {
        self.weather = Weather::Calm;
        self.stops_inside = false;
        (self.keys, self.cancels, self.rests) = (1, 0, 0);
        self.processes = (0..5)
            .map(|_| ProcessPlan {
                ppm: 0,
                operation_timeout: SECOND,
                tasks: (0..16).map(|_| rng.next()).collect(),
                exits: None,
                leaves: None,
            })
            .collect();
    }

    /// Returns whether owners of this history share a key.
    pub fn has_shares(&self) -> bool {
        self.verbs.iter().any(|verb| Verb::SHARES.contains(verb))
    }

    /// Returns whether the servers' data, or a clock that the promises rely on, may be lost.
    pub fn loses_data(&self) -> bool {
        let losses = self.faults.iter().filter(|it| it.fault.loses_data());
        let servers: BTreeSet<Option<usize>> = losses.map(|it| it.fault.server()).collect();
        match self.topology {
            // Some servers of a quorum may lose their data. If all do, a manager that has not joined them yet takes them for
            // new ones, because the histories set `assume_fresh`.
            Topology::Redlock => servers.len() >= self.servers,
            _ => !servers.is_empty(),
        }
    }

    pub fn has(&self, which: impl Fn(&Fault) -> bool) -> bool {
        self.faults.iter().any(|planned| which(&planned.fault))
    }

    /// How far the clocks of the servers go back, all in all.
    pub fn clock_steps(&self) -> u64 {
        let steps = self.faults.iter().filter_map(|it| it.fault.clock_step());
        steps.sum()
    }

    pub fn is_killed(&self, process: usize) -> bool {
        self.dies(process).is_some()
    }

    /// When a process is killed, or stopped for good.
    pub fn dies(&self, process: usize) -> Option<u64> {
        let is_its_death = |fault: &Fault| fault.is_death() && fault.process() == Some(process);
        let death = self.faults.iter().find(|it| is_its_death(&it.fault));
        death.map(|it| it.at)
    }

    /// Returns whether a process drains its manager at last.
    pub fn is_drained(&self, process: usize) -> bool {
        !self.is_killed(process) && self.processes[process].leaves.is_none()
    }

    /// Returns whether a process is killed, exits or drops its manager in the middle of its work.
    pub fn ends_early(&self, process: usize) -> bool {
        let its = &self.processes[process];
        self.is_killed(process) || its.exits.is_some() || its.leaves.is_some()
    }

    /// In some histories with a client of another library, all requests leave gaps for it, and one key is never free
    /// without these.
    fn draw_interop(&mut self, rng: &mut Rng) {
        if self.verbs.contains(&Verb::Foreign) && rng.percent(50) {
            self.interop = true;
            self.keys = 1;
            self.cancels = 0;
            self.habits.holds = vec![40, 100];
        }
    }
}
