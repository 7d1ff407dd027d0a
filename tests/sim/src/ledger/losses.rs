//! An owner whose key is deleted notices it at its next renewal, and the kit leaves the values of strangers alone.

use super::Ledger;
use super::calm::Calm;
use crate::plan::{Plan, lock_name};
use crate::world::{Fault, SECOND, State};

/// A lease is renewed after a third of its ttl, and at least this often.
const RENEWED: u64 = 10 * SECOND;

impl Ledger {
    pub fn check_losses(&mut self, plan: &Plan) {
        let only_deletes = |fault: &Fault| matches!(fault, Fault::Delete { .. });
        if plan.stops_inside || !plan.topology.is_alone() || plan.has(|fault| !only_deletes(fault))
        {
            return;
        }
        let slack = Calm::of(plan).slack;
        for planned in &plan.faults {
            let Fault::Delete { key, .. } = &planned.fault else {
                continue;
            };
            for claim in self.claims.clone() {
                let ttl = self.calls[claim.call].ttl;
                let notices = planned.at + (ttl / 3 + ttl / 100).min(RENEWED) + slack;
                let is_its_key = *key == lock_name(claim.key).into_bytes();
                if is_its_key && claim.from < planned.at && claim.until > notices {
                    let at = planned.at as f64 / 1e6;
                    let until = claim.until as f64 / 1e6;
                    let call = self.show(claim.call);
                    let text = format!("deleted at {at:.3}, believed until {until:.3}: {call}");
                    self.violates("a loss is not noticed", text);
                }
            }
        }
    }

    pub fn check_strangers(&mut self, plan: &Plan, state: &State) {
        if state.robbed && !plan.has(Fault::loses_data) {
            self.violates("a stranger's value is deleted or replaced", "");
        }
    }
}
