//! Clusters: a refusal or a loss has a fault at its time that explains it, and a slot that moves is none.

use super::late::{NO_ANSWER, NO_TIME_LEFT, NOT_CONFIRMED};
use super::waits::AFTERMATH;
use super::{Answer, Call, Ledger, Owning};
use crate::plan::{Plan, Topology, lock_name};
use crate::server::slot_of;
use crate::world::{Fault, Late, Planned, REPLACED, SECOND};

/// The time in which a manager may still be connecting.
const START: u64 = SECOND;
/// The error of a share that asks at once for a key with others while its slot moves.
const APART: &str = "no share can join others meanwhile";
/// The round trips of an operation while its slot moves: each key is asked by itself and at both nodes, the one node is
/// connected to first, and it has to be sent the scripts.
const TRIPS: u64 = 20;

impl Ledger {
    /// Checks that nothing is refused or lost without a fault that explains it.
    pub(super) fn check_causes_in_cluster(&mut self, plan: &Plan, late: &[Late]) {
        if plan.stops_inside {
            return;
        }
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            let uncaused = matches!(
                call.answer,
                Answer::Lost | Answer::Refused(_) | Answer::NotReleased(_)
            );
            let explains = |planned: &Planned| explains(plan, planned, call);
            // It may have stood still, or it may not know whether its share fits beside others.
            let is_apart = matches!(&call.answer, Answer::Refused(why) if why.contains(APART))
                && call.owning != Owning::Alone
                && plan.moves_at_the_time_of(call);
            if call.rests.is_some()
                || is_apart
                || is_overdue_in_parts(plan, call)
                || is_too_short_for_parts(plan, call)
                || self.is_unanswered_behind_a_rest(plan, number)
                || self.is_slowed(plan, late, number)
            {
                continue;
            }
            if uncaused
                && call.asked > START
                && !plan.ends_early(call.process)
                && !plan.faults.iter().any(explains)
            {
                self.violates("refused or lost without a fault", self.show(number));
            }
        }
    }

    /// Checks that no call is told of a mistake in the settings where no right is missing.
    pub fn check_kinds(&mut self, plan: &Plan) {
        if plan.has(|fault| matches!(fault, Fault::Deny { .. })) {
            return;
        }
        for number in 0..self.calls.len() {
            let (Answer::Refused(text) | Answer::NotReleased(text)) = &self.calls[number].answer
            else {
                continue;
            };
            if text.starts_with("Misconfigured") || text.starts_with("Invalid") {
                self.violates("misconfigured without a cause", self.show(number));
            }
        }
    }
}

impl Plan {
    /// Returns whether the slot of the key of a call may have been on its way while the call was asked.
    pub(super) fn moves_at_the_time_of(&self, call: &Call) -> bool {
        self.moves_between(call.asked, call.answered, call)
    }

    /// Returns whether the slot of the key of a call may have been on its way between these times.
    fn moves_between(&self, begin: u64, end: Option<u64>, call: &Call) -> bool {
        let end = end.unwrap_or(u64::MAX);
        // A move goes on when its nodes do.
        let over = self.last_fault_ends() + AFTERMATH;
        let may_last = self.has(|fault| !fault.is_hidden());
        let slots = call
            .keys
            .iter()
            .map(|key| slot_of(lock_name(*key).as_bytes()));
        let slots: Vec<usize> = slots.collect();
        self.faults.iter().any(|planned| {
            let ends = if may_last {
                over
            } else {
                planned.end() + AFTERMATH
            };
            matches!(planned.fault, Fault::MoveSlot { slot, .. } if slots.contains(&slot))
                && planned.at <= end
                && begin <= ends
        })
    }
}

/// Returns whether an operation was told that it has no answer, where its time is too short for the steps that it takes
/// while its slot moves.
fn is_overdue_in_parts(plan: &Plan, call: &Call) -> bool {
    let timeout = plan.processes[call.process].operation_timeout;
    let (begin, end) = match &call.answer {
        // The question at the end of a wait has the time of an operation, too.
        Answer::Refused(why) if why.contains(NO_ANSWER) || why.contains(NO_TIME_LEFT) => {
            (call.asked, call.answered)
        }
        Answer::NotReleased(why) if why.contains(NOT_CONFIRMED) => {
            let begin = call.left.unwrap_or(call.asked);
            (begin, Some(begin + timeout))
        }
        _ => return false,
    };
    timeout < longest_in_parts(plan) && plan.moves_between(begin, end, call)
}

/// Returns whether a lock was lost whose ttl is too short for a renewal while its slot moves. The renewals have the last two
/// thirds of the ttl.
fn is_too_short_for_parts(plan: &Plan, call: &Call) -> bool {
    let end = call.lost.or(call.left).or(call.answered);
    let longest = longest_in_parts(plan);
    call.answer.is_loss() && call.ttl / 3 * 2 < longest && plan.moves_between(call.asked, end, call)
}

/// The longest time of an operation while its slot moves.
pub(super) fn longest_in_parts(plan: &Plan) -> u64 {
    // The usual segment takes up to one and a half times the latency.
    TRIPS * 3 * plan.latency
}

