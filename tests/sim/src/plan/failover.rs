//! What only plans with sentinels have: the servers, and faults that belong together.

use std::ops::Range;

use super::{Plan, Topology, Weather};
use crate::rng::Rng;
use crate::server::Refusal;
use crate::world::{Fault, LAST, MILLI, Planned, SECOND, Ways};

/// The first master.
const FIRST: usize = 0;

impl Plan {
    /// How many servers keep data.
    pub fn data_servers(&self) -> usize {
        self.topology.servers() + self.replicas.len()
    }

    /// The sentinels, by the numbers of their servers.
    pub fn sentinel_servers(&self) -> Range<usize> {
        let first = self.data_servers();
        first..first + self.sentinels
    }

    /// Returns whether a promoted replica may lack a lock in which an owner believes.
    pub fn may_forget(&self) -> bool {
        let acknowledged = usize::from(self.acks) >= self.replicas.len();
        self.has(|fault| matches!(fault, Fault::Promote { .. })) && !acknowledged
    }

    /// The time after the last fault in which all processes find their servers again.
    pub fn settles(&self) -> u64 {
        // An older configuration is believed five seconds after its newer master was last seen.
        let forgets = self.has(|fault| *fault == Fault::ResetSentinels);
        let forgetting = if forgets { 6 * SECOND } else { 0 };
        3 * SECOND + 40 * self.latency + forgetting
    }

    pub(super) fn draw_sentinels(&mut self, rng: &mut Rng) {
        if self.topology != Topology::Sentinel {
            return;
        }
        self.sentinels = rng.between(2, 3) as usize;
        self.acks = if rng.percent(50) {
            0
        } else {
            self.replicas.len() as u16
        };
        // A failover may forget a release, and the lock then stays for its ttl.
        self.ttls.retain(|ttl| *ttl <= 10_000);
        // Where a process may have been stopped at any time, nothing is said of what it must have heard.
        self.stops_inside &= rng.percent(50);
        if rng.percent(10) {
            self.latency = 50 * MILLI;
        } else if rng.percent(25) {
            self.far = rng.between(60, 120) * MILLI;
        }
        if self.latency == 50 * MILLI || self.far > 0 {
            // A call may have to connect, and the sentinels are asked before.
            self.ttls = vec![3_000, 10_000];
            for process in &mut self.processes {
                process.operation_timeout = SECOND;
            }
        }
        if rng.percent(25) {
            // Locks that replicas acknowledge rely on clocks that agree within the margin of a deadline.
            let most = if self.acks > 0 { 2_000 } else { 2_000_000 };
            let clocks = self.replicas.iter();
            self.clocks = clocks
                .map(|_| rng.below(2 * most) as i64 - most as i64)
                .collect();
        }
    }

    /// Draws failovers, and trouble of sentinels.
    pub(super) fn draw_failovers(&mut self, rng: &mut Rng) {
        if self.topology != Topology::Sentinel || self.weather == Weather::Calm {
            return;
        }
        let at = rng.between(600, 2_500) * MILLI;
        let end = at + (rng.between(100, 4_000) * MILLI).min(LAST - at);
        if rng.percent(80) {
            let to = 1 + rng.index(self.replicas.len());
            if rng.percent(8) {
                self.plan(rng.below(at), at, Fault::ResetSentinels);
            }
            self.plan(at, end, Fault::Promote { server: to });
            self.draw_staleness(rng, at, to);
            self.draw_former_master(rng, at, end, to);
            if end + SECOND < LAST && rng.percent(30) {
                let again = rng.between(end + 100 * MILLI, LAST - 500 * MILLI);
                self.plan(again, LAST, Fault::Promote { server: FIRST });
            }
        }
        if rng.percent(60) {
            self.draw_sentinel_trouble(rng, at, end);
        }
    }

    pub(super) fn end_work(&mut self) {
        if self.topology == Topology::Sentinel {
            let last = self.faults.iter().map(Planned::end).max().unwrap_or(0);
            self.work_ends = self.work_ends.max(last + self.settles() + 2 * SECOND);
        }
    }

