//! Requests that arrive twice never make a second owner, and leave nothing that has no end.

use super::Ledger;
use super::remains::stays;
use crate::plan::{Plan, Weather};
use crate::world::Sim;

impl Ledger {
    /// Checks a history in which a proxy repeats requests. Until its ttl ends, a repeated request may take a key for a lease
    /// that has ended, so callers may be refused, may wait and may lose a lock without another cause.
    pub fn check_repeats(&mut self, plan: &Plan, sim: &Sim) {
        assert_eq!(plan.weather, Weather::Repeats);
        sim.look(|state| self.check_owners(plan, state));
        for (process, is_complete) in self.drained.clone() {
            if !is_complete {
                self.violates("a manager is not drained", format!("p{process}"));
            }
        }
        let endless: Vec<String> = sim.look(|state| {
            let hosts = state.hosts.iter();
            let entries = hosts.flat_map(|host| host.server.entries());
            let endless = entries.filter(|(_, entry)| entry.ends.is_none());
            let names = endless.map(|(key, _)| String::from_utf8_lossy(key).into_owned());
            names.filter(|key| !stays(key, plan)).collect()
        });
        if !endless.is_empty() {
            self.violates("left behind without an end", format!("{endless:?}"));
        }
    }
}
