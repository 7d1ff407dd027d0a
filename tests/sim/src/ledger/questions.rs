//! Waiters ask seldom while the key is taken.

use super::Ledger;
use super::causes::is_slow;
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
        if count > usual + FEW {
            let text = format!("s{server} k{key} from {from} to {until}: {count}, usual {usual}");
            self.violates("waiters ask again and again", text);
        }
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
