//! What only plans with a cluster have: clocks of nodes that differ, slots that move, and replicas that take over.

use super::faults::losses;
use super::{MOST_KEYS, Plan, Topology, Verb, Weather, lock_name};
use crate::rng::Rng;
use crate::server::{SLOTS, slot_of};
use crate::world::{Fault, LAST, MILLI, Planned, SECOND};

impl Plan {
    /// Returns whether these keys may be on a server at any time.
    pub fn may_be_on(&self, server: usize, keys: &[usize]) -> bool {
        // Where slots move, a key may be anywhere.
        if self.topology != Topology::Cluster || self.has(Fault::moves_keys) {
            return true;
        }
        keys.iter().any(|key| {
            let slot = slot_of(lock_name(*key).as_bytes());
            slot * self.servers / SLOTS == server
        })
    }

    pub(super) fn draw_cluster(&mut self, rng: &mut Rng) {
        if self.topology != Topology::Cluster {
            return;
        }
        if self.weather == Weather::Lossy && !self.replicas.is_empty() {
            // A failover may forget a release, and the lock then stays for its ttl.
            self.ttls.retain(|ttl| *ttl <= 10_000);
        }
        self.draw_kinds_of_cluster(rng);
        // A tick, and the shares of a key, end by the clock of their node, which must be the same where they move to.
        let is_timed = self.has_shares() || self.verbs.contains(&Verb::Every);
        if rng.percent(50) || is_timed {
            return;
        }
        let clock = |_| rng.below(4_000_000) as i64 - 2_000_000;
        let clocks: Vec<i64> = (0..self.servers).map(clock).collect();
        // A failover between clocks that differ is no promise of the kit.
        let all = clocks.iter().cycle().take(self.data_servers());
        self.clocks = all.copied().collect();
    }

    /// Settles what is special for kinds whose scripts are about several keys of a slot.
    fn draw_kinds_of_cluster(&mut self, rng: &mut Rng) {
        if !self.is_plain() && rng.percent(35) {
            // Nothing is refused or lost while a slot moves.
            self.weather = Weather::Calm;
            self.stops_inside = false;
        }
        if self.verbs.contains(&Verb::Several) && rng.percent(60) {
            // Two of them are in one slot.
            self.keys = MOST_KEYS;
        } else if self.verbs.contains(&Verb::Records) {
            self.keys = self.keys.min(2);
        }
        if !self.has_shares() {
            return;
        }
        if rng.percent(60) {
            self.keys = 1;
        }
        if rng.percent(30) {
            // A share may end long before those beside it.
            self.ttls = vec![300, 300, 300_000];
        }
        if self.ttls.contains(&300) {
            // A renewal in parts is a dozen trips where it has to connect to a node.
            self.latency = self.latency.min(MILLI);
        }
        if self.weather != Weather::Calm && rng.percent(60) {
            self.weather = Weather::Rough;
            self.stops_amid_a_release = true;
            self.staff(rng, (2, 3), (2, 3));
            for process in &mut self.processes {
                process.operation_timeout = SECOND;
            }
            self.verbs.push(Verb::Read);
            self.verbs.sort_unstable();
            self.verbs.dedup();
        }
    }

    /// Moves slots for seconds in most histories of other kinds than plain locks. Their scripts are about several keys, which
    /// are on two nodes meanwhile.
    fn move_for_long(&mut self, rng: &mut Rng) {
        if self.is_plain() || rng.percent(20) {
            return;
        }
        // Shares come together between two moves.
        let longest = if self.has_shares() { 2_500 } else { 5_000 };
        let mut at = rng.between(300, 2_500) * MILLI;
        while at + SECOND < LAST {
            let lasts = (rng.between(800, longest) * MILLI).min(LAST - at);
            let fault = self.move_of_a_slot(rng);
            self.faults.push(Planned { at, lasts, fault });
            at += lasts + rng.between(50, 600) * MILLI;
        }
        if self.stops_amid_a_release {
            self.stop_amid_releases(rng);
        }
    }

