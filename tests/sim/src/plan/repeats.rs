//! Histories in which a proxy sends requests twice.

use super::{Plan, Topology, Verb, Weather};
use crate::rng::Rng;
use crate::world::{Fault, MILLI, Planned};

/// Separates these draws from all others of the seed.
const OWN: u64 = 0x7265_7065_6174_7321;

impl Plan {
    /// Makes one history in thirty about requests that arrive twice, some of them much later.
    pub(super) fn draw_repeats(&mut self) {
        let mut rng = Rng::of(self.seed ^ OWN);
        if !matches!(
            self.topology,
            Topology::One | Topology::Redlock | Topology::Postgres
        ) || !rng.one_in(30)
        {
            return;
        }
        self.weather = Weather::Repeats;
        self.verbs = vec![Verb::Acquire];
        self.keys = rng.between(1, 2) as usize;
        // A lock that a repeated request takes ends by its ttl.
        self.ttls = vec![300, 1_000];
        self.interop = false;
        self.rests = 0;
        self.stops_inside = rng.percent(30);
        self.faults
            .retain(|it| !it.fault.loses_data() && it.fault.clock_step().is_none());
        for _ in 0..rng.between(2, 6) {
            let process = rng.index(self.processes.len());
            let server = rng.index(self.servers);
            let at = rng.between(0, 4_000) * MILLI;
            let lasts = rng.between(1, 1_500) * MILLI;
            let fault = Fault::Repeat { process, server };
            let overlaps = |it: &Planned| {
                it.fault.has_the_target_of(&fault) && it.at <= at + lasts && at <= it.end()
            };
            if !self.faults.iter().any(overlaps) {
                self.faults.push(Planned { at, lasts, fault });
            }
        }
        self.faults.sort_by_key(|planned| planned.at);
    }
}
