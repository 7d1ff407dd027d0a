//! A call that deletes a record says what it found, and touches no lock.

use lock_core::middleware::Forgotten;

use super::Ledger;
use super::kept::Forget;
use crate::plan::Plan;
use crate::world::Fault;

impl Ledger {
    pub fn check_forgets(&mut self, plan: &Plan) {
        for (number, forget) in self.kept.forgets.clone().into_iter().enumerate() {
            if forget.ended.is_none() && !plan.ends_early(forget.process) {
                let text = format!("{forget:?}");
                self.violates("a forget is never answered", text);
            }
            if !plan.loses_data() && !plan.has(Fault::loses_data) {
                self.check_beside_owners(&forget);
                self.check_found(plan, number, &forget);
            }
        }
    }

    /// Checks that a key which an owner has all the time is reported as held.
    fn check_beside_owners(&mut self, forget: &Forget) {
        let (Some(answer), Some(ended)) = (forget.answer, forget.ended) else {
            return;
        };
        let owner = self.claims.iter().find(|claim| {
            claim.key == forget.key && claim.from <= forget.begun && ended <= claim.until
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
