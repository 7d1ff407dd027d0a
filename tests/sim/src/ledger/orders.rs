//! An order frees the holder that was seen and no other, and no later fencing token is below those of that holder.

use super::undisturbed::{START, is_quiet, may_stop_before};
use super::{Answer, Claim, Ledger};
use crate::plan::{Plan, Topology};
use crate::server::Data;
use crate::world::{Fault, State};

/// A lock passes from task to task of its process so often at most, each time with the next fencing token.
pub(super) const PASSES: u64 = 1_000;
/// The text of a loss by an order.
const BY_AN_OPERATOR: &str = "an operator freed the lock";

/// An operator's order to free a key from a holder.
#[derive(Clone, Debug)]
pub struct Order {
    pub process: usize,
    pub key: usize,
    /// The fencing token that the holder has named.
    pub token: Option<u64>,
    /// When the inspection that saw the holder began.
    pub looked: u64,
    pub sent: u64,
    pub answered: Option<u64>,
    pub result: Ordered,
    /// The mark and the clock of the server when the order was sent.
    pub(super) noted: u64,
    pub(super) clock: u64,
}

/// What became of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// It was dropped, or had no answer. It may be done.
    Unknown,
    Freed,
    Told,
    Changed,
}

impl Ordered {
    pub(super) fn is_done(self) -> bool {
        matches!(self, Self::Freed | Self::Told)
    }
}

impl Ledger {
    /// Notes an order that is sent now. Returns its number.
    pub fn orders(
        &mut self,
        state: &State,
        process: usize,
        key: usize,
        token: Option<u64>,
        looked: u64,
    ) -> usize {
        self.orders.push(Order {
            process,
            key,
            token,
            looked,
            sent: state.now,
            answered: None,
            result: Ordered::Unknown,
            noted: mark(state).unwrap_or(0),
            clock: state.server_time(0) as u64,
        });
        self.orders.len() - 1
    }

    /// Notes the answer to an order, and checks that the server has noted a higher token than any that the holder may use.
    pub fn is_ordered(&mut self, plan: &Plan, state: &State, order: usize, result: Ordered) {
        self.orders[order].answered = Some(state.now);
        self.orders[order].result = result;
        // PostgreSQL has no mark: the next write has a higher number.
        let has_no_mark = matches!(plan.topology, Topology::Redlock | Topology::Postgres);
        if !result.is_done() || plan.loses_data() || has_no_mark {
            return;
        }
        let it = &self.orders[order];
        // The holder's token may be the time of a moment ago.
        let clock = match plan.clock_steps() {
            0 => it.clock,
            _ => 0,
        };
        let noted = match plan.has(|fault| matches!(fault, Fault::SpoilMark { .. })) {
            true => 0,
            false => it.noted,
        };
        let used = it.token.unwrap_or(0).max(noted).max(clock);
        let mark = mark(state);
        if mark.is_none_or(|mark| mark < used + PASSES) {
            let text = format!("{mark:?} is noted: {it:?}");
            self.violates("an order notes no higher token", text);
        }
    }

    pub fn check_orders(&mut self, plan: &Plan) {
        for number in 0..self.orders.len() {
            let order = self.orders[number].clone();
            let told = order.answered.filter(|_| order.result.is_done());
            if order.answered.is_none() && !plan.ends_early(order.process) {
                self.violates("an order is never answered", format!("{order:?}"));
            }
            let Some(answered) = told else { continue };
            self.check_belief(plan, &order);
            if !plan.loses_data() {
                self.check_next_tokens(&order, answered);
            }
            // The holder has answered a question, so its process listens.
            if order.result == Ordered::Freed
                && order.token.is_some()
                && order.looked > START
                && is_quiet(plan, order.looked, answered, |_| false)
                && !self.ends_around(plan, &order)
            {
                self.violates(
                    "an order does not tell a living holder",
                    format!("{order:?}"),
                );
            }
        }
        self.check_losses_by_orders(plan);
    }

    /// Checks that the holder that was freed stops to believe in time.
    fn check_belief(&mut self, plan: &Plan, order: &Order) {
        let its = |claim: &&Claim| {
            // The lease of one of several keys has a lower token. An owner that was there during the look was seen.
            let has_several = self.calls[claim.call].keys.len() > 1
                && claim.from <= order.looked
                && self.is_about(order, claim.call);
            claim.key == order.key && (Some(claim.token) == order.token || has_several)
        };
        let late = self.claims.iter().filter(its).find(|claim| {
            let until = self.hears_by(plan, order, claim.call);
            claim.from < order.sent && until.is_some_and(|until| claim.until > until)
        });
        if let Some(claim) = late {
            let text = format!("\n  {order:?}\n  {}", self.show_claim(claim));
            self.violates("an owner believes in spite of an order", text);
        }
    }

    /// Checks that each later owner has a higher token than the holder that was freed, which may still use its own.
    fn check_next_tokens(&mut self, order: &Order, answered: u64) {
        let of_the_key = || self.claims.iter().filter(|claim| claim.key == order.key);
        let highest = of_the_key()
            .filter(|claim| order.token.is_some() && self.calls[claim.call].keys.len() == 1)
            .filter(|claim| self.is_about(order, claim.call))
            .max_by_key(|claim| claim.token);
        let Some(highest) = highest else { return };
        let lower = of_the_key().find(|claim| {
            claim.from > answered
                && claim.token <= highest.token
                && !self.is_about(order, claim.call)
                && !self.was_freed_before(claim)
        });
        if let Some(lower) = lower {
            let (highest, lower) = (self.show_claim(highest), self.show_claim(lower));
            let text = format!("{order:?}\n  {highest}\n  {lower}");
            self.violates("a token is not above that of a freed holder", text);
        }
    }

    /// Checks that each loss by an order has an order that may be about it.
    fn check_losses_by_orders(&mut self, plan: &Plan) {
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            let by_an_operator = matches!(
                &call.answer,
                Answer::NotReleased(text) | Answer::Refused(text) if text.contains(BY_AN_OPERATOR)
            );
            if by_an_operator && !self.may_be_freed(number) {
                let text = format!("{}, {:?}", self.show(number), self.orders);
                self.violates("a lock is freed by no order", text);
            }
            self.check_loss_at_once(number, plan);
        }
    }

    /// Checks that a lock that is granted is not lost at once, but by an order.
    fn check_loss_at_once(&mut self, number: usize, plan: &Plan) {
        let call = &self.calls[number];
        let (Some(_), Some(answered)) = (call.token, call.answered) else {
            return;
        };
        let is_lost = matches!(call.answer, Answer::Lost | Answer::NotReleased(_));
        let at_once = is_lost && call.keys.len() == 1 && call.left.is_none_or(|it| it == answered);
        let claimed = self.claims.iter().any(|claim| claim.call == number);
        if at_once
            && !claimed
            && !self.may_not_have_heard(plan, number, answered)
            && !may_stop_before(plan, answered)
        {
            self.violates("a lock is lost as soon as it is granted", self.show(number));
        }
    }

    fn ends_around(&self, plan: &Plan, order: &Order) -> bool {
        let mut holders = self.calls.iter().filter(|call| call.token == order.token);
        holders.any(|call| plan.ends_early(call.process))
    }
}

/// The mark of the fencing tokens.
fn mark(state: &State) -> Option<u64> {
    let mark = state.hosts[0].server.entry(b"lockkit:!f")?;
    match &mark.data {
        Data::Text(text) => str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}
