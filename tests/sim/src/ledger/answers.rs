//! `Busy` is a fact, and refusals and losses have causes.

use super::{Answer, Ledger, Owning};
use crate::plan::{Plan, Topology};
use crate::world::{Fault, SECOND, State};

/// The time in which a manager may still be connecting.
const START: u64 = SECOND;

/// A process tells its callers the server's last answer to its waiter. The end of the lock is pushed, so the answer is not
/// older than this.
const REMEMBERED: u64 = 2 * SECOND;
/// The same if a push may be late, or if the next owner is gone and nothing is pushed.
const REMEMBERED_IN_TROUBLE: u64 = 12 * SECOND;

impl Ledger {
    /// Checks that a key was taken at some time of each call that was told `Busy`.
    pub fn check_busy(&mut self, plan: &Plan, state: &State) {
        // The clock of the server, by which keys end, says nothing about true time when it steps; on a quorum callers
        // that ask at once may get no majority.
        let steps = plan.has(|fault| fault.clock_step().is_some());
        // Without the queue no push ends the answer that a waiter remembers.
        let forgets = plan.has(|fault| matches!(fault, Fault::Delete { .. }));
        if steps || forgets || plan.topology == Topology::Redlock {
            return;
        }
        let exits = plan.processes.iter().any(|process| process.exits.is_some());
        let remembered = match plan.faults.is_empty() && !plan.stops_inside && !exits {
            true => REMEMBERED,
            false => REMEMBERED_IN_TROUBLE,
        };
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            let (Answer::Busy, Some(answered)) = (&call.answer, call.answered) else {
                continue;
            };
            if plan.ends_early(call.process) {
                continue;
            }
            let owned = self.claims.iter().any(|claim| {
                claim.key == call.key && claim.from <= answered && call.asked <= claim.until
            });
            let mut taken = spans(state, call.key).into_iter();
            let taken =
                taken.any(|(from, until)| from <= answered && call.asked <= until + remembered);
            if !owned && !taken {
                let text = self.show(number);
                self.violates("busy though the key was free", text);
            }
        }
    }

    /// Checks that nothing is refused or lost in a history without faults.
    pub fn check_causes(&mut self, plan: &Plan) {
        // On a quorum see "Open findings" of README.md.
        let is_calm = plan.faults.is_empty() && !plan.stops_inside;
        if !is_calm || plan.topology == Topology::Redlock {
            return;
        }
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            let uncaused = matches!(
                call.answer,
                Answer::Lost | Answer::Refused(_) | Answer::NotReleased(_)
            );
            if uncaused && call.asked > START && !plan.ends_early(call.process) {
                let text = self.show(number);
                self.violates("refused or lost without a fault", text);
            }
        }
    }

    /// Checks the owner's deadline against the end of its key at the server, in true time, at one look of the owner.
    pub fn check_deadline(
        &mut self,
        plan: &Plan,
        state: &State,
        call: usize,
        owning: Owning,
        remaining: u64,
    ) {
        let steps = plan.has(|fault| fault.clock_step().is_some());
        // A node of a quorum that has lost its data does not vote for as long as a lock may last.
        let loses = plan.has(Fault::loses_data);
        if loses || steps || state.thawed || owning != Owning::Alone {
            return;
        }
        let (process, key) = (self.calls[call].process, self.calls[call].key);
        let ppm = state.processes[process].ppm as f64;
        let believes = remaining as f64 / (1.0 + ppm / 1e6);
        let name = format!("lockkit:k{key}");
        let servers = plan.topology.servers();
        let mut left: Vec<i64> = (0..servers)
            .map(|server| {
                let entry = state.hosts[server].server.entry(name.as_bytes());
                let ends = entry.and_then(|entry| entry.ends);
                // A key is there to the end of its last millisecond.
                ends.map_or(0, |ends| state.true_time_left(server, ends + 1))
            })
            .collect();
        left.sort_unstable();
        // Another owner needs a majority.
        let left = left[servers / 2].max(0);
        if believes > left as f64 {
            let text = format!(
                "it believes for {:.6} s, the server has the key for {:.6} s, at {:.6}: {}",
                believes / 1e9,
                left as f64 / 1e9,
                state.now as f64 / 1e9,
                self.show(call)
            );
            self.violates("an owner believes longer than its key lives", text);
        }
    }
}

/// The spans of true time in which a server had a key.
pub(super) fn spans(state: &State, key: usize) -> Vec<(u64, u64)> {
    let name = format!("lockkit:k{key}");
    let mut spans: Vec<(u64, u64)> = Vec::new();
    let Some(lives) = state.hosts[0].lives.get(name.as_bytes()) else {
        return spans;
    };
    for (at, (from, until)) in lives.iter().enumerate() {
        let Some(until) = until else { continue };
        let next = lives.get(at + 1).map_or(u64::MAX, |next| next.0);
        let until = (*until).min(next);
        match spans.last_mut() {
            Some(last) if last.1 >= *from => last.1 = until,
            _ => spans.push((*from, until)),
        }
    }
    spans
}
