//! One owner, and tokens that rise.

use super::{Claim, Ledger, Owning};
use crate::plan::Plan;
use crate::world::Fault;

impl Ledger {
    /// Checks that spans of owners do not overlap, and that a later owner has a higher token.
    pub fn check_owners(&mut self, plan: &Plan) {
        let mut claims = self.claims.clone();
        claims.sort_by_key(|claim| (claim.key, claim.from, claim.until));
        for of_a_key in claims.chunk_by(|one, other| one.key == other.key) {
            if !plan.loses_data() {
                self.check_overlaps(of_a_key);
            }
            if !may_repeat_tokens(plan) {
                self.check_tokens(of_a_key);
            }
        }
    }

    fn check_overlaps(&mut self, claims: &[Claim]) {
        for (at, later) in claims.iter().enumerate() {
            let beside = claims[..at].iter().filter(|it| it.until >= later.from);
            let beside: Vec<&Claim> = beside.collect();
            let is_one_too_many = match later.owning {
                Owning::Alone => !beside.is_empty(),
                Owning::Share(limit) => {
                    beside.len() as u64 >= u64::from(limit)
                        || beside.iter().any(|it| it.owning == Owning::Alone)
                }
            };
            if is_one_too_many {
                let older: Vec<String> = beside.iter().map(|it| self.show_claim(it)).collect();
                let text = format!("\n  {}\n  {}", older.join("\n  "), self.show_claim(later));
                self.violates("too many owners at once", text);
            }
        }
    }

    fn check_tokens(&mut self, claims: &[Claim]) {
        for (at, later) in claims.iter().enumerate() {
            let older = claims[..at].iter().rev().find(|it| {
                let both_share = it.owning != Owning::Alone && later.owning != Owning::Alone;
                it.until < later.from && it.token >= later.token && !both_share
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

    fn show_claim(&self, claim: &Claim) -> String {
        let ms = |time: u64| time as f64 / 1e6;
        let (from, until) = (ms(claim.from), ms(claim.until));
        let call = self.show(claim.call);
        format!(
            "{:?} from {from:.3} to {until:.3}, token {}: {call}",
            claim.owning, claim.token
        )
    }
}

/// A token may repeat an earlier one if data is lost, or if the clock steps back and the mark is not written, because the
/// owner that should write it does not release.
fn may_repeat_tokens(plan: &Plan) -> bool {
    let steps = plan.has(|fault| fault.clock_step().is_some());
    let keeps_the_mark = |fault: &Fault| {
        matches!(
            fault,
            Fault::Kill { .. } | Fault::Refuse { .. } | Fault::Deny { .. } | Fault::Stop { .. }
        )
    };
    plan.loses_data() || steps && (plan.stops_inside || plan.has(keeps_the_mark))
}
