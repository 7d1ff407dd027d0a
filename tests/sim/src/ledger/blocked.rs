//! Calls without an answer, because a task blocked the runtime that would have read it.

use super::{Answer, Ledger};
use crate::plan::Plan;
use crate::world::{TO_CONNECT, slowest_segment};

/// A span in which the runtime of a process polls nothing, because a task blocks it.
#[derive(Clone, Copy, Debug)]
pub struct Blocked {
    pub process: usize,
    pub from: u64,
    pub until: u64,
}

impl Ledger {
    /// Returns whether a call is without an answer because its runtime was blocked.
    pub(super) fn was_blocked(&self, plan: &Plan, number: usize) -> bool {
        let call = &self.calls[number];
        let (why, from, to) = match &call.answer {
            Answer::Refused(why) => (why, call.asked, call.answered),
            Answer::NotReleased(why) => (why, call.left.unwrap_or(call.asked), call.ended),
            _ => return false,
        };
        let to = to.unwrap_or(u64::MAX);
        // A waiter asks once more when its runtime goes on, and its connections may have to be made anew by then.
        let connects = TO_CONNECT * slowest_segment(plan.latency);
        let patience = plan.processes[call.process].operation_timeout;
        let delays = |it: &Blocked| {
            let over = it.until + connects;
            it.process == call.process && from <= over && it.from <= to && to <= over + patience
        };
        why.starts_with("Unavailable") && self.blocked.iter().any(delays)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Owning;
    use super::super::tests::{calls, calm, rules};
    use super::*;
    use crate::world::{MILLI, SECOND};

    /// The rules that are broken where a call is refused at second 6, and this process is blocked until this second, in a
    /// network of this latency.
    fn broken(process: usize, until: u64, latency: u64) -> Vec<&'static str> {
        let mut plan = calm();
        plan.latency = latency;
        plan.processes[0].operation_timeout = 500 * MILLI;
        let mut ledger = Ledger::default();
        calls(&mut ledger, Owning::Alone, Some(0), 4, Some(6)).answer =
            Answer::Refused("Unavailable".to_owned());
        ledger.blocked.push(Blocked {
            process,
            from: 4 * SECOND,
            until: until * SECOND,
        });
        ledger.check_quiet(&plan, &[]);
        rules(&ledger)
    }

    #[test]
    fn a_call_has_no_answer_only_while_its_own_runtime_is_blocked() {
        let rule = "refused or lost without trouble";
        assert!(broken(0, 6, 1).is_empty());
        assert_eq!(broken(0, 5, 1), [rule]);
        assert_eq!(broken(1, 6, 1), [rule]);
    }

    #[test]
    fn a_call_behind_a_block_waits_for_new_connections() {
        assert!(broken(0, 5, 50 * MILLI).is_empty());
    }
}