    /// Stops processes between the steps of what they do, and delays the requests of one of them to a node.
    fn stop_amid_releases(&mut self, rng: &mut Rng) {
        let mut add = |at: u64, lasts: u64, fault: Fault| {
            let lasts = lasts.min(LAST - at);
            self.faults.push(Planned { at, lasts, fault });
        };
        for process in 0..self.processes.len() {
            let mut at = rng.between(300, 3_000) * MILLI;
            while at < LAST {
                let lasts = rng.between(1_000, 3_000) * MILLI;
                add(at, lasts, Fault::Stop { process });
                at += lasts + rng.between(10, 500) * MILLI;
            }
        }
        let (process, server) = (rng.index(self.processes.len()), rng.index(self.servers));
        let by = rng.between(50, 900) * MILLI;
        let fault = Fault::Slow {
            process,
            server,
            by,
        };
        add(rng.between(300, 4_000) * MILLI, 2 * SECOND, fault);
    }

    pub(super) fn draw_faults_of_cluster(&mut self, rng: &mut Rng) {
        self.move_for_long(rng);
        for _ in 0..rng.below(5) {
            let fault = self.change_of_the_cluster(rng);
            self.plan_alone(rng, fault);
        }
        if self.weather != Weather::Calm {
            for _ in 0..rng.between(1, 6) {
                let fault = self.fault_of_cluster(rng);
                self.plan_alone(rng, fault);
            }
        }
        // A clock that steps differs from those of the other nodes, where shares may move to, or a replica takes over.
        let moves_shares = self.has_shares() && self.has(Fault::moves_keys);
        let fails_over = self.has(|it| matches!(it, Fault::GiveWay { .. } | Fault::Crash { .. }));
        // The rules of ticks are about one clock.
        if moves_shares || fails_over || self.verbs.contains(&Verb::Every) {
            self.faults.retain(|it| it.fault.clock_step().is_none());
        }
        self.faults.sort_by_key(|planned| planned.at);
    }

    /// Plans a fault for a time, unless there is one of its kind at that time.
    fn plan_alone(&mut self, rng: &mut Rng, fault: Fault) {
        let mut at = rng.between(100, 4_500) * MILLI;
        let mut lasts = (rng.between(20, 2_500) * MILLI).min(LAST - at);
        if let Fault::Crash { .. } = fault {
            // Callers have long gone on with the replica by its end.
            at /= 4;
            lasts = LAST - at;
        }
        let kind = std::mem::discriminant(&fault);
        let overlaps = |it: &Planned| {
            std::mem::discriminant(&it.fault) == kind && it.at < at + lasts && at < it.end()
        };
        if !self.faults.iter().any(overlaps) {
            self.faults.push(Planned { at, lasts, fault });
        }
    }

    /// A change that an operator makes to a cluster, and that callers do not see.
    fn change_of_the_cluster(&self, rng: &mut Rng) -> Fault {
        if !self.replicas.is_empty() && rng.percent(30) {
            let server = rng.index(self.servers);
            return Fault::GiveWay { server };
        }
        self.move_of_a_slot(rng)
    }

    fn move_of_a_slot(&self, rng: &mut Rng) -> Fault {
        let is_timed = self.verbs.contains(&Verb::Every) && rng.percent(60);
        let has_pair = self.verbs.contains(&Verb::Several) && self.keys == MOST_KEYS;
        let key = match is_timed {
            true => self.own_key(Verb::Every),
            false if has_pair && rng.percent(50) => MOST_KEYS - 1,
            false => rng.index(self.keys),
        };
        let key = lock_name(key);
        Fault::MoveSlot {
            slot: slot_of(key.as_bytes()),
            further: rng.index(2),
            in_dispute: self.weather != Weather::Calm && rng.percent(20),
        }
    }

    fn fault_of_cluster(&self, rng: &mut Rng) -> Fault {
        let process = rng.index(self.processes.len());
        let server = rng.index(self.servers);
        let key = rng.index(self.keys);
        let queue = self.topology.queue_name(key).into_bytes();
        let key = lock_name(key).into_bytes();
        match self.weather {
            Weather::Lossy if !self.replicas.is_empty() && rng.percent(50) => {
                Fault::Crash { server }
            }
            Weather::Lossy if rng.percent(50) => rng.pick(&losses(server, key, queue)),
            Weather::Network => self.network_fault(rng, process, server),
            _ if rng.percent(50) => self.network_fault(rng, process, server),
            _ => self.other_fault(rng, process, server, key),
        }
    }
}
