//! Each call ends in time, and no key is free for long beside a waiter.

use super::Ledger;
use super::answers::spans;
use crate::plan::{Plan, Topology};
use crate::world::{Fault, LAST, LONGEST_STOP, SECOND, State};

/// How long a key may be free beside a waiter after the last fault.
const FREE: u64 = 4 * SECOND;
/// How long after a fault its effects last.
const AFTERMATH: u64 = 2 * SECOND;
/// The longest time of a call beyond its wait.
const OVERTIME: u64 = 6 * SECOND;

impl Ledger {
    pub fn check_waits(&mut self, plan: &Plan, state: &State) {
        let kills = (0..plan.processes.len()).any(|process| plan.ends_early(process));
        let stops = plan.stops_inside
            || plan.has(|fault| matches!(fault, Fault::Stop { .. } | Fault::Block { .. }));
        let steps = plan.has(|fault| fault.clock_step().is_some());
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            if plan.ends_early(call.process) {
                continue;
            }
            let wrong = match (call.answered, call.wait) {
                // The key may stay with a process that was killed.
                (None, None) if kills => None,
                (None, _) => Some("a call is never answered"),
                (Some(answered), Some(wait)) => {
                    let late = answered > call.asked + wait + OVERTIME;
                    (late && !stops).then_some("a call is answered too late")
                }
                (Some(answered), None) => {
                    let late = answered > plan.work_ends + 20 * SECOND;
                    (late && !kills && !plan.loses_data()).then_some("a call waits for long")
                }
            };
            if let Some(rule) = wrong {
                let text = self.show(number);
                self.violates(rule, text);
            }
            let forgets = plan.has(|fault| matches!(fault, Fault::Delete { .. }));
            if plan.topology != Topology::Redlock
                && !steps
                && !forgets
                && self.calls[number].wait != Some(0)
            {
                self.check_free(number, plan, state);
            }
        }
    }

    /// Checks that the key was not free for long while the call waited.
    fn check_free(&mut self, number: usize, plan: &Plan, state: &State) {
        let call = &self.calls[number];
        let until = call.answered.unwrap_or(state.now);
        let trouble = match plan.stops_inside {
            true => LAST + LONGEST_STOP,
            false => state.last_fault_ends(),
        };
        let mut free = call.asked.max(trouble + AFTERMATH);
        let taken = spans(state, call.key);
        for (from, to) in taken.into_iter().chain([(until, until)]) {
            if from.min(until) > free + FREE {
                let since = free as f64 / 1e6;
                let text = format!("from {since:.3}: {}", self.show(number));
                self.violates("a call waits beside a free key", text);
                return;
            }
            free = free.max(to);
        }
    }
}
