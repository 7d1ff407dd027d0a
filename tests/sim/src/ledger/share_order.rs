//! No share passes an earlier waiter that it must not stand beside.

use super::calm::Calm;
use super::{Answer, Call, Ledger, Owning};
use crate::plan::{Plan, Topology};

impl Ledger {
    pub fn check_share_order(&mut self, plan: &Plan) {
        if !plan.has_shares() || !plan.faults.is_empty() || plan.stops_inside {
            return;
        }
        let slack = Calm::of(plan).slack;
        for of_key in self.calls_by_key(plan) {
            for &number in &of_key {
                let call = &self.calls[number];
                let entered = call.left.and(call.answered);
                let Some(entered) = entered.filter(|_| call.goes_on.is_none()) else {
                    continue;
                };
                if call.owning == Owning::Alone {
                    continue;
                }
                if self.meets_an_end_by_time(&of_key, call, entered, slack) {
                    continue;
                }
                let passed = of_key.iter().copied().find(|other| {
                    let it = &self.calls[*other];
                    it.owning.excludes(call.owning)
                        && it.asked + slack < call.asked
                        && it
                            .answered
                            .is_none_or(|answered| answered > entered + slack)
                        && it.wait != Some(0)
                        && it.rests.is_none()
                        && self.is_first_of_its_process(&of_key, *other, entered)
                        && (plan.topology != Topology::Redlock || self.joins_readers(&of_key, call))
                });
                if let Some(passed) = passed {
                    let text = format!("\n  {}\n  {}", self.show(passed), self.show(number));
                    self.violates("a share passes an earlier waiter", text);
                }
            }
        }
    }

    /// Returns whether a share may have met the end of a lease that ran out.
    ///
    /// A process does not renew the lease of an owner that was not polled since it asked. The waiters ask when the lease is over,
    /// and the first process that asks then has the key.
    fn meets_an_end_by_time(
        &self,
        of_key: &[usize],
        call: &Call,
        entered: u64,
        slack: u64,
    ) -> bool {
        of_key.iter().any(|other| {
            let it = &self.calls[*other];
            let ends = it.asked + it.ttl;
            it.process != call.process
                && it.rests.is_some_and(|until| until > ends)
                && ends <= entered
                && call.asked <= ends + 2 * slack
        })
    }

    /// Returns whether a waiter stood in the store's queue by `time`, and not behind another one of its process.
    fn is_first_of_its_process(&self, of_key: &[usize], waiter: usize, time: u64) -> bool {
        let it = &self.calls[waiter];
        of_key.iter().all(|other| {
            let beside = &self.calls[*other];
            let ended = beside.left.or(beside.answered).unwrap_or(u64::MAX);
            *other == waiter
                || beside.process != it.process
                || beside.asked > time
                || ended < it.asked
        })
    }

    /// Returns whether another reader had the key all the time of a call. On a quorum a key that is free goes to the first that
    /// asks.
    fn joins_readers(&self, of_key: &[usize], call: &Call) -> bool {
        of_key.iter().any(|other| {
            let it = &self.calls[*other];
            it.owning == Owning::READER
                && it.answer == Answer::Granted
                && it.answered.is_some_and(|answered| answered < call.asked)
                && it.left.is_some_and(|left| Some(left) > call.answered)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asks, calls, calm, rules};
    use super::*;
    use crate::plan::Verb;
    use crate::world::SECOND;

    #[test]
    fn a_share_passes_a_waiter_only_when_a_lease_ends_whose_owner_is_not_polled() {
        // An owner with a ttl of a second asks at second 2, and is not polled before this second. A share enters at this one.
        let is_broken = |polled: Option<u64>, entered: u64| {
            let mut plan = calm();
            plan.verbs = vec![Verb::Read];
            plan.latency = 1;
            let mut ledger = Ledger::default();
            calls(&mut ledger, Owning::Alone, None, 2, Some(9)).rests =
                polled.map(|until| until * SECOND);
            calls(&mut ledger, Owning::Alone, None, 2, Some(8)).process = 1;
            let share = asks(&mut ledger, Owning::READER, None, entered, Some(entered));
            ledger.calls[share].process = 2;
            ledger.calls[share].left = Some(7 * SECOND);
            ledger.check_share_order(&plan);
            rules(&ledger).contains(&"a share passes an earlier waiter")
        };
        assert!(!is_broken(Some(9), 3));
        assert!(is_broken(None, 3));
        assert!(is_broken(Some(2), 3));
        assert!(is_broken(Some(9), 4));
    }
}