/// Returns whether a fault explains that a call was refused, or that its lock was lost.
fn explains(plan: &Plan, planned: &Planned, call: &Call) -> bool {
    let fault = &planned.fault;
    let until = match call.answer {
        Answer::Refused(_) => call.answered.unwrap_or(u64::MAX),
        _ => u64::MAX,
    };
    let over = match fault {
        // No replica takes the place of a master whose slots move.
        Fault::Crash { .. } if !plan.has(Fault::moves_keys) => planned.at + REPLACED,
        _ => planned.over(plan.topology == Topology::Cluster),
    };
    let over = over + AFTERMATH + fault.clock_step().unwrap_or(0);
    let is_at_the_time = planned.at <= until && call.asked <= over;
    let is_its_process = fault.process().is_none_or(|it| it == call.process);
    let is_its_server = fault
        .server()
        .is_none_or(|it| plan.may_be_on(it, &call.keys));
    // A slot on its way to a node whose clock is behind has to wait for that clock.
    let mut steps = plan.faults.iter().filter(|it| it.at <= planned.end());
    let has_clocks = !plan.clocks.is_empty() || steps.any(|it| it.fault.clock_step().is_some());
    let is_seen = !fault.is_hidden() || has_clocks;
    is_seen && is_at_the_time && is_its_process && is_its_server
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asks, calls, rules, with};
    use super::*;
    use crate::world::MILLI;

    const BROKEN: &str = "refused or lost without a fault";

    /// A plan in which the slot of key 0 moves from the first second to the second one.
    fn moving() -> Plan {
        let mut plan = with(Fault::MoveSlot {
            slot: slot_of(lock_name(0).as_bytes()),
            further: 0,
            in_dispute: false,
        });
        plan.topology = Topology::Cluster;
        plan
    }

    /// The rules that are broken where a call that asks at this second is refused for this reason.
    fn broken_at(plan: &Plan, owning: Owning, second: u64, why: &str) -> Vec<&'static str> {
        let mut ledger = Ledger::default();
        calls(&mut ledger, owning, Some(0), second, Some(second)).answer =
            Answer::Refused(why.to_owned());
        ledger.check_causes_in_cluster(plan, &[]);
        rules(&ledger)
    }

    #[test]
    fn a_share_is_refused_for_others_only_while_its_slot_moves() {
        let broken = |second| broken_at(&moving(), Owning::READER, second, APART);
        assert!(broken(2).is_empty());
        assert_eq!(broken(9), [BROKEN]);
    }

    #[test]
    fn a_lock_is_lost_only_while_its_slot_moves_and_where_its_ttl_is_too_short_for_the_trips() {
        let broken = |trip: u64, ttl: u64, second| {
            let mut plan = moving();
            plan.latency = trip * MILLI;
            let mut ledger = Ledger::default();
            let call = asks(&mut ledger, Owning::Alone, Some(0), second, Some(second));
            ledger.calls[call].ttl = ttl * MILLI;
            ledger.calls[call].answer = Answer::Lost;
            ledger.calls[call].lost = Some(second * SECOND + ttl * MILLI);
            ledger.check_causes_in_cluster(&plan, &[]);
            rules(&ledger)
        };
        assert!(broken(5, 300, 2).is_empty());
        assert_eq!(broken(1, 300, 2), [BROKEN]);
        assert_eq!(broken(5, 1_000, 2), [BROKEN]);
        assert_eq!(broken(5, 300, 9), [BROKEN]);
    }

    #[test]
    fn a_release_is_late_only_if_the_slot_moves_at_its_own_time() {
        let broken = |asked: u64, left: u64| {
            let mut plan = moving();
            plan.faults[0].at = 4 * SECOND;
            plan.latency = 5 * MILLI;
            plan.processes[0].operation_timeout = 200 * MILLI;
            let mut ledger = Ledger::default();
            let call = asks(&mut ledger, Owning::Alone, Some(0), asked, Some(asked));
            ledger.calls[call].left = Some(left * SECOND);
            ledger.calls[call].answer = Answer::NotReleased(NOT_CONFIRMED.to_owned());
            ledger.check_causes_in_cluster(&plan, &[]);
            rules(&ledger)
        };
        assert!(broken(2, 5).is_empty());
        assert_eq!(broken(2, 3), [BROKEN]);
        assert_eq!(broken(5, 9), [BROKEN]);
    }

    #[test]
    fn an_answer_is_late_only_while_the_slot_moves_and_where_the_trips_are_long() {
        let broken = |trip: u64, second, why| {
            let mut plan = moving();
            plan.latency = trip * MILLI;
            plan.processes[0].operation_timeout = 200 * MILLI;
            broken_at(&plan, Owning::Alone, second, why)
        };
        for why in [NO_ANSWER, NO_TIME_LEFT] {
            assert!(broken(5, 2, why).is_empty());
            assert_eq!(broken(1, 2, why), [BROKEN]);
            assert_eq!(broken(5, 9, why), [BROKEN]);
        }
        assert_eq!(broken(5, 2, "no connection"), [BROKEN]);
    }

    #[test]
    fn a_lock_waits_for_a_clock_only_if_one_was_set_before_its_slot_moves() {
        let broken = |set: Option<u64>| {
            let mut plan = moving();
            plan.faults.extend(set.map(|at| Planned {
                at: at * SECOND,
                lasts: MILLI,
                fault: Fault::StepClock {
                    server: 1,
                    by: -900_000,
                },
            }));
            broken_at(
                &plan,
                Owning::Alone,
                2,
                "the lock is on its way to another node",
            )
        };
        assert!(broken(Some(0)).is_empty());
        assert_eq!(broken(Some(9)), [BROKEN]);
        assert_eq!(broken(None), [BROKEN]);
    }
}
