//! Faults of several servers at once, and of strangers.

use std::collections::BTreeSet;

use super::{Plan, Topology};
use crate::rng::Rng;
use crate::world::Fault;

impl Plan {
    /// How many servers may fail.
    pub fn minority(&self) -> usize {
        (self.servers - 1) / 2
    }

    /// Returns whether all that goes wrong is at the same minority of the servers.
    pub fn spares_a_majority(&self) -> bool {
        let servers: Option<BTreeSet<usize>> =
            self.faults.iter().map(|it| it.fault.server()).collect();
        !self.stops_inside && servers.is_some_and(|servers| servers.len() <= self.minority())
    }

    /// What goes wrong at one server may go wrong at several, such as a right or the power.
    pub(super) fn spread(&self, fault: Fault, rng: &mut Rng) -> Vec<Fault> {
        let is_of_one = self.topology != Topology::Redlock
            || fault.server().is_none()
            || matches!(fault, Fault::Spoil { .. });
        if is_of_one || rng.percent(60) {
            return vec![fault];
        }
        let mut servers: Vec<usize> = (0..self.servers).collect();
        for _ in 0..rng.below(self.servers as u64 - 1) {
            servers.swap_remove(rng.index(servers.len()));
        }
        servers.into_iter().map(|server| fault.at(server)).collect()
    }

    pub(super) fn strange_fault(&self, rng: &mut Rng, server: usize, key: Vec<u8>) -> Fault {
        let dead = Fault::Dead {
            server,
            key: key.clone(),
        };
        match self.topology {
            // All locks of a majority that is spoiled fail until an operator comes.
            Topology::Redlock => rng.pick(&[Fault::Spoil { server: 0 }, dead]),
            _ => rng.pick(&[
                Fault::Delete {
                    server,
                    key: key.clone(),
                },
                Fault::Strike {
                    server,
                    key: key.clone(),
                },
                Fault::Touch { server, key },
                dead,
            ]),
        }
    }
}
