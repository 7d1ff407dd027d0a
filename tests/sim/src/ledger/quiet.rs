//! While there is no trouble, servers refuse no call and owners lose no lock. Earlier faults do not matter.

use super::masters::disturbs;
use super::{Answer, Ledger};
use crate::plan::Plan;
use crate::world::{Fault, LAST, LONGEST_STOP, Late, Planned, SECOND};

/// The time in which a manager may still be connecting.
const START: u64 = SECOND;
/// The time in which a look may wait for a sentinel that has begun to hang.
const NOTICED: u64 = 1_500_000_000;

impl Ledger {
    pub(super) fn check_quiet(&mut self, plan: &Plan, late: &[Late]) {
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            let is_wrong = match call.answer {
                // A renewal may stand behind several waits for replicas, or behind a look at a distant sentinel.
                _ if call.answer.is_loss() => plan.acks == 0 || call.ttl >= SECOND,
                Answer::Refused(_) | Answer::NotReleased(_) => true,
                Answer::Lost
                | Answer::None
                | Answer::Granted
                | Answer::Busy
                | Answer::Cancelled
                | Answer::NoTicket
                | Answer::RanOut => false,
            };
            let stood_still = self.was_unpolled(number)
                || self.released_unpolled(number)
                || call.rests.is_some()
                || self.is_unanswered_behind_a_rest(plan, number)
                || self.was_blocked(plan, number)
                || self.is_slowed(plan, late, number);
            if !is_wrong || plan.ends_early(call.process) || stood_still {
                continue;
            }
            let believed = self.believed_until(number);
            let begins = call.asked;
            let ends = call
                .answered
                .max(call.left)
                .max(believed)
                .unwrap_or(u64::MAX);
            let trouble = trouble(plan, call.process);
            let is_quiet = trouble
                .iter()
                .all(|(from, to)| *from > ends + SECOND || *to < begins);
            if is_quiet {
                self.violates("refused or lost without trouble", self.show(number));
            }
        }
    }
}

/// The spans in which a process may meet trouble.
fn trouble(plan: &Plan, process: usize) -> Vec<(u64, u64)> {
    let mut spans = vec![(0, START + 40 * plan.latency)];
    if plan.stops_inside {
        spans.push((0, LAST + LONGEST_STOP + plan.settles()));
    }
    for planned in &plan.faults {
        let sentinels = plan.sentinel_servers();
        if planned
            .fault
            .server()
            .is_some_and(|it| sentinels.contains(&it))
        {
            spans.extend(trouble_of_sentinels(plan, planned, process));
        } else if is_trouble(plan, &planned.fault, process) {
            spans.push((planned.at, planned.end() + plan.settles()));
        }
    }
    spans
}

/// Sentinels that hang or fail cost nothing while the master stays the same, or while another one knows the new master.
/// But a new connection waits for those that answer within a quarter of a second, also for the round that has begun before.
fn trouble_of_sentinels(plan: &Plan, planned: &Planned, process: usize) -> Vec<(u64, u64)> {
    let ends = planned.end() + plan.settles();
    let mut faults = plan.faults.iter();
    let switches = faults.any(|it| matches!(it.fault, Fault::Promote { .. }) && it.at < ends);
    let is_good = |sentinel: usize| {
        let mut faults = plan.faults.iter().map(|it| &it.fault);
        !faults.any(|it| {
            it.server() == Some(sentinel) && it.process().is_none_or(|its| its == process)
        })
    };
    let lasts = plan.processes[process].operation_timeout;
    let is_slow = matches!(planned.fault, Fault::Slow { process: of, by, .. } if of == process && 4 * by >= lasts);
    if is_slow || switches && !plan.sentinel_servers().any(is_good) {
        return vec![(planned.at, ends)];
    }
    let noticed = NOTICED + 40 * plan.latency;
    vec![
        (planned.at, planned.at + noticed),
        (planned.end(), planned.end() + noticed),
    ]
}

fn is_trouble(plan: &Plan, fault: &Fault, process: usize) -> bool {
    let servers: Vec<usize> = (0..plan.data_servers()).collect();
    match fault {
        Fault::Promote { .. } => true,
        Fault::StopReplica { .. } => plan.acks > 0,
        fault => disturbs(fault, process, &servers),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Owning;
    use super::super::tests::{asks, calls, calm, plans, rules};
    use super::*;
    use crate::plan::Topology;
    use crate::world::MILLI;

    #[test]
    fn a_call_has_no_answer_only_if_its_future_rested() {
        let broken = |rests: Option<u64>| {
            let mut ledger = Ledger::default();
            let call = asks(&mut ledger, Owning::Alone, Some(0), 4, Some(6));
            ledger.calls[call].answer = Answer::Refused("Unavailable".to_owned());
            ledger.calls[call].rests = rests;
            ledger.check_quiet(&calm(), &[]);
            rules(&ledger)
        };
        assert!(broken(Some(6 * SECOND)).is_empty());
        assert_eq!(broken(None), ["refused or lost without trouble"]);
    }

    #[test]
    fn a_slow_sentinel_keeps_a_connection_waiting() {
        // By how much a sentinel is slow for a process, on each way.
        let broken = |process: usize, by: u64| {
            let mut plan = calm();
            (plan.topology, plan.sentinels) = (Topology::Sentinel, 1);
            let server = plan.sentinel_servers().start;
            let slow = Fault::Slow {
                process,
                server,
                by,
            };
            plans(&mut plan, (2_000, 8_000), slow);
            plan.processes[0].operation_timeout = 200 * MILLI;
            let mut ledger = Ledger::default();
            calls(&mut ledger, Owning::Alone, Some(0), 5, Some(6)).answer =
                Answer::Refused("Unavailable".to_owned());
            ledger.check_quiet(&plan, &[]);
            rules(&ledger)
        };
        assert!(broken(0, 50 * MILLI).is_empty());
        let rule = ["refused or lost without trouble"];
        assert_eq!(broken(0, 49 * MILLI), rule);
        assert_eq!(broken(1, 50 * MILLI), rule);
    }
}
