//! Segments that took longer than usual. Several of them explain that an operation has no answer in its time, and that a lock
//! is lost whose renewals were answered too late.

use std::ops::Range;

use super::{Answer, Ledger};
use crate::plan::{Plan, Topology};
use crate::world::{Fault, Late, Planned};

/// The errors of an acquire and of a release whose time is over.
pub(super) const NO_ANSWER: &str = "the store gave no answer within";
pub(super) const NOT_CONFIRMED: &str = "the release was not confirmed";
/// The other errors of an acquire that has no answer in the time of an operation, in that and the time of its wait, and in the
/// ttl.
const IN_TIME: [&str; 2] = [NO_ANSWER, "no majority of the"];
pub(super) const NO_TIME_LEFT: &str = "the wait ended before the store answered";
pub(super) const BEHIND_THE_TTL: &str = "the store's answer came after the ttl had run out";
const IN_THE_TTL: [&str; 2] = [
    BEHIND_THE_TTL,
    "the lock ran out before it could be renewed",
];

/// An operation on a key that several processes want takes so many round trips at most, on PostgreSQL.
const ROUND_TRIPS: u64 = 20;

impl Ledger {
    /// Returns whether segments of its process explain the error of a call, or the loss of its lock: at least two of them,
    /// which have taken longer than usual by a fifth of the time of the operation, or of the ttl, in all.
    ///
    /// An operation is one round trip, or up to ten where it connects, is sent a script, or removes many dead waiters. A
    /// renewal begins after a third of the ttl and is given up after another third, and the next ones have half of what is
    /// left, each.
    pub(super) fn is_slowed(&self, plan: &Plan, late: &[Late], number: usize) -> bool {
        let call = &self.calls[number];
        let timeout = plan.processes[call.process].operation_timeout;
        let (to, lasts) = match &call.answer {
            Answer::Refused(why) if has(why, &IN_TIME) => (call.answered, timeout),
            Answer::Refused(why) if has(why, &[NO_TIME_LEFT]) => {
                (call.answered, call.wait.unwrap_or(timeout).min(timeout))
            }
            Answer::Refused(why) if has(why, &IN_THE_TTL) => (call.answered, call.ttl),
            Answer::NotReleased(why) if has(why, &[NOT_CONFIRMED]) => (call.ended, timeout),
            answer if answer.is_loss() => (call.lost.or(call.ended).or(call.left), call.ttl),
            _ => return false,
        };
        let Some(to) = to else { return false };
        let from = match call.answer.is_loss() && call.lost.is_none() {
            // It hears of the loss at its end.
            true => call.asked,
            // The clock of the process may be slow.
            false => to.saturating_sub(lasts + lasts / 100),
        };
        are_late(late, call.process, from..to, lasts)
    }

    /// Returns whether a call may have no answer, or its lock may be lost, because other processes changed its key meanwhile. On
    /// PostgreSQL each change costs an operation two round trips more, and the operations of a process on one key follow one
    /// another.
    pub(super) fn is_outrun(&self, plan: &Plan, number: usize) -> bool {
        let call = &self.calls[number];
        let timeout = plan.processes[call.process].operation_timeout;
        let (to, lasts) = match &call.answer {
            Answer::Refused(why) if has(why, &[NO_ANSWER, NO_TIME_LEFT]) => {
                (call.answered, timeout)
            }
            Answer::NotReleased(why) if has(why, &[NOT_CONFIRMED]) => (call.ended, timeout),
            answer if answer.is_loss() => (call.lost.or(call.ended).or(call.left), call.ttl),
            _ => return false,
        };
        let to = to.unwrap_or(u64::MAX);
        let from = match call.answer.is_loss() {
            true => to.saturating_sub(lasts),
            false => call.asked.saturating_sub(timeout),
        };
        outlasts(plan, lasts) && self.others_want(number, from..to)
    }

