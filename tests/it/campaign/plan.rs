//! Plans a round as a pure function of the seed and the round's number.

use std::fmt;
use std::time::Duration;

use super::fault::Fault;
use crate::dice::Dice;

/// The time of a round within which faults begin and end.
pub(super) const STORM: Duration = Duration::from_millis(4_500);
/// The time for which workers take locks.
pub(super) const WORK: Duration = Duration::from_millis(7_500);
/// The time at which waiters without a limit give up.
pub(super) const LAST_CALL: Duration = Duration::from_millis(11_500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topology {
    One,
    Replicas,
    Sentinel,
    Cluster,
    Redlock,
}

impl Topology {
    /// Returns the number of servers that a fault can affect.
    pub(super) fn nodes(self) -> usize {
        match self {
            Topology::One => 1,
            Topology::Replicas | Topology::Sentinel => 2,
            Topology::Cluster | Topology::Redlock => 3,
        }
    }

    /// Returns whether a proxy stands between each worker and each server.
    ///
    /// Sentinels and clusters tell clients the addresses of the servers themselves, so no proxy is
    /// possible there.
    pub(super) fn has_proxies(self) -> bool {
        matches!(self, Topology::One | Topology::Replicas | Topology::Redlock)
    }
}

/// A lock, by the namespace of its manager and its name there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) namespace: &'static str,
    pub(super) name: &'static str,
}

impl Key {
    /// Returns the lock's key in Redis.
    pub(super) fn in_redis(self) -> String {
        format!("{}{}", self.namespace, self.name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scheduled {
    pub(super) at: Duration,
    pub(super) lasts: Duration,
    pub(super) fault: Fault,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) number: u64,
    pub(super) topology: Topology,
    /// Whether a fault of this round may make two owners.
    pub(super) loses_locks: bool,
    /// Whether the ttls are short, for rounds in which a lock may have to run out.
    pub(super) short_ttls: bool,
    pub(super) replica_acks: u16,
    pub(super) workers: usize,
    /// The keys. Only one owner and one waiter take the first one, which is free for long times.
    pub(super) keys: Vec<Key>,
    pub(super) faults: Vec<Scheduled>,
}

const OURS: &str = "lockkit:";

/// Names that resemble each other and the keys that the kit keeps for itself.
const NAMES: [Key; 8] = [
    Key::of(OURS, "a"),
    Key::of(OURS, "{a}"),
    Key::of(OURS, "lockkit:a"),
    Key::of(OURS, "x{a}y"),
    Key::of(OURS, "{lockkit:a}"),
    Key::of(OURS, "q:{a}"),
    Key::of("", "a"),
    Key::of("", "{a}"),
];

impl Key {
    const fn of(namespace: &'static str, name: &'static str) -> Key {
        Key { namespace, name }
    }
}

/// The kind of a round: its faults beside those of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weather {
    /// No data is lost, and every worker lives.
    Rough,
    /// Workers are killed.
    Deadly,
    /// Data is lost.
    Lossy,
}

impl Plan {
    pub(super) fn of(seed: u64, number: u64) -> Plan {
        let mut dice = Dice::of(&[seed, number]);
        let others = [
            Topology::Sentinel,
            Topology::Redlock,
            Topology::Cluster,
            Topology::Replicas,
        ];
        let topology = match number % 2 {
            0 => Topology::One,
            _ => {
                let turn = (number / 2).wrapping_add(seed) % others.len() as u64;
                others[usize::try_from(turn).expect("an index")]
            }
        };
        let weather = match dice.between(0, 9) {
            0..5 => Weather::Rough,
            5..7 => Weather::Deadly,
            _ if topology == Topology::Replicas => Weather::Deadly,
            _ => Weather::Lossy,
        };
        let mut keys = vec![Key::of(OURS, "{quiet}")];
        while keys.len() < 4 {
            let key = dice.one_of(&NAMES);
            let fits = topology == Topology::One || key.namespace == OURS;
            if fits && !keys.contains(&key) {
                keys.push(key);
            }
        }
        let mut plan = Plan {
            seed,
            number,
            topology,
            loses_locks: false,
            short_ttls: weather != Weather::Rough,
            replica_acks: 0,
            workers: if topology == Topology::One { 3 } else { 2 },
            keys,
            faults: Vec::new(),
        };
        if topology == Topology::Replicas && dice.percent(60) {
            plan.replica_acks = 1;
        }
        for _ in 0..dice.between(4, 9) {
            let at = dice.between(200, 3_800);
            let fault = plan.fault(&mut dice, weather);
            let lasts = match fault {
                // A stopped node must not be replaced in a round whose topology replaces servers.
                Fault::StopServer { .. }
                    if !matches!(topology, Topology::One | Topology::Redlock) =>
                {
                    dice.between(50, 1_500)
                }
                Fault::Slow { .. } => dice.between(200, 2_000),
                _ => dice.between(50, 2_500),
            };
            let storm = u64::try_from(STORM.as_millis()).expect("milliseconds");
            let lasts = lasts.min(storm - at);
            plan.add(Scheduled {
                at: Duration::from_millis(at),
                lasts: Duration::from_millis(lasts),
                fault,
            });
        }
        plan.faults.sort_by_key(|it| it.at);
        // A minority of a quorum may lose all its data.
        plan.loses_locks =
            topology != Topology::Redlock && plan.faults.iter().any(|it| it.fault.loses_locks());
        plan
    }

