//! Checks that `Busy` is a fact, and that every other refusal has a fault as its cause.

use super::{Account, MILLI, SLACK};
use crate::campaign::calls::{Answer, Call};
use crate::campaign::fault::Fault;

/// The longest time from a grant to its line in the owner's journal, on a busy machine.
const UNSAID: u64 = 100 * MILLI;

impl Account {
    pub(super) fn refusals(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (index, call) in self.calls.iter().enumerate() {
            let Some(answered) = call.answered else {
                continue;
            };
            match &call.answer {
                Answer::Busy if !self.was_taken(index, call, answered) => {
                    wrong.push(format!(
                        "busy, though the key was free all the time:\n    {}",
                        self.show(call)
                    ));
                }
                Answer::Refused(why) => {
                    let from = call.asked.max(answered.saturating_sub(3 * SLACK));
                    let possible =
                        why.starts_with("Unavailable") || why.starts_with("Misconfigured");
                    // Replicas have 125 ms to acknowledge, and a busy machine may need longer.
                    let hurried = why.contains("`replica_acks`");
                    let disturbed = hurried || self.is_disturbed(call.who.worker, from, answered);
                    if !possible || !disturbed {
                        wrong.push(format!("refused without a fault:\n    {}", self.show(call)));
                    }
                }
                _ => {}
            }
        }
        wrong
    }

    /// Returns whether a duplicate of an old acquire may have taken the key.
    ///
    /// No client knows of such a duplicate.
    fn may_be_a_copys(&self, call: &Call, answered: u64) -> bool {
        let ttl = if self.plan.short_ttls { 2_000 } else { 30_000 } * MILLI;
        let mut copies = self
            .spans
            .iter()
            .filter(|it| matches!(it.fault, Fault::Twice { .. }));
        // What a proxy held comes at its end, and is undone right behind, between two looks.
        let mut late = self
            .spans
            .iter()
            .filter(|it| matches!(it.fault, Fault::BlackHole { .. } | Fault::Late { .. }));
        copies.any(|it| it.from <= answered && call.asked <= it.until + ttl + SLACK)
            || late.any(|it| it.until <= answered && call.asked <= it.until + SLACK)
    }

    /// Returns whether another call may have had the key at some time of this call.
    fn was_taken(&self, index: usize, call: &Call, answered: u64) -> bool {
        if self.may_be_a_copys(call, answered) {
            return true;
        }
        let mut others = self
            .calls
            .iter()
            .enumerate()
            .filter(|(other, it)| *other != index && it.key == call.key);
        let until = |it: &Call| match it.released.is_some() && self.may_run_out(it) {
            true => it.runs_out_by(),
            false => it.may_be_taken_until(),
        };
        if !others.any(|(_, it)| it.asked <= answered && call.asked <= until(it)) {
            return false;
        }
        let mut owners = self
            .calls
            .iter()
            .filter(|it| it.key == call.key)
            .filter_map(|it| it.claim);
        // An owner had the key at the server before it could write its line.
        let owned = owners.any(|claim| {
            claim.from.saturating_sub(UNSAID) <= answered && call.asked <= claim.until
        });
        let looks = &self.looks[call.key];
        let mut during = looks
            .iter()
            .filter(|look| look.begun <= answered && call.asked <= look.ended);
        // A call that is shorter than the time between two looks may have met an owner that no
        // look has seen.
        owned || during.clone().count() < 3 || during.any(|look| look.taken != Some(false))
    }
}
