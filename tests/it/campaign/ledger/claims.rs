//! Checks the owners of a key.
//!
//! There is one owner at a time, tokens rise, and no lock is lost without a cause.

use super::{Account, MILLI, RECOVERY, SLACK, Span};
use crate::campaign::calls::{Call, Claim};
use crate::campaign::fault::{Fault, Scope};
use crate::campaign::plan::Topology;

impl Account {
    /// Returns the claims on a key, in the order of their beginnings.
    fn claims(&self, key: usize) -> Vec<(&Call, Claim)> {
        let calls = self.calls.iter().filter(|call| call.key == key);
        let mut claims: Vec<_> = calls.filter_map(|call| Some((call, call.claim?))).collect();
        claims.sort_by_key(|(_, claim)| claim.from);
        claims
    }

    /// Finds two claims on a key at the same time.
    ///
    /// Where a fault may have made two owners, the later one must have the higher token, and the older one must be
    /// told in time.
    pub(super) fn two_at_once(&self, key: usize) -> Vec<String> {
        let mut wrong = Vec::new();
        let claims = self.claims(key);
        for (index, (later, claim)) in claims.iter().enumerate() {
            for (older, before) in &claims[..index] {
                if before.until < claim.from {
                    continue;
                }
                let both = format!("{}\n    {}", self.show(older), self.show(later));
                if !self.plan.loses_locks {
                    wrong.push(format!("two owners at once:\n    {both}"));
                } else if claim.fence <= before.fence && !self.is_undercut(older, later, *claim) {
                    wrong.push(format!(
                        "two owners, and the newer one has no higher token:\n    {both}"
                    ));
                } else if before.until > claim.from + self.until_told(older, claim.from) {
                    let both_for = self.lasting(claim.from, before.until);
                    wrong.push(format!(
                        "two owners, and the older one is told too late ({both_for}):\n    {both}"
                    ));
                }
            }
        }
        wrong
    }

    /// Returns the time within which an owner must learn that it lost its lock at `time`.
    ///
    /// That is a third of its ttl, or its whole ttl if its renewals are not answered.
    fn until_told(&self, owner: &Call, time: u64) -> u64 {
        let third = (owner.ttl / 3).min(10_000 * MILLI) + SLACK;
        if self.is_disturbed(owner.who.worker, time, time + third) {
            owner.ttl + SLACK
        } else {
            third
        }
    }

    pub(super) fn tokens_that_fall(&self, key: usize) -> Vec<String> {
        let claims = self.claims(key);
        let pairs = claims.windows(2).filter(|pair| {
            pair[1].1.fence <= pair[0].1.fence && !self.is_undercut(pair[0].0, pair[1].0, pair[1].1)
        });
        let told = pairs.map(|pair| {
            let both = format!("{}\n    {}", self.show(pair[0].0), self.show(pair[1].0));
            format!("a token does not rise:\n    {both}")
        });
        told.collect()
    }

    /// Returns whether `later` may have a lower token, because of a clock that stepped back, or because it was granted
    /// first and its owner heard of that after a fault that freed the key.
    ///
    /// A lock that ran out leaves no high-water mark, and a loss of data loses the mark. A server may also refuse
    /// the mark of a release although it deletes the key: it is full, or its user lacks a right.
    fn is_undercut(&self, older: &Call, newer: &Call, later: Claim) -> bool {
        let heard_late = self
            .spans
            .iter()
            .any(|it| it.fault.loses_locks() && newer.asked <= it.from && it.from <= later.from);
        if heard_late {
            return true;
        }
        let before = |which: fn(&Fault) -> bool| {
            let mut spans = self.spans.iter();
            spans.any(|it| which(&it.fault) && it.from <= later.from)
        };
        let without_a_mark = self.may_run_out(older)
            || before(|it| {
                matches!(
                    it,
                    Fault::Flush { .. }
                        | Fault::Restart { .. }
                        | Fault::Full { .. }
                        | Fault::NoRight { .. }
                )
            });
        before(|it| matches!(it, Fault::ClockBack { .. })) && without_a_mark
    }

    /// Returns whether a lock at a bare majority of independent servers may have been lost by the fault of one of them.
    ///
    /// The first renewal, after a third of the ttl, proposes the lease to the servers that other clients had taken.
    fn was_barely_held(&self, call: &Call, end: u64) -> bool {
        let renewed = |claim: &Claim| claim.from + (call.ttl / 3).min(10_000 * MILLI) + SLACK;
        let early = call.claim.is_some_and(|claim| end <= renewed(&claim));
        let at_a_node = |span: &Span| {
            let at = matches!(span.fault.scope(), Scope::Node(_) | Scope::Link(..));
            at && span.from <= end && call.asked <= span.until + RECOVERY
        };
        self.plan.topology == Topology::Redlock && early && self.spans.iter().any(at_a_node)
    }

    /// Finds locks that were lost, and releases that failed, although no fault disturbed their owners.
    pub(super) fn losses(&self) -> Vec<String> {
        if self.plan.loses_locks {
            return Vec::new();
        }
        let mut wrong = Vec::new();
        for call in &self.calls {
            let failed = call.release_failed.as_ref().map(|_| call.last);
            let Some(end) = call.lost.or(failed) else {
                continue;
            };
            let from = call.asked.max(end.saturating_sub(call.ttl + SLACK));
            if !self.is_disturbed(call.who.worker, from, end) && !self.was_barely_held(call, end) {
                let why = call.release_failed.as_deref().unwrap_or("lost");
                wrong.push(format!(
                    "lost, or not released, without a fault ({why}):\n    {}",
                    self.show(call)
                ));
            }
        }
        wrong
    }
}
