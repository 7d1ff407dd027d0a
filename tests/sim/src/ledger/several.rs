//! Several keys are lost together, and no caller is refused by what its own process has ended.

use super::calm::late_copy_until;
use super::causes::is_slow;
use super::kept::Refused;
use super::{Answer, Ledger};
use crate::plan::{Plan, Topology, Verb, lock_name};
use crate::world::{Fault, Kind, MILLI, Planned, SECOND, State, Write};

/// The time in which a release or an undoing arrives in a history without faults.
const ARRIVES: u64 = SECOND;
/// The time for which a caller awaits a release that it gives up then, and a bit.
const GIVES_UP: u64 = 3 * MILLI + MILLI / 10;
/// The time in which an owner hears that a key is gone, beyond the ttl.
const HEARS: u64 = SECOND;

impl Ledger {
    pub fn check_several(&mut self, plan: &Plan, state: &State) {
        if state.overwritten && !plan.loses_data() {
            self.violates("a stranger's value is overwritten", "");
        }
        for refused in self.kept.refusals.clone() {
            if refused.record.is_none() && !refused.is_cooling_down {
                self.check_other_caller(plan, &refused);
            }
        }
        for planned in &plan.faults {
            self.check_loss_of_one(plan, state, planned);
        }
    }

    /// Checks that a lock which is granted is valid when its caller gets it, unless the process stood still meanwhile.
    pub fn check_first_look(&mut self, call: usize, is_valid: bool, stood_still: bool) {
        if !is_valid && !stood_still {
            let text = self.show(call);
            self.violates(
                "a lock of several keys was lost before it was granted",
                text,
            );
        }
    }

    /// Checks that another caller had to do with the key of a call that is told `Busy`.
    fn check_other_caller(&mut self, plan: &Plan, refused: &Refused) {
        let is_calm = plan.faults.is_empty() && !plan.stops_inside && !is_slow(plan);
        let unsure = plan.ends() > 0 || plan.loses_data() || plan.clock_steps() > 0;
        // The ledger does not know when a body's release is confirmed.
        let runs = plan.verbs.contains(&Verb::Cooldown);
        let call = &self.calls[refused.call];
        let is_busy = call.answer == Answer::Busy;
        if !is_busy || unsure || runs || plan.topology == Topology::Redlock {
            return;
        }
        let (asked, answered) = self.span_of(refused);
        // A question that was given up may arrive late, and then has the key when the call asks with another lease.
        let delays = |fault: &Fault| {
            let delays = matches!(
                fault,
                Fault::Slow { .. }
                    | Fault::Hold { .. }
                    | Fault::Freeze { .. }
                    | Fault::StopServer { .. }
                    | Fault::StopReplica { .. }
            );
            delays.then_some(SECOND)
        };
        if plan.touches(call.process, (asked, answered), delays) {
            return;
        }
        let mut others = (0..self.calls.len()).filter(|other| *other != refused.call);
        let is_caused = others.any(|other| {
            let it = &self.calls[other];
            let ends = self.ends_for(other, call.process, is_calm);
            // A task ends one call before it begins the next, maybe in the same moment.
            let is_of_task = (it.process, it.task) == (call.process, call.task);
            // A copy of its question that a fault has kept may take the key behind its end.
            let over = it.ended.or(it.left).or(it.answered).unwrap_or(u64::MAX);
            it.keys.contains(&refused.key)
                && it.asked <= answered
                && (ends > asked
                    || ends == asked && !is_of_task
                    || late_copy_until(plan, it, over) > asked)
        });
        if !is_caused {
            self.blames(
                refused,
                None,
                "busy though no other caller had to do with the key",
            );
        }
    }

    /// When a call has nothing more to do with its keys, as far as a process is concerned. In trouble, only a release
    /// that is confirmed shows that.
    fn ends_for(&self, number: usize, process: usize, is_calm: bool) -> u64 {
        let call = &self.calls[number];
        let keeps = self.kept.records.iter().any(|it| it.call == number)
            || self.kept.cooldowns.iter().any(|it| it.call == number);
        let Some(answered) = call.answered.filter(|_| !keeps) else {
            return u64::MAX;
        };
        let ended = match (&call.answer, call.left, call.released) {
            (Answer::Granted, Some(_), Some(released)) => released,
            _ if !is_calm => return u64::MAX,
            // While a caller awaits its release, the lock is not free for its process. It may have given that up since.
            (Answer::Granted, Some(left), None) => left + GIVES_UP,
            (Answer::Granted | Answer::Lost | Answer::RanOut | Answer::NotReleased(_), ..) => {
                return u64::MAX;
            }
            _ => answered,
        };
        match call.process == process {
            // The next caller of the process steps over a release that is on its way.
            true => ended,
            false => ended + ARRIVES,
        }
    }

