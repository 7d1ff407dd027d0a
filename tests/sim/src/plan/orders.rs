//! Faults of histories with orders and tickets: connections that end under them, and holders that do not hear of an order.

use super::{Plan, Verb, Weather};
use crate::rng::Rng;
use crate::server::Refusal;
use crate::world::{Fault, MILLI, SECOND};

/// No fault begins later, in milliseconds.
const LATEST: u64 = 5_000;

impl Plan {
    /// Draws the faults of such a history. `false`: it gets the usual ones.
    pub(super) fn draw_faults_of_orders(&mut self, rng: &mut Rng) -> bool {
        if !self.has_orders() || !self.topology.is_alone() || rng.percent(40) {
            return false;
        }
        match self.weather {
            Weather::Momentary => self.break_answers_off(rng),
            Weather::Network if rng.percent(40) => self.stop_those_who_ask(rng),
            Weather::Network => self.replace_connections(rng),
            Weather::Rough => self.refuse_orders(rng),
            _ => return false,
        }
        self.stops_inside = false;
        self.faults.sort_by_key(|planned| planned.at);
        true
    }

    /// All connections end so often that some answers to orders and tickets are lost.
    fn break_answers_off(&mut self, rng: &mut Rng) {
        self.latency = rng.pick(&[1_000, 5_000]) * 1_000;
        self.ttls = vec![10_000, 300_000];
        let mut at = rng.between(500, 1_500);
        while at < LATEST {
            self.add(at, 0, Fault::EndConnections { server: 0 });
            at += rng.between(40, 500);
        }
    }

    /// Connections end once or twice, and holders make no request for long.
    fn replace_connections(&mut self, rng: &mut Rng) {
        self.ttls = vec![10_000, 300_000];
        self.habits.holds = vec![200, 2_000, 4_000];
        // The only task of a process makes none while it holds a lock.
        self.staff(rng, (2, 3), (1, 1));
        for at in [rng.between(800, 2_000), rng.between(4_000, LATEST)] {
            self.add(at, 0, Fault::EndConnections { server: 0 });
        }
    }

    /// A process stops again and again, mostly while the answer to a question is on its way, and for as long as an order takes.
    /// So it hears of the order and of the grant at once, in any order.
    fn stop_those_who_ask(&mut self, rng: &mut Rng) {
        self.latency = 5_000 * 1_000;
        self.ttls = vec![10_000, 300_000];
        self.keys = rng.between(1, 2) as usize;
        self.verbs = vec![Verb::Acquire, Verb::Acquire, Verb::Operate];
        self.habits.holds = vec![5, 5, 2_000];
        self.habits.pauses = vec![1];
        self.staff(rng, (3, 3), (2, 4));
        for process in &mut self.processes {
            process.operation_timeout = SECOND;
        }
        let mut at = rng.between(800, 1_500);
        while at < LATEST {
            let lasts = rng.between(450, 950);
            self.add(at, lasts, Fault::Stop { process: 0 });
            at += lasts + rng.between(50, 900);
        }
    }

    /// The server refuses to write for a while, in most histories right after a process has ended that held locks.
    fn refuse_orders(&mut self, rng: &mut Rng) {
        self.ttls = vec![rng.pick(&[3_000, 10_000])];
        self.habits.holds = vec![700, 2_000, 4_000];
        let at = rng.between(800, 3_000);
        if self.processes.len() > 1 && rng.percent(60) {
            let process = rng.between(1, self.processes.len() as u64 - 1) as usize;
            self.add(at, 0, Fault::Kill { process });
        }
        let refusal = rng.pick(&[
            Refusal::OutOfMemory,
            Refusal::OutOfMemory,
            Refusal::ReadOnly,
        ]);
        let refuses = Fault::Refuse { server: 0, refusal };
        let lasts = rng.between(300, 2_500);
        self.add(at + rng.below(500), lasts, refuses);
        if rng.percent(40) {
            self.step_clock(rng, 3, LATEST * MILLI);
        }
    }
}
