//! Tokens that rise.

use super::causes::PASSES;
use super::{Answer, Claim, Ledger, Owning};
use crate::plan::{Plan, Topology};
use crate::world::{EPOCH, Fault, Kind, MICRO, State};

impl Ledger {
    pub(super) fn check_tokens(&mut self, plan: &Plan, state: &State, claims: &[Claim]) {
        for (at, later) in claims.iter().enumerate() {
            let older = claims[..at].iter().rev().find(|it| {
                let both_share = it.owning != Owning::Alone && later.owning != Owning::Alone;
                let goes_on =
                    self.calls[later.call].goes_on == Some(it.call) || self.goes_on_with(it, later);
                let may_be_equal = both_share || goes_on && it.token == later.token;
                self.is_earlier(plan, state, it, later)
                    && it.token >= later.token
                    && !may_be_equal
                    && !self.was_freed_before(later)
                    && !self.has_no_note(plan, it, later.from)
                    && !self.believes_old_news(plan, state, later)
            });
            if let Some(older) = older {
                let text = format!(
                    "\n  {}\n  {}",
                    self.show_claim(older),
                    self.show_claim(later)
                );
                self.violates("a token does not rise", text);
            }
        }
    }

    /// Returns whether no server may have a note of a token at a time, and a clock may be behind it: one was set back since, or the
    /// slot has moved to another node.
    fn has_no_note(&self, plan: &Plan, claim: &Claim, time: u64) -> bool {
        let call = &self.calls[claim.call];
        let ran_out = self.ran_out(claim, time);
        let mut steps = plan.faults.iter();
        let steps_back =
            steps.any(|it| it.fault.clock_step().is_some() && (call.asked..=time).contains(&it.at));
        // Nor does the release of a lock that has run out write the mark.
        let is_unnoted = ran_out || call.answer.is_loss() || may_be_repeated(plan);
        let clocks_differ = plan.steps_clocks() || !plan.clocks.is_empty();
        is_unnoted && steps_back || ran_out && clocks_differ && plan.has(Fault::moves_keys)
    }

    /// Returns whether the lease of an owner ran out before a time, maybe with a later owner of its process to whom it was
    /// passed.
    fn ran_out(&self, claim: &Claim, time: u64) -> bool {
        let process = self.calls[claim.call].process;
        let passed = claim.token..=claim.token + PASSES;
        self.claims.iter().any(|it| {
            let call = &self.calls[it.call];
            it.key == claim.key
                && call.process == process
                && passed.contains(&it.token)
                && match call.answer {
                    Answer::RanOut | Answer::Lost => true,
                    // The release may have arrived when the lease was over.
                    Answer::NotReleased(_) | Answer::Granted if call.released.is_none() => {
                        call.left.is_some_and(|left| left + call.left_with <= time)
                    }
                    _ => false,
                }
        })
    }

    /// Returns whether one owner was granted the key before another one.
    fn is_earlier(&self, plan: &Plan, state: &State, it: &Claim, later: &Claim) -> bool {
        if plan.may_forget() {
            // Two masters may grant a key for a while, in another order than their answers arrive.
            let answered = self.calls[it.call].answered;
            return answered < Some(self.calls[later.call].asked)
                && !self.was_granted_before(state, later, answered);
        }
        it.until < later.from
    }

    /// Returns whether a server has set the key of a body at the time that its token says, before another call was answered,
    /// and has no other value since. The ledger hears of such an owner when the body begins, which may be late.
    fn was_granted_before(&self, state: &State, later: &Claim, answered: Option<u64>) -> bool {
        let call = &self.calls[later.call];
        let begins = call.asked;
        let micros = |at: u64| EPOCH as u64 + at / MICRO;
        call.answered == Some(begins)
            && state.hosts.iter().any(|host| {
                let writes = host.writes.iter().rev();
                let mut values = writes.filter(|it| {
                    it.key == later.key && it.kind != Kind::Lengthened && it.at <= begins
                });
                values.next().is_some_and(|it| {
                    it.kind != Kind::Gone && micros(it.at) == later.token && Some(it.at) < answered
                })
            })
    }
}

/// Returns whether a token may repeat an earlier one: a server's clock steps back, and an earlier owner did not release its
/// lock. Only a release writes the mark.
fn may_be_repeated(plan: &Plan) -> bool {
    let steps = plan.steps_clocks();
    let keeps_the_mark = |fault: &Fault| {
        matches!(
            fault,
            Fault::Kill { .. } | Fault::Refuse { .. } | Fault::Deny { .. } | Fault::Stop { .. }
        )
    };
    steps && (plan.stops_inside || plan.has(keeps_the_mark))
}

