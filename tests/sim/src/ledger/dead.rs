//! No key and no place in a queue is a process's that has ended.

use super::Ledger;
use crate::plan::{Plan, Topology, lock_name};
use crate::server::{Bytes, Data};
use crate::world::{Lives, State};

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
        // A release without the right to DEL cannot take back what it has given to a dead waiter.
        let cannot_delete = |time: u64| {
            plan.faults.iter().any(|it| {
                let span = it.at..=it.end() + plan.segments(1);
                it.fault.denies("DEL") && span.contains(&time)
            })
        };
        for process in 0..plan.processes.len() {
            let Some(ended) = state.processes[process].ended else {
                continue;
            };
            // The server hears the end of the connections, and what was sent before.
            let heard = ended + plan.segments(2);
            let addresses = addresses(state, process);
            for key in 0..plan.keys {
                let name = lock_name(key).into_bytes();
                let texts = state.hosts[0].texts.get(&name).into_iter().flatten();
                let stays = |at: u64| is_there_behind(&state.hosts[0].lives, &name, at);
                let mut later =
                    texts.filter(|it| it.0 > heard && !cannot_delete(it.0) && stays(it.0));
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

/// Returns whether a key is there behind the command of this time. A script that may not publish takes back what it has given.
fn is_there_behind(lives: &Lives, key: &Bytes, at: u64) -> bool {
    let mut states = lives.get(key).into_iter().flatten().rev();
    let last = states.find(|(from, _)| *from <= at);
    last.is_some_and(|(_, until)| until.is_some_and(|until| until > at))
}

/// The beginnings of the tokens of a process, by the cards that it has left on the servers.
pub(super) fn addresses(state: &State, process: usize) -> Vec<Bytes> {
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

#[cfg(test)]
mod tests {
    use super::super::tests::{calm, with, world};
    use super::*;
    use crate::world::{Fault, SECOND};

    /// The rules that are broken where a server gives a key at second 3 to a process that has ended at second 1, and the key is
    /// there until this second.
    fn broken(mut plan: Plan, until: u64) -> Vec<&'static str> {
        plan.processes.truncate(1);
        let address = b"00000000000000aa";
        let sim = world();
        sim.change(|state| {
            let card: [&[u8]; 3] = [b"SET", b"lockkit:!h:00000000000000aa", b"1\nhost-0"];
            state.stranger_runs(0, &card);
            state.processes[0].ended = Some(SECOND);
            let token = [address.as_slice(), b"/0"].concat();
            let name = lock_name(0).into_bytes();
            let texts = vec![(3 * SECOND, token)];
            state.hosts[0].texts.insert(name.clone(), texts);
            let lives = vec![(3 * SECOND, Some(5 * SECOND)), (until * SECOND, None)];
            state.hosts[0].lives.insert(name, lives);
        });
        sim.judge(Ledger::default(), &plan, Ledger::check_the_dead)
    }

    #[test]
    fn only_a_release_without_the_right_to_del_leaves_a_key_with_the_dead() {
        let denied = |command: &str, from: u64| {
            let command = command.to_owned();
            let mut plan = with(Fault::Deny { server: 0, command });
            (plan.faults[0].at, plan.faults[0].lasts) = (from * SECOND, SECOND);
            plan
        };
        let rule = "a key is given to a process that has ended";
        assert_eq!(broken(calm(), 5), [rule]);
        assert_eq!(broken(denied("PUBLISH", 2), 5), [rule]);
        assert_eq!(broken(denied("DEL", 4), 5), [rule]);
        assert!(broken(denied("DEL", 2), 5).is_empty());
    }

    #[test]
    fn a_script_may_take_back_what_it_has_given_to_the_dead() {
        assert!(broken(calm(), 3).is_empty());
    }
}
