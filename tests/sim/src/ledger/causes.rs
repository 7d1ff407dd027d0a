//! Refusals and losses have causes, of their kind, at their time.

use super::late::is_told_behind_a_partition;
use super::{Answer, Call, Ledger};
use crate::plan::{Plan, Topology, Weather, lock_name};
use crate::server::Refusal;
use crate::world::{Fault, MILLI, Planned, SECOND, State, slowest_segment};

/// The time in which a manager may still be connecting.
const START: u64 = SECOND;
/// The time after a momentary fault in which connections are made anew, also twice.
const SETTLED: u64 = 300 * MILLI;
/// A connection to PostgreSQL takes a dozen round trips, and each one that breaks meanwhile a pause.
const SETTLED_ON_POSTGRES: u64 = SECOND;
const IS_OVER: &str = "a lock is over when it is granted";
/// A token above it cannot be counted from.
const HIGHEST: u64 = 9_000_000_000_000_000;
/// How often a lock goes on inside a process before the store has it again.
pub(super) const PASSES: u64 = 32;

impl Ledger {
    pub fn check_causes(&mut self, plan: &Plan, state: &State) {
        self.check_names();
        if plan.topology == Topology::Cluster {
            return self.check_causes_in_cluster(plan, &state.late);
        }
        if plan.topology == Topology::Sentinel && plan.weather != Weather::Momentary {
            return self.check_quiet(plan, &state.late);
        }
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            if plan.ends_early(call.process)
                || self.was_unpolled(number)
                || self.released_unpolled(number)
                || call.rests.is_some()
                || self.is_unanswered_behind_a_rest(plan, number)
                || self.may_be_freed(number)
            {
                continue;
            }
            let wrong = match plan.topology {
                _ if plan.weather == Weather::Momentary => uncaused_by_a_moment(plan, call),
                _ if plan.topology.is_alone() && plan.is_plain() => {
                    uncaused(plan, call, || self.asked_by_its_process(number))
                }
                _ => uncaused_in_calm(plan, call),
            };
            let is_excused = || {
                self.is_slowed(plan, &state.late, number)
                    || self.is_outrun(plan, number)
                    || self.shares_a_refusal(plan, number)
                    || self.is_undecided_beside_a_fault(plan, number)
            };
            let wrong = wrong.filter(|it| *it == IS_OVER || !is_excused());
            if let Some(rule) = wrong {
                self.violates(rule, self.show(number));
            }
        }
        self.check_probed(plan);
        let above = self.claims.iter().find(|claim| claim.token >= HIGHEST);
        if let Some(claim) = above {
            self.violates("a token is above every clock", self.show_claim(claim));
        }
    }
}

impl Ledger {
    /// Returns when the lock of a call was asked for: by an earlier call, if the lock went on inside its process. The tokens of
    /// such leases differ by the number of these passes.
    pub(super) fn asked_by_its_process(&self, number: usize) -> u64 {
        let call = &self.calls[number];
        let is_before = |it: &&Call| {
            let passes = call
                .token
                .zip(it.token)
                .and_then(|(token, its)| token.checked_sub(its));
            it.process == call.process
                && it.keys == call.keys
                && passes.is_some_and(|passes| passes <= PASSES)
        };
        let before = self.calls.iter().filter(is_before);
        before.map(|it| it.asked).fold(call.asked, u64::min)
    }

    /// Returns whether a call was refused together with an earlier one of its process, which has asked for both, and whose
    /// refusal has a cause. The server may have refused it before the call came, if the answer was late.
    fn shares_a_refusal(&self, plan: &Plan, number: usize) -> bool {
        let call = &self.calls[number];
        let Answer::Refused(why) = &call.answer else {
            return false;
        };
        let is_shared = |it: &&Call| {
            let together = it.answered.zip(call.answered);
            it.process == call.process
                && it.keys == call.keys
                && it.answer == call.answer
                && it.asked < call.asked
                && together.is_some_and(|(its, own)| its.abs_diff(own) <= MILLI)
        };
        let mut earlier = self.calls.iter().filter(is_shared);
        earlier.any(|it| is_refused_for(plan, it, why, it.asked, it.answered))
    }