    /// Checks that an owner of several keys stops soon when one of them is deleted.
    fn check_loss_of_one(&mut self, plan: &Plan, state: &State, planned: &Planned) {
        if plan.topology == Topology::Cluster {
            // Another node may have the keys.
            return;
        }
        let gone_at = |key: usize| match &planned.fault {
            Fault::Delete { key: name, .. } | Fault::Strike { key: name, .. } => {
                let is_it = *name == lock_name(key).into_bytes();
                is_it.then(|| deletion(state, planned, key)).flatten()
            }
            fault => {
                let is_lost = fault.loses_data() && plan.topology != Topology::Redlock;
                is_lost.then_some(planned.at)
            }
        };
        let owner = self.claims.iter().find(|claim| {
            let call = &self.calls[claim.call];
            let mut gone = call.keys.iter().filter_map(|key| gone_at(*key));
            let outlives =
                |at: u64| claim.from <= at && claim.until > at + call.ttl / 100 * 101 + HEARS;
            call.keys.len() > 1 && gone.any(outlives)
        });
        if let Some(owner) = owner {
            let text = format!("{planned:?}\n  {}", self.show_claim(owner));
            self.violates("an owner of several keys outlives one of them", text);
        }
    }
}

/// When the stranger of a fault has deleted the key of a lock; `None`: it has found none.
fn deletion(state: &State, planned: &Planned, key: usize) -> Option<u64> {
    let writes = &state.hosts[planned.fault.server()?].writes;
    let its = |write: &&Write| {
        write.key == key
            && write.is_strange
            && write.kind == Kind::Gone
            && (planned.at..=planned.end() + MILLI).contains(&write.at)
    };
    writes.iter().find(its).map(|write| write.at)
}

#[cfg(test)]
mod tests {
    use super::super::Owning;
    use super::super::tests::{asks, calls, calm, rules, with};
    use super::*;

    /// Refuses a call, and returns the rules that this breaks.
    fn broken(mut ledger: Ledger, plan: &Plan, call: usize) -> Vec<&'static str> {
        ledger.calls[call].answer = Answer::Busy;
        let refused = Refused {
            call,
            key: 0,
            record: None,
            is_cooling_down: false,
            retry_after: None,
        };
        ledger.check_other_caller(plan, &refused);
        rules(&ledger)
    }

    #[test]
    fn a_call_may_meet_the_release_that_its_process_awaits() {
        // The call is refused so long behind the end of the owner, which has given its release up.
        let refused = |behind: u64| {
            let mut ledger = Ledger::default();
            let owner = calls(&mut ledger, Owning::Alone, Some(0), 1, Some(2));
            (owner.answer, owner.left, owner.task) = (Answer::Granted, Some(3 * SECOND), 1);
            let call = asks(&mut ledger, Owning::Alone, Some(0), 3, Some(4));
            ledger.calls[call].asked = 3 * SECOND + behind;
            broken(ledger, &calm(), call)
        };
        let rule = "busy though no other caller had to do with the key";
        assert!(refused(3 * MILLI).is_empty());
        assert_eq!(refused(4 * MILLI), [rule]);
    }

    #[test]
    fn a_call_may_meet_a_copy_of_a_question_that_a_fault_has_kept() {
        // The fault keeps what a process sends from second 1 to second 2. The owner has asked again meanwhile, and has ended.
        let refused = |process: usize, at: u64| {
            let mut ledger = Ledger::default();
            let owner = calls(&mut ledger, Owning::Alone, Some(0), 1, Some(1));
            let over = Some(SECOND + 200 * MILLI);
            (owner.answer, owner.answered) = (Answer::Granted, Some(SECOND + 100 * MILLI));
            (owner.left, owner.ended, owner.released) = (over, over, over);
            let call = asks(&mut ledger, Owning::Alone, Some(0), at, Some(at));
            broken(ledger, &with(Fault::Late { process, server: 0 }), call)
        };
        let rule = "busy though no other caller had to do with the key";
        assert!(refused(0, 9).is_empty());
        assert_eq!(refused(0, 11), [rule]);
        assert_eq!(refused(1, 9), [rule]);
    }
}
