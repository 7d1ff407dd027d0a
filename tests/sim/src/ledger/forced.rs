//! Which owners an order may have freed, and until when they may not have heard of it.
//!
//! A holder that has answered the operator's question is known by its fencing token. Of another one the ledger knows only
//! that it asked for the key before the order was answered.

use super::orders::{Order, Ordered, PASSES};
use super::undisturbed::{START, is_quiet, promptly};
use super::{Claim, Ledger};
use crate::plan::Plan;
use crate::world::{Fault, MILLI, SECOND};

/// A copy of an order without an answer may arrive so late.
const LATE_COPY: u64 = 6 * SECOND;
/// A message that was held back arrives so long after that fault.
const HELD_BACK: u64 = 200 * MILLI;

impl Order {
    /// The time by which the server has carried it out; `None`: that is not known.
    fn done_by(&self) -> Option<u64> {
        match self.result {
            Ordered::Unknown => self.answered.map(|answered| answered + LATE_COPY),
            _ => self.answered,
        }
    }
}

impl Ledger {
    /// Returns whether an order may have freed the lock of a call.
    pub(super) fn may_be_freed(&self, call: usize) -> bool {
        let mut orders = self.orders.iter();
        orders.any(|order| order.result != Ordered::Changed && self.is_about(order, call))
    }

    /// Returns whether an order may have freed the lock of a call before `time`, of which its owner may not have heard by then.
    pub(super) fn may_not_have_heard(&self, plan: &Plan, call: usize, time: u64) -> bool {
        self.orders.iter().any(|order| {
            order.result != Ordered::Changed
                && order.sent <= time
                && self.is_about(order, call)
                && self.hears_by(plan, order, call).is_none_or(|by| time <= by)
        })
    }

    /// Returns whether two owners believed at once because one of them had not heard of an order.
    pub(super) fn is_about_a_freed_one(&self, plan: &Plan, one: &Claim, other: &Claim) -> bool {
        let both_until = one.until.min(other.until);
        let mut calls = [one.call, other.call].into_iter();
        calls.any(|call| self.may_not_have_heard(plan, call, both_until))
    }

    /// Returns whether an order had freed the lock of a claim before its owner believed in it.
    pub(super) fn was_freed_before(&self, claim: &Claim) -> bool {
        self.orders.iter().any(|order| {
            order.result != Ordered::Changed
                && order.sent <= claim.from
                && self.is_about(order, claim.call)
        })
    }

    /// Returns whether the holder that was seen may be the owner of a call.
    pub(super) fn is_about(&self, order: &Order, call: usize) -> bool {
        let it = &self.calls[call];
        it.keys.contains(&order.key)
            && match (order.token, it.token) {
                // A lease of several has a lower token of its own until all are collected.
                (Some(seen), Some(token)) if it.keys.len() > 1 => seen <= token + PASSES,
                (Some(seen), Some(token)) => (seen..=seen + PASSES).contains(&token),
                (Some(_), None) => true,
                // A task that asks later may take the lease over from the holder's, until their process hears of the order.
                (None, _) => order.done_by().is_none_or(|done| it.asked <= done),
            }
    }

    /// The time by which the holder has heard of an order; `None`: that is not known.
    pub(super) fn hears_by(&self, plan: &Plan, order: &Order, call: usize) -> Option<u64> {
        let soon = order.done_by()? + promptly(plan);
        // It runs or not, but its connections stay.
        let is_quiet = is_quiet(plan, order.looked, soon, Fault::is_a_stop);
        // A manager may own a lock before it listens.
        if order.looked < START || !is_quiet {
            // Its messages may be lost. Then no renewal succeeds, and by the end of its ttl it knows.
            let ttl = self.calls[call].ttl;
            return Some(soon + ttl + ttl / 100 + SECOND);
        }
        let stopped = plan
            .faults
            .iter()
            .filter(|it| it.fault.is_a_stop() && it.at <= soon);
        let stopped = stopped.map(|it| it.end() + HELD_BACK + promptly(plan));
        Some(stopped.max().map_or(soon, |end| end.max(soon)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::order_tests::orders;
    use super::super::tests::{calm, owns, rules};
    use super::super::{Answer, Owning};
    use super::*;

    #[test]
    fn an_order_that_was_given_up_may_free_a_lock_that_is_asked_for_later() {
        let rule = "a lock is freed by no order";
        for (result, broken) in [(Ordered::Unknown, vec![]), (Ordered::Told, vec![rule])] {
            let mut ledger = Ledger::default();
            owns(&mut ledger, Owning::Alone, 7, 2, 7);
            ledger.calls[0].asked = 6 * SECOND;
            ledger.calls[0].token = Some(7);
            ledger.calls[0].answer =
                Answer::NotReleased("Lost: an operator freed the lock".to_owned());
            orders(&mut ledger, 7, result);
            ledger.orders[0].token = None;
            ledger.check_orders(&calm());
            assert_eq!(rules(&ledger), broken);
        }
    }
}