    /// Checks that no two servers were taken for one.
    fn check_names(&mut self) {
        let is_mistaken = |answer: &Answer| matches!(answer, Answer::Refused(why) if why.contains("are one server"));
        if let Some(call) = self.calls.iter().position(|call| is_mistaken(&call.answer)) {
            self.violates("two servers are taken for one", self.show(call));
        }
    }

    /// Checks that no lock is granted while the user lacks a right since before the first connection. Without a push or a hint
    /// a lock keeps its promise.
    fn check_probed(&mut self, plan: &Plan) {
        // Without pushes, and without hints about a watched key, locks still work.
        let lacks = plan.faults.iter().find(|planned| {
            let lacks = matches!(&planned.fault, Fault::Deny { command, .. }
                if !["PUBLISH", "SUBSCRIBE", "CLIENT|CACHING"].contains(&command.as_str()));
            lacks && planned.at == 0
        });
        let Some(lacks) = lacks else { return };
        let early = (0..self.calls.len()).find(|call| {
            let call = &self.calls[*call];
            let is_early = call.answered.is_some_and(|answered| answered < lacks.end());
            is_early && (call.left.is_some() || call.answer == Answer::Granted)
        });
        if let Some(call) = early {
            let text = self.show(call);
            self.violates("a lock is granted although a right is missing", text);
        }
    }
}

fn uncaused_in_calm(plan: &Plan, call: &Call) -> Option<&'static str> {
    let is_calm = plan.faults.is_empty() && !plan.has_stops();
    // A server that is not met at the start may not be known to be new.
    // Nor is it decided which numbers of a stranger an order may carry to other nodes.
    let is_half_calm = plan.spares_a_majority()
        && !plan.has_orders()
        && !plan.has_stops()
        && plan.faults.iter().all(|it| it.at >= START);
    let is_bad = match call.answer {
        // A lock that only a majority has is lost with one of its servers. Its release may notice that first.
        Answer::Lost => is_calm && call.renews,
        Answer::NotReleased(ref why) if why.starts_with("Lost") => is_calm && call.renews,
        Answer::NotReleased(_) => call.renews,
        Answer::Refused(ref why) => !is_undecided(plan, call, why),
        _ => false,
    };
    let is_wrong = is_bad && (is_calm || is_half_calm) && !is_slow(plan) && call.asked > START;
    is_wrong.then_some("refused or lost without a fault")
}

/// Returns whether the votes for a lock may have been split, also when they were given again, and the server that decides is so
/// slow that it answers only one of these two questions within the time of a call.
fn is_undecided(plan: &Plan, call: &Call, why: &str) -> bool {
    let lasts = plan.processes[call.process].operation_timeout;
    let span = call.span();
    why.starts_with("Unavailable the store gave no answer within")
        && plan.touches(call.process, span, |fault| match fault {
            Fault::Slow { by, .. } => (4 * by >= lasts).then_some(2 * by),
            _ => None,
        })
}

/// No waiting call is refused, and no lock lost, where each fault is over at once.
fn uncaused_by_a_moment(plan: &Plan, call: &Call) -> Option<&'static str> {
    let settled = match plan.topology {
        Topology::Postgres => SETTLED_ON_POSTGRES,
        _ => SETTLED,
    };
    let is_settled = |answered| {
        let begins = plan.faults.iter().map(|planned| planned.at);
        begins
            .filter(|begins| *begins < answered)
            .all(|begins| begins + settled < answered)
    };
    let is_bad = match call.answer {
        Answer::Refused(_) => {
            let is_unexplained =
                |answered| is_settled(answered) && !has_broken_twice(plan, call, answered);
            call.wait != Some(0) && call.answered.is_some_and(is_unexplained)
        }
        Answer::Lost => call.ttl >= SECOND && call.renews,
        _ => false,
    };
    (is_bad && call.asked > START && !is_slow(plan))
        .then_some("refused or lost because of a momentary fault")
}