    pub(super) fn has(&self, fault: Fault) -> bool {
        self.faults.iter().any(|it| it.fault == fault)
    }

    /// Adds a fault unless it would overlap another fault of the same resource.
    fn add(&mut self, new: Scheduled) {
        let apart = Duration::from_millis(50);
        let at_once = |old: &Scheduled| {
            old.fault.resource() == new.fault.resource()
                && old.at < new.at + new.lasts + apart
                && new.at < old.at + old.lasts + apart
        };
        if !self.faults.iter().any(at_once) {
            self.faults.push(new);
        }
    }

    fn fault(&self, dice: &mut Dice, weather: Weather) -> Fault {
        let worker = dice.index(self.workers);
        let node = dice.index(self.topology.nodes());
        let key = dice.index(self.keys.len());
        match (weather, dice.percent(40)) {
            (Weather::Deadly, true) => return Fault::KillWorker { worker },
            (Weather::Lossy, true) => return self.loss(dice, node, key),
            _ => {}
        }
        let by = dice.between(5, 900);
        let network = [
            Fault::Slow { worker, node, by },
            Fault::Cut { worker, node },
            Fault::BlackHole { worker, node },
            Fault::Late { worker, node },
            Fault::Twice { worker, node },
        ];
        let command = dice.one_of(&[
            "evalsha", "set", "get", "mget", "del", "exists", "zadd", "zrem", "zrange", "zpopmin",
            "publish", "time",
        ]);
        let refusals = [
            Fault::Full { node },
            Fault::NoReplicas { node },
            Fault::ReadOnly { node },
            Fault::SnapshotFailed { node },
            Fault::NoRight { node, command },
        ];
        let server = [
            Fault::StopServer { node },
            Fault::Pause { node },
            Fault::KillClients { node },
            Fault::ForgetScripts { node },
            Fault::BusyScript { node },
            Fault::StopWorker { worker },
        ];
        let index = dice.index(3);
        match self.topology {
            // The clocks of a quorum's nodes may differ, and one server has only one clock.
            Topology::One => match dice.between(0, 9) {
                0..3 => dice.one_of(&network),
                3..6 => dice.one_of(&refusals),
                6 => Fault::ClockBack { node, by: by * 4 },
                _ => dice.one_of(&server),
            },
            Topology::Redlock => match dice.between(0, 9) {
                0..4 => dice.one_of(&network),
                4..7 => dice.one_of(&refusals),
                _ => dice.one_of(&server),
            },
            Topology::Replicas => match dice.between(0, 9) {
                // The workers know only the master.
                0..4 => match dice.one_of(&network[..4]) {
                    Fault::Slow { worker, by, .. } => Fault::Slow {
                        worker,
                        node: 0,
                        by,
                    },
                    Fault::Cut { worker, .. } => Fault::Cut { worker, node: 0 },
                    Fault::BlackHole { worker, .. } => Fault::BlackHole { worker, node: 0 },
                    _ => Fault::Late { worker, node: 0 },
                },
                4..6 => Fault::StopServer { node: 1 },
                _ => dice.one_of(&server),
            },
            Topology::Sentinel => match dice.between(0, 9) {
                0..5 => Fault::StopSentinel { index },
                5..7 => Fault::NoReplicas { node: 0 },
                _ => dice.one_of(&server),
            },
            Topology::Cluster => match dice.between(0, 9) {
                0..2 => Fault::Full { node },
                2..4 => Fault::NoReplicas { node },
                _ => dice.one_of(&server),
            },
        }
    }

    /// Draws a loss of data that the promises for the topology cover.
    fn loss(&self, dice: &mut Dice, node: usize, key: usize) -> Fault {
        match self.topology {
            Topology::One => dice.one_of(&[
                Fault::Flush { node },
                Fault::DeleteLock { node, key },
                Fault::DeleteQueues { node },
                Fault::Restart { node },
                Fault::ClockAhead { node, by: 700 },
            ]),
            Topology::Sentinel | Topology::Cluster => Fault::FailOver,
            Topology::Redlock => Fault::Restart { node: 0 },
            Topology::Replicas => Fault::DeleteLock { node: 0, key },
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { seed, number, .. } = self;
        let ttls = if self.short_ttls { "short" } else { "long" };
        let owners = if self.loses_locks {
            "two owners are possible"
        } else {
            "one owner"
        };
        writeln!(
            f,
            "round {seed}:{number}: {:?}, {} workers, {ttls} ttls, replica_acks {}, {owners}",
            self.topology, self.workers, self.replica_acks
        )?;
        for (index, key) in self.keys.iter().enumerate() {
            writeln!(f, "  key {index} is {}", key.in_redis())?;
        }
        for (index, Scheduled { at, lasts, fault }) in self.faults.iter().enumerate() {
            writeln!(
                f,
                "  fault {index}: at {:>4} ms for {:>4} ms: {fault}",
                at.as_millis(),
                lasts.as_millis()
            )?;
        }
        Ok(())
    }
}

#[test]
fn a_seed_determines_a_whole_round() {
    for number in 0..50 {
        let (plan, again) = (Plan::of(7, number), Plan::of(7, number));
        assert_eq!(plan, again);
        assert_eq!(plan.to_string(), again.to_string());
    }
    let differ = |number| Plan::of(1, number) != Plan::of(2, number);
    assert!((0..10).all(differ));
}
