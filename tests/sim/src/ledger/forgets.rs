//! A call that deletes a record says what it found, and touches no lock.

use lock_core::middleware::Forgotten;

use super::Ledger;
use super::kept::Forget;
use crate::plan::Plan;
use crate::postgres::OLDEST_SNAPSHOT;
use crate::world::Fault;

impl Ledger {
    pub fn check_forgets(&mut self, plan: &Plan) {
        for (number, forget) in self.kept.forgets.clone().into_iter().enumerate() {
            if forget.ended.is_none() && !plan.ends_early(forget.process) {
                self.violates("a forget is never answered", format!("{forget:?}"));
            }
            if !plan.loses_data() && !plan.has(Fault::loses_data) {
                self.check_beside_owners(plan, &forget);
                self.check_found(plan, number, &forget);
            }
        }
    }

    /// Checks that a key which an owner has all the time is reported as held. A snapshot may be older than the owner.
    fn check_beside_owners(&mut self, plan: &Plan, forget: &Forget) {
        let (Some(answer), Some(ended)) = (forget.answer, forget.ended) else {
            return;
        };
        let conflicts = |fault: &Fault| matches!(fault, Fault::Conflicts { .. }).then_some(0);
        let oldest = match plan.touches(forget.process, (forget.begun, ended), conflicts) {
            true => OLDEST_SNAPSHOT,
            false => 0,
        };
        let owner = self.claims.iter().find(|claim| {
            claim.key == forget.key && claim.from + oldest <= forget.begun && ended <= claim.until
        });
        if let Some(owner) = owner.filter(|_| answer != Forgotten::Held) {
            let text = format!("{forget:?}\n  {}", self.show_claim(owner));
            self.violates("a held key is not reported as held", text);
        }
    }

    /// Checks that a record which stood all the time was found. Where a connection may have broken, the request may have been
    /// sent twice, and the answer is that to the second one.
    fn check_found(&mut self, plan: &Plan, number: usize, forget: &Forget) {
        let (Some(answer), Some(ended)) = (forget.answer, forget.ended) else {
            return;
        };
        let span = (forget.begun, ended);
        if plan.touches(forget.process, span, Fault::disturbs) {
            return;
        }
        let of_the_key = self.kept.records.iter().filter(|it| it.key == forget.key);
        let mut stood = of_the_key.filter(|record| {
            let others = self.kept.forgets.iter().enumerate();
            let alone = others.filter(|(other, _)| *other != number).all(|(_, it)| {
                it.key != forget.key || it.ends() <= record.ended || it.begun >= ended
            });
            let heard = record.outcome.map_or(u64::MAX, |(_, heard)| heard);
            alone
                && record.is_confirmed(plan)
                && heard <= forget.begun
                && ended < record.stands_until()
        });
        if let Some(record) = stood.find(|_| answer != Forgotten::Yes) {
            let text = format!("{forget:?}\n  {}", self.show_record(record));
            self.violates("a record that stood is not found", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Owning;
    use super::super::tests::{asks, calm, rules, with};
    use super::*;
    use crate::world::{MILLI, SECOND};

    /// The rules that are broken where a call finds nothing, so many milliseconds behind the grant of the key.
    fn broken(plan: &Plan, behind: u64) -> Vec<&'static str> {
        let begun = SECOND + 500 * MILLI;
        let mut ledger = Ledger::default();
        let call = asks(&mut ledger, Owning::Alone, Some(0), 1, Some(1));
        ledger.claims(call, 1, begun - behind * MILLI);
        ledger.claims(call, 1, begun + 200 * MILLI);
        ledger.kept.forgets.push(Forget {
            process: 0,
            key: 0,
            begun,
            ended: Some(begun + 100 * MILLI),
            answer: Some(Forgotten::Nothing),
        });
        ledger.check_forgets(plan);
        rules(&ledger)
    }

    #[test]
    fn a_held_key_is_reported_as_held_unless_the_snapshot_is_older_than_its_owner() {
        let conflicts = with(Fault::Conflicts { server: 0 });
        let rule = "a held key is not reported as held";
        assert!(broken(&conflicts, 19).is_empty());
        assert_eq!(broken(&conflicts, 20), [rule]);
        assert_eq!(broken(&calm(), 19), [rule]);
    }
}