/// Returns whether a new master may lack the mark while its clock is behind.
pub(super) fn may_be_forgotten(plan: &Plan) -> bool {
    let steps = plan.steps_clocks();
    let differ = plan.clocks.iter().any(|clock| *clock != 0);
    if plan.topology == Topology::Cluster {
        // A slot may move to a node whose clock is behind.
        let moves_back = differ && plan.has(Fault::moves_keys);
        let is_calm = !plan.stops_inside && !plan.has(|fault| !fault.is_hidden());
        return moves_back && !is_calm || may_be_repeated(plan);
    }
    plan.has(|fault| matches!(fault, Fault::Promote { .. })) && (steps || differ)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asks, owns, with, world};
    use super::*;
    use crate::world::{MILLI, SECOND, Write};

    /// A write of key 0 at a time in milliseconds.
    fn write(at: u64, value: u64, kind: Kind) -> Write {
        let write = super::super::tests::write(at * MILLI, kind, SECOND);
        Write { value, ..write }
    }

    /// The rules that are broken where a call is answered at second 3, with the time 2 900 ms as its token, and a later one
    /// at second 4, with 2 800 ms, and a former master has had these values of the key.
    fn broken(asked: u64, values: &[Write]) -> Vec<&'static str> {
        let mut plan = with(Fault::Promote { server: 1 });
        (plan.topology, plan.replicas) = (Topology::Sentinel, vec![0]);
        let mut ledger = Ledger::default();
        for (asked, answered, token) in [(3_000, 3_000, 2_900), (asked, 4_000, 2_800)] {
            let call = asks(&mut ledger, Owning::Alone, Some(0), 3, Some(4));
            let it = &mut ledger.calls[call];
            (it.asked, it.answered) = (asked * MILLI, Some(answered * MILLI));
            it.answer = Answer::Granted;
            ledger.claims(call, EPOCH as u64 + token * 1_000, answered * MILLI);
        }
        let sim = world();
        sim.change(|state| {
            state.add_server();
            state.hosts[0].writes.extend(values.iter().cloned());
            state.hosts[1].writes.push(write(2_900, 2, Kind::Set));
        });
        sim.judge(ledger, &plan, Ledger::check_owners)
    }

    #[test]
    fn a_body_that_begins_late_may_have_a_token_below_one_of_another_master() {
        let rule = "a token does not rise";
        let set = write(2_800, 1, Kind::Set);
        let lengthened = write(3_500, 1, Kind::Lengthened);
        assert!(broken(4_000, &[set.clone(), lengthened.clone()]).is_empty());
        assert_eq!(broken(3_900, &[set.clone(), lengthened]), [rule]);
        assert_eq!(broken(4_000, &[]), [rule]);
        assert_eq!(broken(4_000, &[write(3_500, 1, Kind::Set)]), [rule]);
        for (value, kind) in [(3, Kind::Replaced), (0, Kind::Gone)] {
            let values = [set.clone(), write(3_500, value, kind)];
            assert_eq!(broken(4_000, &values), [rule]);
        }
    }

    #[test]
    fn a_token_rises_beside_a_step_of_the_clock_unless_a_lock_has_run_out() {
        let rule = "a token does not rise";
        let lost = Answer::NotReleased("Lost the lock ran out".to_owned());
        // It is released at second 4, or the release is not confirmed, and the lease lasts so many seconds more.
        let broken_with = |answer: &Answer, step: u64, left_with: Option<u64>| {
            let mut plan = with(Fault::StepClock { server: 0, by: -1 });
            plan.faults[0].at = step * SECOND;
            let mut ledger = Ledger::default();
            for (token, at) in [(2, 3), (1, 6)] {
                owns(&mut ledger, Owning::Alone, token, at, at + 1);
            }
            let first = &mut ledger.calls[0];
            (first.answer, first.left) = (answer.clone(), Some(4 * SECOND));
            first.released = left_with.map_or(first.left, |_| None);
            first.left_with = left_with.unwrap_or(0) * SECOND;
            world().judge(ledger, &plan, Ledger::check_owners)
        };
        let broken = |answer: &Answer, step: u64| broken_with(answer, step, None);
        for answer in [&lost, &Answer::Lost, &Answer::RanOut] {
            assert!(broken(answer, 5).is_empty());
            assert_eq!(broken(answer, 2), [rule]);
            assert_eq!(broken(answer, 7), [rule]);
        }
        assert_eq!(broken(&Answer::Granted, 5), [rule]);
        let unanswered = Answer::NotReleased("Unavailable".to_owned());
        assert_eq!(broken(&unanswered, 5), [rule]);
        for unconfirmed in [unanswered, Answer::Granted] {
            assert!(broken_with(&unconfirmed, 5, Some(2)).is_empty());
            assert_eq!(broken_with(&unconfirmed, 5, Some(3)), [rule]);
        }
    }

    /// The first owner's lock goes on with a second one inside its process, which loses the lock.
    #[test]
    fn no_token_is_noted_where_the_lock_ran_out_with_a_later_owner_of_the_process() {
        let fault = Fault::GiveWay { server: 0 };
        // The second one begins to release it at second 3, with so many seconds left, or has released it by then.
        let broken = |answer: Answer, passed: u64, key: usize, left_with: Option<u64>| {
            let mut plan = with(fault.clone());
            plan.clocks = vec![0, -1];
            let mut ledger = Ledger::default();
            for (token, at) in [(5, 1), (passed, 2), (4, 6)] {
                owns(&mut ledger, Owning::Alone, token, at, at + 1);
            }
            let it = &mut ledger.calls[1];
            (it.answer, it.left) = (answer, Some(3 * SECOND));
            it.released = left_with.map_or(it.left, |_| None);
            it.left_with = left_with.unwrap_or(0) * SECOND;
            ledger.claims[1].key = key;
            world()
                .judge(ledger, &plan, Ledger::check_owners)
                .contains(&"a token does not rise")
        };
        assert!(!broken(Answer::Lost, 6, 0, None));
        assert!(broken(Answer::Granted, 6, 0, None));
        assert!(broken(Answer::Lost, 6 + PASSES, 0, None));
        assert!(broken(Answer::Lost, 6, 1, None));
        // A release that is not confirmed may arrive when the lock has run out.
        let unanswered = Answer::NotReleased("Unavailable".to_owned());
        for unconfirmed in [unanswered, Answer::Granted] {
            assert!(!broken(unconfirmed.clone(), 6, 0, Some(3)));
            assert!(broken(unconfirmed, 6, 0, Some(4)));
        }
    }
}
