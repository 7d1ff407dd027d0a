//! An operator looks at one key, or at all that fit a pattern.

use lock_core::Error;
use lock_core::operator::{Holder, Inspection};

use super::operate::OPERATOR;
use super::{Worker, name};
use crate::ledger::{List, Seen, SeenHolder, ledger};
use crate::world::sim;

/// Patterns of the keys, with the keys that fit none of them.
const PATTERNS: [&str; 5] = ["*", "k*", "k1", "*0", "k?"];

impl Worker {
    /// Returns the holders of a key.
    pub(super) async fn inspect(&mut self, key: usize) -> Option<Vec<Holder>> {
        let operator = self.locks.operator(OPERATOR);
        let asked = sim().now();
        match operator.inspect(name(key)).await {
            Ok(inspection) => {
                sees(key, asked, &inspection);
                Some(inspection.holders().to_vec())
            }
            Err(error) => {
                self.is_refused(&error);
                None
            }
        }
    }

    pub(super) async fn list(&mut self) {
        let operator = self.locks.operator(OPERATOR);
        let pattern = self.rng.pick(&PATTERNS);
        let mut pages = operator.list(pattern);
        let mut list = List {
            pattern,
            begun: sim().now(),
            ended: None,
            keys: Vec::new(),
        };
        loop {
            let asked = sim().now();
            match pages.next_page().await {
                Ok(Some(page)) => {
                    for inspection in page {
                        list.keys.push(inspection.key().to_owned());
                        let key = (0..self.plan.keys).find(|it| name(*it) == inspection.key());
                        if let Some(key) = key {
                            sees(key, asked, &inspection);
                        }
                    }
                }
                Ok(None) => {
                    list.ended = Some(sim().now());
                    break;
                }
                Err(error) => {
                    self.is_refused(&error);
                    break;
                }
            }
        }
        ledger(|it| it.lists.push(list));
    }

    /// Notes that an operator was refused.
    pub(super) fn is_refused(&self, error: &Error) {
        if !self.plan.ends_early(self.process) {
            let text = format!("p{} t{}: {error}", self.process, self.task);
            ledger(|it| it.operator_errors.push((sim().now(), text)));
        }
    }
}

/// Notes what an operator has seen.
fn sees(key: usize, asked: u64, inspection: &Inspection) {
    let holders = inspection.holders().iter().map(|holder| SeenHolder {
        process: holder.process(),
        token: holder.fencing_token().map(u64::from),
    });
    let seen = Seen {
        key,
        asked,
        answered: sim().now(),
        state: inspection.state(),
        holders: holders.collect(),
    };
    ledger(|it| it.inspections.push(seen));
}
