//! The faults of a server of PostgreSQL.

use super::{Plan, Topology, Weather, lock_name};
use crate::rng::Rng;
use crate::server::Refusal;
use crate::world::{Fault, MILLI};

impl Plan {
    /// A crash of PostgreSQL may lose a release, and the lock then stays for its ttl.
    pub(super) fn bound_lost_releases(&mut self) {
        let is_restart = |fault: &Fault| matches!(fault, Fault::Restart { .. });
        if self.topology == Topology::Postgres && self.has(is_restart) {
            self.ttls.retain(|ttl| *ttl <= 10_000);
        }
    }

    pub(super) fn fault_of_postgres(&self, rng: &mut Rng) -> Fault {
        let (process, server) = (rng.index(self.processes.len()), 0);
        let restart = |keeps_data| Fault::Restart { server, keeps_data };
        match self.weather {
            Weather::Deaths => self.death(rng),
            Weather::Momentary => rng.pick(&[
                Fault::Cut { process, server },
                Fault::EndConnections { server },
            ]),
            Weather::Lossy if rng.percent(50) => {
                let key = lock_name(rng.index(self.keys)).into_bytes();
                rng.pick(&[
                    restart(false),
                    Fault::Flush { server },
                    Fault::Delete { server, key },
                ])
            }
            Weather::Network => self.network_fault(rng, process, server),
            _ if rng.percent(50) => self.network_fault(rng, process, server),
            _ => {
                let refusal = rng.pick(&[
                    Refusal::OutOfMemory,
                    Refusal::NoReplicas,
                    Refusal::ReadOnly,
                    Refusal::Misconfigured,
                ]);
                let by = rng.between(5, 2_000) as i64 * -(MILLI as i64 / 1_000);
                rng.pick(&[
                    Fault::Stop { process },
                    Fault::Stop { process },
                    Fault::Block { process },
                    Fault::Kill { process },
                    Fault::StopServer { server },
                    Fault::EndConnections { server },
                    Fault::Conflicts { server },
                    Fault::Conflicts { server },
                    Fault::Refuse { server, refusal },
                    Fault::StepClock { server, by },
                    restart(true),
                    restart(true),
                ])
            }
        }
    }
}
