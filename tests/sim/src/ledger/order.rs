//! Waiters are served in the order of their arrival: the tasks of a process, and processes.

use std::collections::BTreeMap;

use super::late::may_be_outrun;
use super::{Call, Ledger};
use crate::plan::{Plan, Topology};
use crate::world::{Fault, MILLI, State};

const MILLION: u64 = 1_000_000;
/// The time in which a manager may still be connecting, and receives no pushes.
const START: u64 = 100 * MILLI;

/// A process waits for a key: one of its calls is first in its line.
pub(super) struct Waiting {
    pub(super) call: usize,
    pub(super) process: usize,
    pub(super) key: usize,
    pub(super) asked: u64,
    /// From when on it is in the server's queue.
    pub(super) from: u64,
    pub(super) until: u64,
}

impl Ledger {
    pub fn check_order(&mut self, plan: &Plan, state: &State) {
        let keeps_order =
            |fault: &Fault| matches!(fault, Fault::StepClock { .. } | Fault::ForgetScripts { .. });
        let others = plan.has(|fault| !keeps_order(fault));
        if others || plan.has_stops() || plan.topology == Topology::Redlock {
            return;
        }
        self.check_order_of_tasks(plan);
        if plan.ends() == 0 && !plan.habits.unrenewed {
            let waiting = self.waiting(plan);
            self.check_order_of_processes(&waiting);
            self.check_passes(plan, state, &waiting);
        }
    }

    fn check_order_of_tasks(&mut self, plan: &Plan) {
        // The call of each process and key that waits for longest.
        let mut longest: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            let [key] = call.keys[..] else { continue };
            if call.wait == Some(0) {
                continue;
            }
            let line = (call.process, key);
            let answered = |call: &Call| call.answered.unwrap_or(u64::MAX);
            // A caller whose wait is over, by the clock of its process, asks once more, and stands in the line no more.
            let in_line = |call: &Call| {
                let ahead = plan.processes[call.process].ppm.max(0).unsigned_abs();
                let lasts = |wait: u64| wait - wait * ahead / (MILLION + ahead);
                let over = call.wait.map_or(u64::MAX, |wait| call.asked + lasts(wait));
                answered(call).min(over)
            };
            match longest.get(&line) {
                Some(earlier) if in_line(&self.calls[*earlier]) > answered(call) => {
                    if call.left.is_some() {
                        let text = format!("\n  {}\n  {}", self.show(*earlier), self.show(number));
                        self.violates("a task is served before an earlier one", text);
                        return;
                    }
                }
                _ => drop(longest.insert(line, number)),
            }
        }
    }

    /// The waits of processes that had nothing to do with the key before.
    fn waiting(&self, plan: &Plan) -> Vec<Waiting> {
        let mut busy: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        let mut waiting = Vec::new();
        // A manager asks sentinels, and each server for its role, before its first question.
        let connected = match plan.topology {
            Topology::Sentinel => START + plan.segments(40),
            _ => START,
        };
        for (number, call) in self.calls.iter().enumerate() {
            let [key] = call.keys[..] else { continue };
            let busy_until = busy.entry((call.process, key)).or_default();
            let is_first = *busy_until < call.asked;
            *busy_until = (*busy_until).max(call.is_over());
            let (from, until) = (
                call.asked + plan.segments(8),
                call.answered.unwrap_or(u64::MAX),
            );
            // The queue may take such a process much later. The owners in between do not see it.
            let is_seen_late = may_be_outrun(plan, call.process);
            if is_first
                && !is_seen_late
                && call.wait != Some(0)
                && call.asked > connected
                && from < until
            {
                waiting.push(Waiting {
                    call: number,
                    process: call.process,
                    key,
                    asked: call.asked,
                    from,
                    until,
                });
            }
        }
        waiting
    }

    fn check_order_of_processes(&mut self, waiting: &[Waiting]) {
        for one in waiting {
            // The first call of the other process that is about the key behind a pause.
            let mut busy: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
            for number in 0..self.calls.len() {
                let call = &self.calls[number];
                if call.keys != [one.key] || call.process == one.process {
                    continue;
                }
                if call.asked >= one.until {
                    break;
                }
                let (since, until) = busy.entry(call.process).or_insert((call.asked, 0));
                if *until < call.asked {
                    *since = call.asked;
                }
                *until = (*until).max(call.is_over());
                let is_later = *since > one.from;
                let granted = call.answered.filter(|_| call.left.is_some());
                if is_later && granted.is_some_and(|granted| granted < one.until) {
                    let text = format!("\n  {}\n  {}", self.show(one.call), self.show(number));
                    self.violates("a process is served before an earlier one", text);
                    return;
                }
            }
        }
    }
}

impl Call {
    /// When the call has nothing to do with the key any more.
    fn is_over(&self) -> u64 {
        let end = match self.left {
            // A release in the background is soon done.
            Some(left) => Some(self.ended.unwrap_or(left + 20 * MILLI)),
            None => self.answered,
        };
        end.unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asks, calls, calm, world};
    use super::super::{Answer, Owning};
    use super::*;
    use crate::world::SECOND;

    /// The rules that are broken where the clock of a process is so fast, a call waits there from second 2 on for 300 ms,
    /// and a later one gets the key so many microseconds before that.
    fn broken(ppm: i64, before: u64) -> Vec<&'static str> {
        let mut plan = calm();
        plan.processes[0].ppm = ppm;
        let mut ledger = Ledger::default();
        calls(&mut ledger, Owning::Alone, Some(300 * MILLI), 2, Some(3)).answer = Answer::Busy;
        let later = asks(&mut ledger, Owning::Alone, None, 2, Some(3));
        let granted = 2 * SECOND + 300 * MILLI - before * 1_000;
        ledger.calls[later].answered = Some(granted);
        ledger.calls[later].left = Some(granted);
        world().judge(ledger, &plan, Ledger::check_order)
    }

    #[test]
    fn a_call_stands_in_line_to_the_end_of_its_wait_by_the_clock_of_its_process() {
        let rule = "a task is served before an earlier one";
        assert!(broken(1_000, 299).is_empty());
        assert_eq!(broken(1_000, 301), [rule]);
        assert_eq!(broken(0, 299), [rule]);
        assert_eq!(broken(-1_000, 299), [rule]);
    }

    #[test]
    fn a_process_whose_operations_may_be_outrun_is_seen_late_by_the_others() {
        let waiters = |topology: Topology, latency: u64| {
            let mut plan = calm();
            (plan.topology, plan.latency) = (topology, latency * MILLI);
            plan.processes[0].operation_timeout = 200 * MILLI;
            let mut ledger = Ledger::default();
            asks(&mut ledger, Owning::Alone, None, 2, Some(3));
            ledger.waiting(&plan).len()
        };
        assert_eq!(waiters(Topology::Postgres, 5), 0);
        assert_eq!(waiters(Topology::Postgres, 3), 1);
        assert_eq!(waiters(Topology::One, 5), 1);
    }
}
