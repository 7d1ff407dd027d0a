//! Owners of other libraries, who set the same keys.

use super::Ledger;
use crate::plan::Plan;

/// The span in which a client of another library had a key, by the servers.
#[derive(Clone, Debug)]
pub struct Foreign {
    pub key: usize,
    pub from: u64,
    pub until: u64,
}

impl Ledger {
    /// Checks that no owner of the kit has a key beside a foreign one.
    pub fn check_foreign(&mut self, plan: &Plan) {
        if plan.loses_data() || plan.has(|fault| fault.loses_data()) {
            return;
        }
        for foreign in self.foreign.clone() {
            let beside = self.claims.iter().find(|claim| {
                claim.key == foreign.key
                    && claim.from <= foreign.until
                    && foreign.from <= claim.until
            });
            if let Some(claim) = beside {
                let text = format!("{foreign:?}, {claim:?}: {}", self.show(claim.call));
                self.violates("an owner beside one of another library", text);
            }
        }
    }

    /// Notes that a foreign client has waited from `asked` to `now` for a key that is left free for it at times.
    pub fn starves(&mut self, key: usize, asked: u64, now: u64) {
        let others = self.foreign.iter();
        let is_others = others.filter(|it| it.key == key).any(|it| it.until > asked);
        if !is_others {
            let text = format!("k{key} from {asked} to {now}");
            self.violates("a client of another library gets no gap", text);
        }
    }
}
