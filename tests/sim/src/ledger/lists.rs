//! A list has each lock that is held for as long as it takes, and none twice.

use super::undisturbed::is_quiet;
use super::{Claim, Ledger};
use crate::plan::{Plan, Topology, key_name};
use crate::world::Fault;

/// An operator's list of the locks that fit a pattern.
#[derive(Clone, Debug)]
pub struct List {
    pub pattern: &'static str,
    pub begun: u64,
    /// When its last page came; `None`: it was not asked for to the end.
    pub ended: Option<u64>,
    pub keys: Vec<String>,
}

impl Ledger {
    pub fn check_lists(&mut self, plan: &Plan) {
        // A key whose inspection is refused for good is left out, and so is one that a node of a quorum has lost.
        let lacks = plan.has(|fault| fault.loses_data() || matches!(fault, Fault::Deny { .. }));
        for list in self.lists.clone() {
            let mut keys = list.keys.clone();
            keys.sort_unstable();
            keys.dedup();
            if keys.len() < list.keys.len() {
                self.violates("a list names a lock twice", format!("{list:?}"));
            }
            let strange = list.keys.iter().any(|key| !fits(list.pattern, key));
            if strange {
                self.violates(
                    "a list names a lock of another pattern",
                    format!("{list:?}"),
                );
            }
            let Some(ended) = list.ended.filter(|_| !lacks) else {
                continue;
            };
            if plan.topology == Topology::Redlock && !is_quiet(plan, list.begun, ended, |_| false) {
                continue;
            }
            let lacking = |claim: &&Claim| {
                let key = key_name(claim.key);
                claim.from <= list.begun
                    && ended <= claim.until
                    && fits(list.pattern, &key)
                    && !list.keys.contains(&key)
                    && !self.was_ordered_by(claim, ended)
            };
            if let Some(claim) = self.claims.iter().find(lacking) {
                let text = format!("{list:?}: {}", self.show_claim(claim));
                self.violates("a list lacks a lock", text);
            }
        }
    }

    fn was_ordered_by(&self, claim: &Claim, time: u64) -> bool {
        let mut orders = self.orders.iter();
        orders.any(|order| order.sent <= time && self.is_about(order, claim.call))
    }
}

/// Returns whether a key fits a pattern of the work, which has one `*` at most.
fn fits(pattern: &str, key: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == key,
        Some((first, last)) => {
            key.len() >= first.len() + last.len() && key.starts_with(first) && key.ends_with(last)
        }
    }
}
