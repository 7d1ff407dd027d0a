//! Processes that wait for a key of a cluster get it in the order in which they have asked.

use super::{Answer, Call, Ledger, Owning};
use crate::plan::Plan;
use crate::world::{SECOND, slowest_segment};

/// The time in which a manager may still be connecting.
const START: u64 = SECOND;

impl Ledger {
    /// Checks that no process which waits for a key is passed over, in a history without trouble.
    pub fn check_fifo(&mut self, plan: &Plan) {
        let exits = plan.processes.iter().any(|process| process.exits.is_some());
        let is_calm = plan.faults.is_empty() && !plan.stops_inside && !exits;
        if !is_calm {
            return;
        }
        // A waiter asks twice before it is in the queue.
        let queued = 6 * slowest_segment(plan.latency);
        for later in 0..self.calls.len() {
            let passed_over = (0..self.calls.len()).find(|first| {
                let [first, later] = [*first, later].map(|call| &self.calls[call]);
                self.is_passed_over(first, later, queued)
            });
            if let Some(first) = passed_over {
                let text = format!("\n  {}\n  {}", self.show(first), self.show(later));
                self.violates("a process that waits is passed over", text);
            }
        }
    }

    fn is_passed_over(&self, first: &Call, later: &Call, queued: u64) -> bool {
        let Some(granted) = later.answered.filter(|_| {
            !matches!(
                later.answer,
                Answer::Busy | Answer::Cancelled | Answer::Refused(_)
            )
        }) else {
            return false;
        };
        let is_plain = |call: &Call| call.owning == Owning::Alone && call.keys.len() == 1;
        first.process != later.process
            && first.keys == later.keys
            && is_plain(first)
            && is_plain(later)
            && first.wait != Some(0)
            && first.asked > START
            && first.asked + queued < later.asked
            && first.answered.is_none_or(|answered| answered > granted)
            && self.has_no_other(first, first.asked, granted, queued)
            && self.has_no_other(later, first.asked, granted, queued)
            && !self.cooled_down_before(first, granted)
    }

    /// Returns whether the key of a call cooled down right before this time, behind an owner or a completed run of a job. The
    /// waiters ask when the cooldown is over, and the first process that asks then has the key.
    fn cooled_down_before(&self, call: &Call, granted: u64) -> bool {
        let calls = self.calls.iter().enumerate();
        let left = calls.filter_map(|(number, it)| {
            // The later owner may have left at once.
            let left = it.left.filter(|left| *left < granted)?;
            let has_its_keys = call.keys.iter().all(|key| it.keys.contains(key));
            has_its_keys.then_some((left, number))
        });
        let cools_down = |number| {
            let mut runs = self.runs.iter();
            let mut cooldowns = self.kept.cooldowns.iter();
            runs.any(|run| run.call == number && run.completed.is_some())
                || cooldowns.any(|cooldown| cooldown.call == number)
        };
        left.max().is_some_and(|(_, number)| cools_down(number))
    }

    /// Returns whether no other call of the process was about the key at that time. A lock passes from task to task of a
    /// process.
    fn has_no_other(&self, call: &Call, from: u64, until: u64, queued: u64) -> bool {
        let of_the_key = |other: &&Call| {
            other.process == call.process
                && other.keys.iter().any(|key| call.keys.contains(key))
                && other.asked <= until
                && ended(other).is_none_or(|ended| ended + queued >= from)
        };
        // The call itself is one of them.
        self.calls.iter().filter(of_the_key).count() == 1
    }
}

/// When a call was over, with the lock that it got.
fn ended(call: &Call) -> Option<u64> {
    match call.answer {
        Answer::Busy | Answer::Cancelled | Answer::Refused(_) => call.answered,
        _ => call.released.or(call.left),
    }
}
