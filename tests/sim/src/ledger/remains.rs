//! Nothing is left behind when the managers are drained.

use super::Ledger;
use crate::plan::{Plan, Topology};
use crate::world::{Fault, Sim};

impl Ledger {
    pub fn check_remains(&mut self, plan: &Plan, sim: &Sim) {
        if plan.has(|fault| matches!(fault, Fault::Kill { .. })) {
            return;
        }
        // A drain does not wait for copies of requests that arrive late.
        let exits = plan.processes.iter().any(|process| process.exits.is_some());
        if exits && (!plan.faults.is_empty() || plan.stops_inside) {
            return;
        }
        for (process, is_complete) in self.drained.clone() {
            if !is_complete {
                self.violates("a manager is not drained", format!("p{process}"));
            }
        }
        let left: Vec<String> = sim.look(|state| {
            let servers = 0..plan.topology.servers();
            servers
                .flat_map(|server| {
                    let millis = state.server_time(server) / 1_000;
                    let entries = state.hosts[server].server.entries();
                    entries.filter(move |(_, entry)| entry.ends.is_none_or(|ends| ends >= millis))
                })
                .map(|(key, _)| String::from_utf8_lossy(key).into_owned())
                .filter(|key| !stays(key, plan.topology))
                .collect()
        });
        if !left.is_empty() {
            self.violates("left behind", format!("{left:?}"));
        }
    }
}

/// The mark, the registers of a node and the cards of managers stay, and on a quorum a queue may stay to its end.
fn stays(key: &str, topology: Topology) -> bool {
    let own = key.strip_prefix("lockkit:!").unwrap_or_default();
    own.starts_with('f')
        || own.starts_with('r')
        || own.starts_with("h:")
        || topology == Topology::Redlock && own.starts_with('q')
}