/// Returns whether the connections to a majority of a quorum may have broken twice. A node is not sent a question for a third
/// time, and the caller is told that there is no answer when the time of the question is over.
fn has_broken_twice(plan: &Plan, call: &Call, answered: u64) -> bool {
    if plan.topology != Topology::Redlock {
        return false;
    }
    let lasts = plan.processes[call.process].operation_timeout / 5 * 4;
    let from = answered.saturating_sub(lasts + SETTLED);
    let breaks_twice = |server: &usize| {
        let faults = plan.faults.iter().filter(|it| {
            let is_its = it.fault.process().is_none_or(|its| its == call.process);
            is_its && it.fault.server() == Some(*server) && (from..answered).contains(&it.at)
        });
        faults.count() > 1
    };
    2 * (0..plan.servers).filter(breaks_twice).count() > plan.servers
}

/// Returns whether a node of a quorum may answer later than an eighth of a ttl, after which it counts as one that is down.
pub(super) fn is_slow(plan: &Plan) -> bool {
    let shortest = plan.ttls.iter().min().map_or(0, |ttl| ttl * MILLI);
    plan.topology == Topology::Redlock && 2 * slowest_segment(plan.latency) >= shortest / 8
}

/// `asked`: when the process asked for the lock of the call.
fn uncaused(plan: &Plan, call: &Call, asked: impl Fn() -> u64) -> Option<&'static str> {
    if plan.stops_inside || plan.habits.blocks > 0 {
        return None;
    }
    let is_ok = match (&call.answer, call.lost) {
        (Answer::Refused(why), _) => is_refused_for(plan, call, why, call.asked, call.answered),
        (Answer::Lost | Answer::NotReleased(_), Some(lost)) => {
            is_lost_for(plan, call, asked(), lost)
        }
        (Answer::NotReleased(why), None) if why.starts_with("Lost") => {
            // The lease may run out before the release arrives.
            let left = call.left.unwrap_or(0);
            let ended = call.ended.unwrap_or(u64::MAX);
            let over = left + call.left_with - call.left_with / 100;
            over <= ended || loses(plan, call, asked(), ended)
        }
        (Answer::NotReleased(why), None) => {
            is_refused_for(plan, call, why, call.left.unwrap_or(0), call.ended)
        }
        _ => true,
    };
    if is_over_when_told(plan, call) {
        return Some(IS_OVER);
    }
    (!is_ok).then_some("refused or lost without a cause")
}

/// Returns whether a fault explains the error of a request.
fn is_refused_for(plan: &Plan, call: &Call, why: &str, from: u64, to: Option<u64>) -> bool {
    let span = (from, to.unwrap_or(u64::MAX));
    let touches = |which: &dyn Fn(&Fault) -> Option<u64>| plan.touches(call.process, span, which);
    if why.starts_with("Misconfigured") {
        let mistake = |fault: &Fault| {
            let is_its = fault.is_a_mistake() || takes_the_right(plan, fault);
            fault.disturbs().filter(|_| is_its)
        };
        return touches(&mistake) || is_told_behind_a_partition(plan, call.process, span, mistake);
    }
    let is_unavailable = why.starts_with("Unavailable");
    is_unavailable
        && (from < START
            || touches(&|fault| fault.disturbs().filter(|_| !fault.is_a_mistake()))
            || waits_for_owners(plan, why, span))
}

/// Returns whether a server was flushed while a call waited. The owners renew in the second behind that, and the call asks
/// after it, also if its wait is over meanwhile. Its time for an answer may then be over, too.
fn waits_for_owners(plan: &Plan, why: &str, (from, to): (u64, u64)) -> bool {
    let is_flush = |it: &&Planned| matches!(it.fault, Fault::Flush { .. });
    let mut flushes = plan.faults.iter().filter(is_flush);
    why.starts_with("Unavailable the wait ended") && flushes.any(|it| from <= it.at && it.at <= to)
}

/// On PostgreSQL a server that is misconfigured has taken the right to the table.
fn takes_the_right(plan: &Plan, fault: &Fault) -> bool {
    plan.topology == Topology::Postgres && fault.refuses_as(Refusal::Misconfigured)
}