    /// The replica that is promoted may lack the last writes.
    fn draw_staleness(&mut self, rng: &mut Rng, at: u64, to: usize) {
        if rng.percent(50) {
            let begins = at - rng.below(at.min(1_500 * MILLI));
            let ends = at + rng.below(SECOND);
            self.plan(begins, ends, Fault::StopReplica { replica: to });
        }
    }

    fn draw_former_master(&mut self, rng: &mut Rng, at: u64, end: u64, to: usize) {
        let before = at - rng.below(600 * MILLI);
        let until = rng.between(at, end);
        match rng.below(7) {
            0 => self.plan(before, until, Fault::StopServer { server: FIRST }),
            1 => {
                let fault = Fault::Restart {
                    server: FIRST,
                    keeps_data: true,
                };
                self.plan(before, until, fault);
            }
            2 => self.draw_split(rng, before, until, to),
            3 | 4 => {
                let at = (at + rng.between(10, 700) * MILLI).min(end);
                let fault = Fault::EndConnections { server: FIRST };
                self.plan(at, at + MILLI, fault);
            }
            // It is healthy, and goes on until it is demoted.
            _ => {}
        }
    }

    /// The master is cut off together with some of its clients.
    fn draw_split(&mut self, rng: &mut Rng, at: u64, end: u64, to: usize) {
        for replica in 1..self.data_servers() {
            self.plan(at, end, Fault::StopReplica { replica });
        }
        for process in 0..self.processes.len() {
            if rng.percent(60) {
                for server in self.sentinel_servers().chain([to]) {
                    let ways = Ways::Both;
                    let fault = Fault::Hold {
                        process,
                        server,
                        ways,
                    };
                    self.plan(at, end, fault);
                }
            }
        }
    }

    fn draw_sentinel_trouble(&mut self, rng: &mut Rng, at: u64, end: u64) {
        let all = self.sentinel_servers();
        let one = rng.between(all.start as u64, all.end as u64 - 1) as usize;
        let before = at - rng.below(500 * MILLI);
        let after = end + rng.below(LAST - end + 1);
        match rng.below(8) {
            // Only one of them hears of the failover: the one that is far away, if any is.
            0 | 1 => {
                let knows = if self.far > 0 { all.end - 1 } else { one };
                for sentinel in all.filter(|it| *it != knows) {
                    self.plan(before, after, Fault::Isolate { sentinel });
                }
            }
            // One has missed the failover, and is heard alone later.
            2 => {
                self.plan(before, after, Fault::Isolate { sentinel: one });
                let begins = at + rng.between(1_000, 3_000) * MILLI;
                for server in all.filter(|it| *it != one) {
                    let keeps_data = true;
                    let ends = after.max(begins + MILLI);
                    self.plan(begins, ends, Fault::Restart { server, keeps_data });
                }
            }
            // One hangs for long, and connections break meanwhile.
            3 => {
                self.plan(200 * MILLI, LAST, Fault::StopServer { server: one });
                for server in 0..self.data_servers() {
                    let at = rng.between(1_000, 5_000) * MILLI;
                    self.plan(at, at + MILLI, Fault::EndConnections { server });
                }
            }
            4 => {
                for server in all {
                    self.plan(before, after, Fault::StopServer { server });
                }
            }
            _ => self.draw_errors_of_sentinels(rng, before, after),
        }
    }

    fn draw_errors_of_sentinels(&mut self, rng: &mut Rng, at: u64, end: u64) {
        for server in self.sentinel_servers() {
            let process = rng.index(self.processes.len());
            let by = rng.between(20, 600) * MILLI;
            let fault = rng.pick(&[
                Fault::Isolate { sentinel: server },
                Fault::StopServer { server },
                Fault::Restart {
                    server,
                    keeps_data: true,
                },
                Fault::Deny {
                    server,
                    command: "SENTINEL".to_owned(),
                },
                Fault::Refuse {
                    server,
                    refusal: Refusal::Loading,
                },
                Fault::Slow {
                    process,
                    server,
                    by,
                },
            ]);
            if rng.percent(60) {
                self.plan(at, end, fault);
            }
        }
    }

    fn plan(&mut self, at: u64, end: u64, fault: Fault) {
        let lasts = end.min(LAST).saturating_sub(at).max(1);
        self.faults.push(Planned { at, lasts, fault });
    }
}
