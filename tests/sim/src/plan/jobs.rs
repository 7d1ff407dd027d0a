//! Leaders and jobs: the keys that nothing else uses, and leaders that lose their key again and again.

use super::{Plan, Planned, Topology, Verb, Weather, lock_name};
use crate::rng::Rng;
use crate::world::{Fault, LAST, MILLI};

impl Plan {
    /// A key that only candidates for a leadership use, or only jobs.
    pub fn own_key(&self, verb: Verb) -> usize {
        self.keys + usize::from(verb == Verb::Every)
    }

    pub(super) fn may_depose(&self) -> bool {
        self.weather == Weather::Lossy
            && self.topology.is_alone()
            && self.topology != Topology::Postgres
            && self.verbs.contains(&Verb::Lead)
    }

    /// Deletes the key of a leadership now and then, and nothing else goes wrong.
    pub(super) fn depose(&mut self, rng: &mut Rng) {
        self.stops_inside = false;
        let key = lock_name(self.own_key(Verb::Lead)).into_bytes();
        let mut at = 500 * MILLI;
        loop {
            at += rng.between(150, 1_200) * MILLI;
            if at >= LAST {
                return;
            }
            let key = key.clone();
            self.faults.push(Planned {
                at,
                lasts: 0,
                fault: Fault::Delete { server: 0, key },
            });
        }
    }
}

impl Plan {
    /// Returns whether a process may stand still for a while.
    pub fn stops_processes(&self) -> bool {
        self.stops_inside || self.has(Fault::is_a_stop)
    }

    /// When the last fault is over.
    pub fn last_fault_ends(&self) -> u64 {
        self.faults.iter().map(Planned::end).max().unwrap_or(0)
    }

    /// A span of true time by the clock of a process.
    pub fn by_clock_of(&self, process: usize, span: u64) -> u64 {
        let ppm = i128::from(self.processes[process].ppm);
        (i128::from(span) * (1_000_000 + ppm) / 1_000_000) as u64
    }

    pub fn steps_clocks(&self) -> bool {
        self.has(|fault| fault.clock_step().is_some())
    }

    /// How far the clock of the first server was set back at most, in microseconds, at any moment between two times. Not
    /// above zero.
    pub fn steps_back(&self, from: u64, to: u64) -> i64 {
        let mut steps: Vec<_> = self
            .faults
            .iter()
            .filter_map(|it| match it.fault {
                Fault::StepClock { server: 0, by } if (from..=to).contains(&it.at) => {
                    Some((it.at, by))
                }
                _ => None,
            })
            .collect();
        steps.sort_unstable();
        let sums = steps.iter().scan(0, |sum, (_, by)| {
            *sum += by;
            Some(*sum)
        });
        sums.min().unwrap_or(0).min(0)
    }

    /// Returns whether a server may refuse what it should do.
    pub fn refuses(&self) -> bool {
        self.has(|fault| matches!(fault, Fault::Refuse { .. } | Fault::Deny { .. }))
    }
}
