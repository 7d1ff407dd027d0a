//! No key and no place in a queue is a process's that has ended.

use super::Ledger;
use crate::plan::{Plan, Topology, lock_name};
use crate::server::{Bytes, Data};
use crate::world::State;

impl Ledger {
    /// Checks that a manager that has drained has no lock and stands in no queue.
    pub fn check_drained(&mut self, plan: &Plan, state: &State, process: usize) {
        // Where a runtime was blocked, the answers of its connection are late, and a request may arrive behind its undoing.
        let is_calm = plan.faults.is_empty() && !plan.has_stops();
        if !is_calm || plan.topology == Topology::Redlock {
            return;
        }
        let addresses = addresses(state, process);
        let is_its = |token: &[u8]| addresses.iter().any(|it| token.starts_with(it));
        for key in 0..plan.keys {
            let entries = |name: String| {
                // A row of PostgreSQL outlasts the lease in it.
                let is_row = plan.topology == Topology::Postgres;
                let entry = move |server: usize| {
                    let entry = state.hosts[server].server.entry(name.as_bytes());
                    let millis = state.server_time(server) / 1_000;
                    entry.filter(|it| !(is_row && it.is_over(millis)))
                };
                state.masters().filter_map(entry).map(|entry| &entry.data)
            };
            // A ticket names its process, and outlives it.
            let mut values = entries(lock_name(key));
            let holds = values.any(|it| matches!(it, Data::Text(text) if is_its(text)))
                && !self.is_on_its_way_at(key, state.now);
            let mut queues = entries(plan.topology.queue_name(key));
            let waits = queues.any(|it| {
                matches!(it, Data::Sorted(queue)
                    if queue.members().iter().any(|(_, member)| is_its(member)))
            });
            if holds || waits {
                let what = if holds { "has" } else { "waits for" };
                let now = state.now as f64 / 1e9;
                let text = format!("p{process} {what} k{key}, at {now:.6}");
                self.violates("something is left of a drained manager", text);
            }
        }
    }

    /// Checks that a server gives no key to a process that has ended.
    pub fn check_the_dead(&mut self, plan: &Plan, state: &State) {
        if plan.loses_data() || !plan.is_connected() || plan.topology == Topology::Redlock {
            return;
        }
        for process in 0..plan.processes.len() {
            let Some(ended) = state.processes[process].ended else {
                continue;
            };
            // The server hears the end of the connections, and what was sent before.
            let heard = ended + plan.segments(2);
            let addresses = addresses(state, process);
            for key in 0..plan.keys {
                let texts = state.hosts[0].texts.get(lock_name(key).as_bytes());
                let mut later = texts.into_iter().flatten().filter(|it| it.0 > heard);
                let given = later.find(|it| addresses.iter().any(|its| it.1.starts_with(its)));
                if let Some((at, _)) = given {
                    let (at, ended) = (*at as f64 / 1e6, ended as f64 / 1e6);
                    let text = format!("k{key} at {at:.3} ms, p{process} ended at {ended:.3} ms");
                    self.violates("a key is given to a process that has ended", text);
                }
            }
        }
    }
}

/// The beginnings of the tokens of a process, by the cards that it has left on the servers.
fn addresses(state: &State, process: usize) -> Vec<Bytes> {
    let host = format!("host-{process}");
    let cards = state
        .masters()
        .flat_map(|it| state.hosts[it].server.entries());
    let cards = cards.filter_map(|(name, entry)| match &entry.data {
        Data::Text(card) => Some((name.strip_prefix(b"lockkit:!h:")?, card)),
        _ => None,
    });
    cards
        .filter(|(_, card)| card.split(|byte| *byte == b'\n').nth(1) == Some(host.as_bytes()))
        .map(|(address, _)| [address, b"/"].concat())
        .collect()
}
