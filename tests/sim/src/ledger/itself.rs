//! A call meets an earlier question of its own, where replicas acknowledge.

use super::Call;
use super::calm::{arrives_by, keep_requests};
use super::dead::addresses;
use crate::plan::{Plan, lock_name};
use crate::world::{Fault, Kind, State, Write};

/// Returns whether a call may have been refused by a question of its own. Where replicas acknowledge, each further question
/// asks for another lease and steps over the one before, whose value it replaces. When two of them have no answer, the second
/// one may not have arrived, and the third one meets the first, until that is undone. So does the second one, where a fault has
/// kept the first until it was given up.
pub(super) fn meets_itself(plan: &Plan, state: &State, call: &Call) -> bool {
    let unanswered = 2 * plan.processes[call.process].operation_timeout;
    let span = call.span();
    let Some(third) = span.1.checked_sub(unanswered - unanswered / 100) else {
        return false;
    };
    let was_kept = |at: u64| {
        let mut faults = keep_requests(plan, call.process);
        faults.any(|it| it.at < at && (it.end()..=arrives_by(it)).contains(&at))
    };
    let may_be_its = |at: u64| at <= third || was_kept(at);
    let writes = state.hosts[0].writes.iter().rev();
    let mut values =
        writes.filter(|it| call.keys == [it.key] && it.kind != Kind::Lengthened && it.at <= span.1);
    let steps_over = |it: &Write| it.kind == Kind::Replaced && has_written(state, call.process, it);
    plan.acks > 0
        && call.wait != Some(0)
        && plan.touches(call.process, span, Fault::disturbs)
        && values.clone().next().is_some_and(|it| may_be_its(it.at))
        && values
            .find(|it| !steps_over(it))
            .is_some_and(|it| it.kind == Kind::Set && it.at >= span.0)
}

/// Returns whether a write of a lock on the first server was one of a process, for itself.
fn has_written(state: &State, process: usize, write: &Write) -> bool {
    let texts = state.hosts[0].texts.get(lock_name(write.key).as_bytes());
    let mut texts = texts.into_iter().flatten();
    let addresses = addresses(state, process);
    texts.any(|(at, text)| *at == write.at && addresses.iter().any(|its| text.starts_with(its)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{calls, calm, plans, world, write};
    use super::super::{Answer, Ledger, Owning};
    use super::*;
    use crate::plan::{Topology, Verb};
    use crate::world::{MILLI, SECOND, Ways};

    /// The rules that are broken where a call of process 0 asks at second 2 and is refused at second 4, the answers to this
    /// process are slow, and the key was set at this time in milliseconds.
    fn broken(process: usize, acks: u16, set: u64) -> Vec<&'static str> {
        let (server, by) = (0, 300 * MILLI);
        let fault = Fault::Slow {
            process,
            server,
            by,
        };
        broken_by((fault, 2_000), acks, set)
    }

    /// The same beside a fault of two seconds from this time in milliseconds on.
    fn broken_by(fault: (Fault, u64), acks: u16, set: u64) -> Vec<&'static str> {
        broken_behind(fault, acks, &[(set, 0)])
    }

    /// The same where the key was set, and then replaced, at these times in milliseconds by these processes.
    fn broken_behind(
        (fault, from): (Fault, u64),
        acks: u16,
        writes: &[(u64, usize)],
    ) -> Vec<&'static str> {
        let mut plan = calm();
        (plan.topology, plan.acks, plan.replicas) = (Topology::Replicas, acks, vec![0]);
        plan.verbs = vec![Verb::Downgrade];
        plan.processes[0].operation_timeout = 500 * MILLI;
        plans(&mut plan, (from, from + 2_000), fault);
        let mut ledger = Ledger::default();
        calls(&mut ledger, Owning::Alone, Some(SECOND), 2, Some(4)).answer = Answer::Busy;
        let sim = world();
        sim.change(|state| {
            for process in 0..2 {
                let card = format!("lockkit:!h:00000000000000{process:02}");
                let names = format!("1\nhost-{process}");
                let card: [&[u8]; 3] = [b"SET", card.as_bytes(), names.as_bytes()];
                state.stranger_runs(0, &card);
            }
            let texts = writes.iter().map(|(at, process)| {
                let text = format!("00000000000000{process:02}/{at}");
                (at * MILLI, text.into_bytes())
            });
            let texts = texts.collect();
            let host = &mut state.hosts[0];
            host.texts.insert(lock_name(0).into_bytes(), texts);
            let kinds = std::iter::once(Kind::Set).chain(std::iter::repeat(Kind::Replaced));
            let writes = writes.iter().zip(kinds);
            let writes = writes.map(|((at, _), kind)| write(at * MILLI, kind, 10 * SECOND));
            host.writes.extend(writes);
        });
        sim.judge(ledger, &plan, Ledger::check_share_refusals)
    }

    #[test]
    fn only_a_question_of_its_own_without_an_answer_refuses_a_call() {
        let rule = "a call is refused that no other was in the way of";
        assert!(broken(0, 1, 2_300).is_empty());
        assert_eq!(broken(1, 1, 2_300), [rule]);
        assert_eq!(broken(0, 0, 2_300), [rule]);
        assert_eq!(broken(0, 1, 1_900), [rule]);
        assert_eq!(broken(0, 1, 3_100), [rule]);
    }

    #[test]
    fn a_question_that_a_fault_has_kept_refuses_the_next_one_of_its_call() {
        let rule = "a call is refused that no other was in the way of";
        let holds = |process, from| {
            let (server, ways) = (0, Ways::Requests);
            let fault = Fault::Hold {
                process,
                server,
                ways,
            };
            (fault, from)
        };
        assert!(broken_by(holds(0, 1_500), 1, 3_600).is_empty());
        assert_eq!(broken_by(holds(1, 1_500), 1, 3_600), [rule]);
        assert_eq!(broken_by(holds(0, 1_500), 1, 3_400), [rule]);
        assert_eq!(broken_by(holds(0, 1_500), 1, 3_900), [rule]);
    }

    #[test]
    fn a_question_that_has_stepped_over_others_of_its_call_refuses_a_later_one() {
        let rule = "a call is refused that no other was in the way of";
        let holds = |writes: &[(u64, usize)]| {
            let (process, server, ways) = (0, 0, Ways::Replies);
            let fault = Fault::Hold {
                process,
                server,
                ways,
            };
            broken_behind((fault, 1_500), 1, writes)
        };
        assert!(holds(&[(2_100, 0), (2_300, 0), (2_500, 0)]).is_empty());
        // Its last question came too late for two more, or its first one is none of the call, or another process replaced it.
        assert_eq!(holds(&[(2_100, 0), (2_300, 0), (3_100, 0)]), [rule]);
        assert_eq!(holds(&[(1_900, 0), (2_300, 0), (2_500, 0)]), [rule]);
        assert_eq!(holds(&[(2_100, 0), (2_300, 0), (2_500, 1)]), [rule]);
        assert_eq!(holds(&[(2_100, 0), (2_300, 1), (2_500, 0)]), [rule]);
    }
}