    /// Returns whether calls of other processes had to do with the keys of a call in a span.
    pub(super) fn others_want(&self, number: usize, span: Range<u64>) -> bool {
        let call = &self.calls[number];
        self.calls.iter().any(|it| {
            let is_over = it.ended.or(it.left).or(it.answered).unwrap_or(u64::MAX);
            it.process != call.process
                && it.keys == call.keys
                && it.asked < span.end
                && is_over > span.start
        })
    }
}

/// Returns whether the time of an operation of the process may end, on PostgreSQL, while other processes change its key.
pub(super) fn may_be_outrun(plan: &Plan, process: usize) -> bool {
    outlasts(plan, plan.processes[process].operation_timeout)
}

/// Returns whether an operation on a key that several processes want may take longer than this.
fn outlasts(plan: &Plan, lasts: u64) -> bool {
    plan.topology == Topology::Postgres && lasts <= ROUND_TRIPS * 3 * plan.latency
}

/// Returns whether segments of a process that were sent in this span explain that something did not happen in its time.
pub(super) fn are_late(late: &[Late], process: usize, span: Range<u64>, lasts: u64) -> bool {
    let its = late.iter();
    let its = its.filter(|it| it.process == process && span.contains(&it.sent));
    let its = its.map(|it| it.by);
    its.clone().count() > 1 && its.sum::<u64>() >= lasts / 5
}

fn has(why: &str, texts: &[&str]) -> bool {
    texts.iter().any(|it| why.contains(it))
}

