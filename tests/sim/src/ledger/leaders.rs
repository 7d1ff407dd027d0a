//! Candidates pause before they campaign again, and end for few reasons.

use lock_core::{Error, ErrorKind};

use super::Ledger;
use crate::plan::{Plan, Verb};
use crate::world::{Fault, MILLI, SECOND, sim};

/// The first pause before a new campaign, and the longest one.
const FIRST_PAUSE: u64 = 100 * MILLI;
const LONGEST_PAUSE: u64 = 10 * SECOND;
/// The time of a campaign for a free key.
const CAMPAIGN: u64 = 500 * MILLI;

/// One call of `Leader::run`.
#[derive(Clone, Debug)]
pub struct Candidacy {
    pub process: usize,
    pub key: usize,
    pub ttl: u64,
    pub from: u64,
    pub until: Option<u64>,
    /// The calls of its leaderships.
    pub terms: Vec<usize>,
}

impl Candidacy {
    pub fn begins(process: usize, key: usize, ttl: u64) -> Self {
        Self {
            process,
            key,
            ttl,
            from: sim().now(),
            until: None,
            terms: Vec::new(),
        }
    }
}

impl Ledger {
    /// Notes a candidacy. Returns its number.
    pub fn stands_for(&mut self, candidacy: Candidacy) -> usize {
        self.candidacies.push(candidacy);
        self.candidacies.len() - 1
    }

    /// Notes the end of a candidacy, and checks its error.
    pub fn candidacy_ends(&mut self, plan: &Plan, candidacy: usize, error: Option<&Error>) {
        self.candidacies[candidacy].until = Some(sim().now());
        let it = &self.candidacies[candidacy];
        let is_right = match error.map(Error::kind) {
            None => true,
            Some(ErrorKind::Unavailable) => plan.ends_early(it.process),
            Some(ErrorKind::Misconfigured) => plan.refuses(),
            // Other code has left a record in the key.
            Some(ErrorKind::Busy) => it.key < plan.keys,
            Some(_) => false,
        };
        if !is_right {
            self.violates("a candidacy ends by an error", format!("{error:?}: {it:?}"));
        }
    }

    pub fn check_leaders(&mut self, plan: &Plan) {
        // A process that is stopped between two readings of its clock may count a lost leadership as a long one.
        if plan.stops_inside {
            return;
        }
        for candidacy in self.candidacies.clone() {
            let mut losses = 0;
            for pair in candidacy.terms.windows(2) {
                let Some(end) = self.ends.get(&pair[0]).copied().filter(|end| end.is_lost) else {
                    break;
                };
                if end.held_for >= candidacy.ttl {
                    losses = 0;
                }
                losses += 1;
                let pause = (FIRST_PAUSE << (losses - 1).min(10)).min(LONGEST_PAUSE);
                let begun = self.calls[pair[1]].asked;
                let waited = plan.by_clock_of(candidacy.process, begun - end.at);
                if waited + 1_000 < pause {
                    let text = format!("after {waited} ns: {}", self.show(pair[1]));
                    self.violates("a candidate campaigns again too soon", text);
                }
                let is_free = self.is_free_for(plan, &candidacy, end.at, begun);
                if is_free && waited > pause + CAMPAIGN {
                    let text = format!("after {waited} ns: {}", self.show(pair[1]));
                    self.violates("a candidate pauses for too long", text);
                }
            }
        }
    }

    /// Returns whether nothing but its own pause kept a candidate from leading in this time.
    fn is_free_for(&self, plan: &Plan, it: &Candidacy, from: u64, until: u64) -> bool {
        let only_deletes = |fault: &Fault| !matches!(fault, Fault::Delete { .. });
        let others = self.claims.iter().filter(|claim| claim.key == it.key);
        let mut others = others.filter(|claim| !it.terms.contains(&claim.call));
        it.key == plan.own_key(Verb::Lead)
            && !plan.has(only_deletes)
            && others.all(|claim| claim.until < from || until < claim.from)
    }
}
