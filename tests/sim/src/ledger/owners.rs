//! One owner, and tokens that rise.

use super::{Answer, Claim, Ledger, Owning, limits};
use crate::plan::{Plan, Topology};
use crate::world::{Fault, State};

impl Ledger {
    /// Checks that spans of owners do not overlap, and that a later owner has a higher token.
    pub fn check_owners(&mut self, plan: &Plan, state: &State) {
        // Nor does a ticket write the mark that is not picked up.
        let steps = plan.has(|fault| fault.clock_step().is_some());
        let passes_on = !self.tickets.is_empty();
        let mut claims = self.claims.clone();
        claims.sort_by_key(|claim| (claim.key, claim.from, claim.until));
        for of_a_key in claims.chunk_by(|one, other| one.key == other.key) {
            if !plan.loses_data() {
                self.check_overlaps(plan, state, of_a_key);
            }
            let may_forget = may_forget_tokens(plan) || steps && passes_on;
            if !plan.loses_data() && !may_forget {
                self.check_tokens(plan, of_a_key);
            }
        }
    }

    fn check_overlaps(&mut self, plan: &Plan, state: &State, claims: &[Claim]) {
        for (at, later) in claims.iter().enumerate() {
            // One step of a task may end the lock of a body and begin the next one.
            let meets = |it: &Claim| match plan.has_jobs() {
                true => it.until > later.from,
                false => it.until >= later.from,
            };
            let beside = claims[..at]
                .iter()
                .filter(|it| meets(it) && !self.is_forgotten(plan, state, it, later))
                .filter(|it| !self.is_about_a_freed_one(plan, it, later));
            let beside: Vec<&Claim> = beside.collect();
            let excludes = |it: &&Claim| it.owning.excludes(later.owning);
            let asked = self.calls[later.call].asked;
            let before = beside.iter().filter(|it| it.from < asked).count();
            let together = beside.iter().copied().chain([later]);
            let limits: Vec<u32> = together.map(|it| it.owning.limit()).collect();
            if beside.iter().any(excludes)
                || limits::is_exceeded(later.owning, before)
                || limits::are_exceeded(limits)
            {
                let older: Vec<String> = beside.iter().map(|it| self.show_claim(it)).collect();
                let text = format!("\n  {}\n  {}", older.join("\n  "), self.show_claim(later));
                self.violates("too many owners at once", text);
            }
        }
    }

    fn check_tokens(&mut self, plan: &Plan, claims: &[Claim]) {
        let may_repeat = may_repeat_tokens(plan);
        let steps = plan.faults.iter();
        let steps = steps.filter(|it| it.fault.clock_step().is_some());
        let steps: Vec<u64> = steps.map(|step| step.at).collect();
        let has_step = |from, to| may_repeat && steps.iter().any(|at| (from..=to).contains(at));
        for (at, later) in claims.iter().enumerate() {
            let older = claims[..at].iter().rev().find(|it| {
                let both_share = it.owning != Owning::Alone && later.owning != Owning::Alone;
                let goes_on =
                    self.calls[later.call].goes_on == Some(it.call) || self.goes_on_with(it, later);
                let may_be_equal = both_share || goes_on && it.token == later.token;
                self.is_earlier(plan, it, later)
                    && it.token >= later.token
                    && !may_be_equal
                    && !self.was_freed_before(later)
                    && !self.has_no_note(plan, it)
                    && !has_step(self.calls[it.call].asked, later.from)
            });
            if let Some(older) = older {
                let text = format!(
                    "\n  {}\n  {}",
                    self.show_claim(older),
                    self.show_claim(later)
                );
                self.violates("a token does not rise", text);
            }
        }
    }

    /// Returns whether the lease of an owner ran out, and its slot may have moved to a node whose clock is behind.
    fn has_no_note(&self, plan: &Plan, claim: &Claim) -> bool {
        let ran_out = matches!(self.calls[claim.call].answer, Answer::RanOut | Answer::Lost);
        let steps = plan.has(|fault| fault.clock_step().is_some());
        ran_out && (steps || !plan.clocks.is_empty()) && plan.has(Fault::moves_keys)
    }

    /// Returns whether one owner was granted the key before another one.
    fn is_earlier(&self, plan: &Plan, it: &Claim, later: &Claim) -> bool {
        if plan.may_forget() {
            // Two masters may grant a key for a while, in another order than their answers arrive.
            return self.calls[it.call].answered < Some(self.calls[later.call].asked);
        }
        it.until < later.from
    }

    pub(super) fn show_claim(&self, claim: &Claim) -> String {
        let ms = |time: u64| time as f64 / 1e6;
        let (from, until) = (ms(claim.from), ms(claim.until));
        let call = self.show(claim.call);
        format!(
            "{:?} from {from:.3} to {until:.3}, token {}: {call}",
            claim.owning, claim.token
        )
    }
}

/// Returns whether a token may repeat an earlier one: a server's clock steps back, and an earlier owner did not release its
/// lock. Only a release writes the mark.
fn may_repeat_tokens(plan: &Plan) -> bool {
    let steps = plan.has(|fault| fault.clock_step().is_some());
    let keeps_the_mark = |fault: &Fault| {
        matches!(
            fault,
            Fault::Kill { .. } | Fault::Refuse { .. } | Fault::Deny { .. } | Fault::Stop { .. }
        )
    };
    steps && (plan.stops_inside || plan.has(keeps_the_mark))
}

/// Returns whether a new master may lack the mark while its clock is behind.
fn may_forget_tokens(plan: &Plan) -> bool {
    let steps = plan.has(|fault| fault.clock_step().is_some());
    let differ = plan.clocks.iter().any(|clock| *clock != 0);
    if plan.topology == Topology::Cluster {
        // A slot may move to a node whose clock is behind.
        let moves_back = differ && plan.has(Fault::moves_keys);
        let is_calm = !plan.stops_inside && !plan.has(|fault| !fault.is_hidden());
        return moves_back && !is_calm || may_repeat_tokens(plan);
    }
    plan.has(|fault| matches!(fault, Fault::Promote { .. })) && (steps || differ)
}