/// Returns whether a process may hear in a span that it was refused for a mistake before, because a partition has kept the
/// answer. `mistake`: for how long such a fault has effects.
pub(super) fn is_told_behind_a_partition(
    plan: &Plan,
    process: usize,
    (from, to): (u64, u64),
    mistake: impl Fn(&Fault) -> Option<u64>,
) -> bool {
    let keeps = |it: &&Planned| matches!(it.fault, Fault::Hold { .. } | Fault::Freeze { .. });
    let of_the_process = |it: &&Planned| it.fault.process() == Some(process);
    let mut partitions = plan.faults.iter().filter(keeps).filter(of_the_process);
    partitions.any(|partition| {
        let mut faults = plan.faults.iter();
        faults.any(|it| {
            let is_amid = it.at <= partition.end() && partition.at <= it.end();
            let after = mistake(&it.fault).filter(|_| is_amid);
            after.is_some_and(|after| partition.at <= to && from <= partition.end() + after)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::Owning;
    use super::super::tests::{asks, calls, calm, plans};
    use super::*;
    use crate::server::Refusal;
    use crate::world::{MILLI, SECOND, Ways};

    /// Returns whether two segments of a process that were sent at this time in milliseconds explain the answer of a call,
    /// each so many milliseconds longer than usual. The call is answered at second 3 and ends at second 5.
    fn explains(answer: Answer, process: usize, sent: u64, by: u64) -> bool {
        let mut plan = calm();
        plan.processes[0].operation_timeout = 200 * MILLI;
        let mut ledger = Ledger::default();
        let call = asks(&mut ledger, Owning::Alone, None, 2, Some(3));
        let it = &mut ledger.calls[call];
        (it.answer, it.ended) = (answer, Some(5 * SECOND));
        let (sent, by) = (sent * MILLI, by * MILLI);
        let late = Late { process, sent, by };
        ledger.is_slowed(&plan, &[late.clone(), late], call)
    }

    #[test]
    fn an_operation_has_no_answer_where_segments_of_its_time_take_longer_than_usual() {
        let refused = |why: &str| Answer::Refused(format!("Unavailable {why} 200ms"));
        let released = |why: &str| Answer::NotReleased(format!("Unavailable {why} 200ms"));
        for (answer, at) in [
            (refused(NO_ANSWER), 3_000),
            (released(NOT_CONFIRMED), 5_000),
        ] {
            assert!(explains(answer.clone(), 0, at - 100, 20));
            assert!(!explains(answer.clone(), 0, at - 100, 19));
            assert!(!explains(answer.clone(), 1, at - 100, 20));
            assert!(!explains(answer.clone(), 0, at - 210, 20));
            assert!(!explains(answer, 0, at, 20));
        }
        assert!(!explains(refused("no connection"), 0, 2_900, 20));
        assert!(!explains(released("no connection"), 0, 4_900, 20));
    }

    #[test]
    fn on_postgres_a_call_is_outrun_where_its_time_is_short_and_others_want_its_key() {
        let is_outrun = |why: &str, topology: Topology, latency: u64, process: usize| {
            let mut plan = calm();
            (plan.topology, plan.latency) = (topology, latency * MILLI);
            plan.processes[0].operation_timeout = 200 * MILLI;
            let mut ledger = Ledger::default();
            let call = asks(&mut ledger, Owning::Alone, None, 2, Some(3));
            ledger.calls[call].answer = Answer::Refused(format!("Unavailable {why}"));
            calls(&mut ledger, Owning::Alone, None, 1, Some(4)).process = process;
            ledger.is_outrun(&plan, call)
        };
        for why in [NO_ANSWER, NO_TIME_LEFT] {
            assert!(is_outrun(why, Topology::Postgres, 5, 1));
            assert!(!is_outrun(why, Topology::Postgres, 5, 0));
            assert!(!is_outrun(why, Topology::Postgres, 3, 1));
            assert!(!is_outrun(why, Topology::One, 5, 1));
        }
        assert!(!is_outrun("no connection", Topology::Postgres, 5, 1));
    }

    #[test]
    fn on_postgres_a_lock_is_outrun_where_its_ttl_is_short_and_others_want_its_key() {
        let is_outrun = |topology: Topology, ttl: u64, process: usize| {
            let mut plan = calm();
            (plan.topology, plan.latency) = (topology, 5 * MILLI);
            let mut ledger = Ledger::default();
            let call = asks(&mut ledger, Owning::Alone, None, 2, Some(3));
            let call_of = &mut ledger.calls[call];
            (call_of.answer, call_of.left, call_of.ttl) =
                (Answer::Lost, Some(4 * SECOND), ttl * MILLI);
            calls(&mut ledger, Owning::Alone, None, 1, Some(4)).process = process;
            ledger.is_outrun(&plan, call)
        };
        assert!(is_outrun(Topology::Postgres, 300, 1));
        assert!(!is_outrun(Topology::Postgres, 301, 1));
        assert!(!is_outrun(Topology::Postgres, 300, 0));
        assert!(!is_outrun(Topology::One, 300, 1));
    }

    #[test]
    fn a_refusal_may_be_heard_when_the_partition_that_kept_it_is_over() {
        // The server refuses for a mistake from second 2 to second 4, and a partition of this process begins and ends then.
        let told = |process: usize, begins: u64, ends: u64, asked: u64| {
            let mut plan = calm();
            let hold = Fault::Hold {
                process,
                server: 0,
                ways: Ways::Replies,
            };
            let refuse = Fault::Refuse {
                server: 0,
                refusal: Refusal::Misconfigured,
            };
            for (fault, at, end) in [(refuse, 2, 4), (hold, begins, ends)] {
                plans(&mut plan, (at * 1_000, end * 1_000), fault);
            }
            let span = (asked * SECOND, (asked + 1) * SECOND);
            let mistake = |it: &Fault| matches!(it, Fault::Refuse { .. }).then_some(MILLI);
            is_told_behind_a_partition(&plan, 0, span, mistake)
        };
        assert!(told(0, 3, 6, 5));
        assert!(!told(1, 3, 6, 5), "of another process");
        assert!(!told(0, 5, 6, 5), "behind the mistake");
        assert!(!told(0, 3, 6, 7), "it is long over");
    }
}
