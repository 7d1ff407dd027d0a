//! Waiters ask seldom while the key is taken.

use super::causes::is_slow;
use super::{Ledger, Owning};
use crate::plan::{Plan, Topology, lock_name};
use crate::world::{EPOCH, Kind, MICRO, MILLI, State, Write};

/// A span in which one owner has a key for so long shows how often the others ask.
const LONG: u64 = 1_200 * MILLI;
/// At its begin the waiters enter the queue.
const BEGIN: u64 = 300 * MILLI;
/// So many questions are no repetition.
const FEW: u64 = 12;

impl Ledger {
    /// Checks how often servers were asked about keys that one owner had all the time, in a history without faults.
    pub fn check_questions(&mut self, plan: &Plan, state: &State) {
        let is_foreign = !self.foreign.is_empty();
        // The servers note questions by their clocks.
        let differ = plan.topology == Topology::Cluster && !plan.clocks.is_empty();
        let is_calm = plan.faults.is_empty() && !plan.stops_inside;
        if !is_calm || is_slow(plan) || is_foreign || differ {
            return;
        }
        for server in 0..plan.servers {
            for key in 0..plan.keys {
                for (from, until) in long_holds(state, server, key) {
                    self.check_questions_in(plan, state, server, key, from + BEGIN, until);
                }
            }
        }
    }

    fn check_questions_in(
        &mut self,
        plan: &Plan,
        state: &State,
        server: usize,
        key: usize,
        from: u64,
        until: u64,
    ) {
        let name = lock_name(key);
        let Some(asked) = state.hosts[server].server.asked.get(name.as_bytes()) else {
            return;
        };
        let times = asked.iter().map(|micros| (micros - EPOCH) as u64 * MICRO);
        let count = times.filter(|at| (from..until).contains(at)).count() as u64;
        let concerns =
            |time: Option<u64>| time.is_some_and(|it| (from - BEGIN..until).contains(&it));
        let calls = self.calls.iter().filter(|call| {
            call.keys.contains(&key) && (concerns(Some(call.asked)) || concerns(call.answered))
        });
        let shortest = plan.ttls.iter().min().map_or(1, |ttl| ttl * MILLI);
        // A waiter asks when the key ends unless it is renewed, and the owner renews it.
        let turns = plan.processes.len() as u64 + 1;
        let usual = 6 * calls.count() as u64 + 4 * turns * ((until - from) / shortest + 1);
        let usual = usual + self.outrun_renewals(plan, key, from, until);
        if count > usual + FEW {
            let text = format!("s{server} k{key} from {from} to {until}: {count}, usual {usual}");
            self.violates("waiters ask again and again", text);
        }
    }

    /// How many statements the renewals of shares may cost beyond the first one. On PostgreSQL each change of the key by another
    /// process, such as the renewal of another share, costs two round trips more.
    fn outrun_renewals(&self, plan: &Plan, key: usize, from: u64, until: u64) -> u64 {
        if plan.topology != Topology::Postgres {
            return 0;
        }
        let shares = self.calls.iter().filter(|call| {
            let is_share = matches!(call.owning, Owning::Share(_));
            is_share && call.keys.contains(&key)
        });
        let renewals = shares.filter_map(|call| {
            let held = call
                .left?
                .min(until)
                .saturating_sub(call.answered?.max(from));
            Some(3 * held / call.ttl)
        });
        2 * renewals.sum::<u64>()
    }
}

/// The spans in which a server had one value of a key for long.
fn long_holds(state: &State, server: usize, key: usize) -> Vec<(u64, u64)> {
    let writes = state.hosts[server].writes.iter().filter(|it| it.key == key);
    let changes: Vec<&Write> = writes.filter(|it| it.kind != Kind::Lengthened).collect();
    let spans = changes.windows(2).filter(|it| it[0].kind != Kind::Gone);
    let spans = spans.map(|it| (it[0].at, it[1].at));
    spans.filter(|(from, until)| until - from >= LONG).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{calls, calm, world, write};
    use super::*;
    use crate::world::SECOND;

    /// The rules that are broken where ten owners have the key for nine seconds, and the server is asked every 20 ms.
    fn broken(topology: Topology, owning: Owning) -> Vec<&'static str> {
        let mut plan = calm();
        plan.topology = topology;
        plan.ttls = vec![1_000];
        plan.processes.truncate(1);
        let mut ledger = Ledger::default();
        for _ in 0..10 {
            calls(&mut ledger, owning, Some(0), 0, Some(0)).left = Some(9 * SECOND);
        }
        let sim = world();
        sim.change(|state| {
            let host = &mut state.hosts[0];
            host.writes.push(write(1, Kind::Set, SECOND));
            host.writes.push(write(9 * SECOND, Kind::Gone, SECOND));
            let asked = (0..9_000).step_by(20).map(|millis| EPOCH + 1_000 * millis);
            let name = lock_name(0).into_bytes();
            host.server.asked.insert(name, asked.collect());
        });
        sim.judge(ledger, &plan, Ledger::check_questions)
    }

    #[test]
    fn renewals_of_shares_on_postgresql_cost_more_statements() {
        let rule = "waiters ask again and again";
        assert!(broken(Topology::Postgres, Owning::Share(5)).is_empty());
        assert_eq!(broken(Topology::Postgres, Owning::Alone), [rule]);
        assert_eq!(broken(Topology::One, Owning::Share(5)), [rule]);
    }
}
