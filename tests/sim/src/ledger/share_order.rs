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