/// Returns whether something explains that a lock is lost at this time.
fn is_lost_for(plan: &Plan, call: &Call, asked: u64, lost: u64) -> bool {
    let granted = call.answered.unwrap_or(call.asked);
    let runs_out = granted + call.ttl - call.ttl / 10;
    if lost < START
        || loses(plan, call, asked, lost)
        || !call.renews && lost + plan.segments(4) >= runs_out
    {
        return true;
    }
    // A renewal is tried again and again to the end, so that one of the last tries is answered.
    let timeout = plan.processes[call.process].operation_timeout;
    let pause = (call.ttl / 12).min(SECOND);
    plan.touches(
        call.process,
        (lost.saturating_sub(call.ttl), lost),
        |fault| {
            let waits_for = match fault {
                // The server answers at once.
                Fault::Refuse { .. } | Fault::Deny { .. } | Fault::SpoilMark { .. } => {
                    plan.segments(6)
                }
                fault => timeout + fault.disturbs()?,
            };
            Some(pause + waits_for)
        },
    )
}

/// Returns whether the key of a call may have been deleted between these times.
fn loses(plan: &Plan, call: &Call, asked: u64, until: u64) -> bool {
    let keys: Vec<_> = call.keys.iter().map(|key| lock_name(*key)).collect();
    let mut losses = plan.faults.iter().filter(|it| it.fault.loses_data());
    losses.any(|it| {
        let is_its = match &it.fault {
            Fault::Delete { key, .. } => keys.iter().any(|its| its.as_bytes() == key),
            _ => true,
        };
        is_its && it.at <= until && asked <= it.end()
    })
}

/// Returns whether a lock was granted whose lease was over, by a question that was sent before `asked` and the ttl.
fn is_over_when_told(plan: &Plan, call: &Call) -> bool {
    let (Some(answered), Some(lost), Some(0)) = (call.answered, call.lost, call.wait) else {
        return false;
    };
    let at_once = lost < answered + MILLI;
    let is_over = answered > call.asked + call.ttl + 3 * MILLI + call.ttl / 100;
    at_once && is_over && !plan.has_stops() && !loses(plan, call, call.asked, lost)
}

#[cfg(test)]
mod tests {
    use super::super::Owning;
    use super::super::tests::{asks, calls, with, world};
    use super::*;

    /// The rules that are broken where a right is missing from second 1 to second 2, a call that was asked at this second is
    /// refused for it at second 5, and another one of a process, which was asked at second 4, behind that by so much.
    fn broken(first: u64, process: usize, behind: u64) -> Vec<&'static str> {
        let mut plan = with(Fault::Deny {
            server: 0,
            command: "TIME".to_owned(),
        });
        plan.weather = Weather::Rough;
        let mut ledger = Ledger::default();
        for (asked, of, late) in [(first, 0, 0), (4, process, behind)] {
            let call = calls(&mut ledger, Owning::Alone, None, asked, Some(5));
            call.answer = Answer::Refused("Misconfigured".to_owned());
            (call.process, call.answered) = (of, Some(5 * SECOND + late));
        }
        world().judge(ledger, &plan, Ledger::check_causes)
    }

    #[test]
    fn a_call_is_refused_together_with_an_earlier_one_of_its_process() {
        let rule = "refused or lost without a cause";
        assert!(broken(2, 0, 0).is_empty());
        assert_eq!(broken(2, 1, 0), [rule]);
        assert_eq!(broken(2, 0, 2 * MILLI), [rule]);
        assert_eq!(broken(3, 0, 0), [rule, rule]);
    }

    #[test]
    fn a_call_whose_server_is_flushed_at_the_end_of_its_wait_may_have_no_answer() {
        let flushed = |at: u64, why: &str| {
            let mut plan = with(Fault::Flush { server: 0 });
            plan.faults[0].at = at;
            let mut ledger = Ledger::default();
            let call = asks(&mut ledger, Owning::Alone, None, 4, Some(5));
            ledger.calls[call].answer = Answer::Refused(format!("Unavailable {why}"));
            uncaused(&plan, &ledger.calls[call], || 0).is_none()
        };
        let ended = "the wait ended before the store answered";
        assert!(flushed(4 * SECOND, ended));
        assert!(!flushed(4 * SECOND, "the store gave no answer within 1s"));
        assert!(!flushed(4 * SECOND - 1, ended));
        assert!(!flushed(5 * SECOND + 1, ended));
    }
}
