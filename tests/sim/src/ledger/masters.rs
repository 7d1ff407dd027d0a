//! Failovers: a process that has heard of a new master uses no other one, and a forgotten owner stops.

use super::answers::left;
use super::{Claim, Ledger, Owning};
use crate::plan::{Plan, Topology};
use crate::world::{Fault, MICRO, MILLI, Planned, SECOND, State, slowest_segment};

/// The time in which a manager hears of a new master from a sentinel that it reaches: it asks them every half second, and a
/// look may wait for one that hangs.
const HEARS: u64 = 1_500 * MILLI;
/// The longest pause between two renewals.
const LONGEST_PAUSE: u64 = 10 * SECOND;
/// The time of a renewal, and of one that is repeated because its connection has ended.
const RENEWAL: u64 = 1_500 * MILLI;
/// The time of the steps in which a caller hears of an answer.
const STEPS: u64 = 3 * MILLI;

impl Ledger {
    /// Checks that an owner that has asked after a failover has its key on the new master.
    pub(super) fn check_master(&mut self, plan: &Plan, state: &State, call: usize, believes: f64) {
        let it = &self.calls[call];
        let Some(since) = has_left(plan, state, it.process) else {
            return;
        };
        if it.asked < since || it.owning != Owning::Alone {
            return;
        }
        for key in it.keys.clone() {
            let left = left(state, state.service.master, key);
            // The tasks of a process pass a lock on without a request.
            let is_older = self.spans(self.calls[call].process, key, since);
            if believes > left as f64 && !is_older {
                let text = format!(
                    "at {:.6}, the former master was left by {:.6}: {}",
                    state.now as f64 / 1e9,
                    since as f64 / 1e9,
                    self.show(call)
                );
                self.violates("the new master does not have a lock", text);
            }
        }
    }

    /// Returns whether a call of the process for the key began before a time and was not over then.
    fn spans(&self, process: usize, key: usize, time: u64) -> bool {
        let calls = self.calls.iter().enumerate();
        let mut calls = calls.filter(|(_, it)| it.process == process && it.keys.contains(&key));
        calls.any(|(number, it)| {
            let believed = self.believed_until(number);
            it.asked < time
                && it
                    .answered
                    .max(it.left)
                    .max(believed)
                    .is_none_or(|end| end >= time)
        })
    }

    /// Returns whether two owners may be there at once, because a failover has forgotten one of them a short while ago.
    pub(super) fn is_forgotten(
        &self,
        plan: &Plan,
        state: &State,
        one: &Claim,
        other: &Claim,
    ) -> bool {
        let begins = one.from.max(other.from);
        let ends = one.until.min(other.until);
        let mut both = [one, other].into_iter();
        both.any(|claim| {
            let forgets = plan.may_forget() || self.ends_early(plan, state, claim, begins);
            let stops = || self.stops_by(plan, state, claim, begins);
            forgets && stops().is_none_or(|stops| ends <= stops)
        })
    }

    /// Returns whether a failover between the request of a lock and a later time may end the lock early, because the new master's
    /// clock is ahead of the former one's by more than 1 % of the ttl.
    fn ends_early(&self, plan: &Plan, state: &State, claim: &Claim, begins: u64) -> bool {
        // Asked first, because the look at all calls takes long.
        if state.service.switches.is_empty() {
            return false;
        }
        let asked = self.asked_by_its_process(claim.call);
        let most = (self.calls[claim.call].ttl / 100 / MICRO) as i64;
        let mut switches = state.service.switches.iter();
        switches.any(|switch| {
            let ahead =
                |at: u64| clock(plan, state, switch.to, at) - clock(plan, state, switch.from, at);
            let steps = plan
                .faults
                .iter()
                .filter(|it| it.fault.clock_step().is_some());
            let times = steps.map(|it| it.at).chain([asked, switch.at]);
            let mut times = times.filter(|at| (asked..=switch.at).contains(at));
            switch.at <= begins && times.any(|at| ahead(at) > most)
        })
    }

    /// The time by which an owner that a failover has forgotten must have noticed it.
    fn stops_by(&self, plan: &Plan, state: &State, claim: &Claim, from: u64) -> Option<u64> {
        let call = &self.calls[claim.call];
        let since = has_left(plan, state, call.process)?.max(from);
        let by = since + (call.ttl / 3).min(LONGEST_PAUSE) + RENEWAL + 40 * plan.latency;
        let servers: Vec<usize> = (0..plan.data_servers()).collect();
        let mut faults = plan.faults.iter();
        let is_disturbed = faults.any(|it| {
            disturbs(&it.fault, call.process, &servers) && it.at < by && it.end() > since
        });
        (!is_disturbed).then_some(by)
    }

    /// Checks that managers whose master answers ask the sentinels seldom.
    pub fn check_looks(&mut self, plan: &Plan, state: &State) {
        if plan.topology != Topology::Sentinel || !plan.faults.is_empty() || plan.stops_inside {
            return;
        }
        // Two looks a second with two questions each, and one look for each new connection.
        let looks = plan.processes.len() as u64 * (2 * state.now / SECOND + 20);
        for server in plan.sentinel_servers() {
            let commands = state.hosts[server].server.commands;
            if commands > 2 * looks {
                let text = format!("s{server} was sent {commands} commands");
                self.violates("sentinels are asked too often", text);
            }
        }
    }
}

/// The time from which a process uses the present master only, if it must have heard of it.
fn has_left(plan: &Plan, state: &State, process: usize) -> Option<u64> {
    let switch = state.service.switches.last()?;
    // Sentinels that were set up anew are not believed while the former master answers.
    if plan.stops_inside || plan.has(|fault| *fault == Fault::ResetSentinels) {
        return None;
    }
    let hears = HEARS + 40 * plan.latency + 6 * plan.far;
    let is_quiet = |sentinel: usize, from: u64, to: u64| {
        let mut faults = plan.faults.iter();
        !faults.any(|it| {
            disturbs(&it.fault, process, &[sentinel, switch.to]) && it.at <= to && it.end() > from
        })
    };
    let heard = switch.told.iter().flat_map(|&(sentinel, told)| {
        let ends = plan.faults.iter().map(Planned::end);
        let begins = ends.filter(move |end| *end > told).chain([told]);
        let begins = begins.filter(move |from| is_quiet(sentinel, *from, from + hears));
        begins.map(|from| from + hears).collect::<Vec<_>>()
    });
    // Before a process connects anew, it asks the sentinels.
    let breaks = plan.faults.iter().filter(|it| {
        let breaks = match it.fault {
            Fault::EndConnections { server } | Fault::Restart { server, .. } => {
                server == switch.from
            }
            Fault::Cut {
                process: its,
                server,
            } => its == process && server == switch.from,
            _ => false,
        };
        let mut all = plan.sentinel_servers();
        breaks
            && switch.told.len() == all.len()
            && switch.told.iter().all(|(_, told)| *told < it.at)
            && all.all(|sentinel| is_quiet(sentinel, switch.at, it.at + SECOND))
    });
    // An answer of the former master may be on its way when the connection breaks, and a leader is noted when it arrives.
    let broken = breaks.map(|it| it.at + slowest_segment(plan.latency) + STEPS);
    heard.chain(broken).min()
}

/// By how much the clock of a server was ahead of true time then, in microseconds.
pub(super) fn clock(plan: &Plan, state: &State, server: usize, time: u64) -> i64 {
    let steps = plan.faults.iter().filter(|it| it.at > time);
    let later = steps.map(|it| match it.fault {
        Fault::StepClock { server: its, by } if its == server => by,
        _ => 0,
    });
    state.hosts[server].clock - later.sum::<i64>()
}

/// Returns whether a fault keeps a process from hearing of these servers.
pub(super) fn disturbs(fault: &Fault, process: usize, servers: &[usize]) -> bool {
    let is_about_replication = matches!(
        fault,
        Fault::Promote { .. } | Fault::StopReplica { .. } | Fault::Isolate { .. }
    );
    let is_its = fault.process().is_none_or(|its| its == process);
    let is_theirs = fault.server().is_none_or(|its| servers.contains(&its));
    !is_about_replication && is_its && is_theirs
}

#[cfg(test)]
mod tests {
    use super::super::tests::{owns, plans, with, world};
    use super::*;
    use crate::world::Switch;

    /// The rules that are broken by two owners, from second 3 to second 5 and from `begins` on, where the clock of the first
    /// master steps at second 4, and all replicas have acknowledged the lock of a second when one is promoted at `promoted`.
    fn broken(by: i64, promoted: u64, begins: u64) -> Vec<&'static str> {
        let mut plan = with(Fault::StepClock { server: 0, by });
        (plan.topology, plan.replicas, plan.acks) = (Topology::Sentinel, vec![0], 1);
        plan.faults[0].at = 4 * SECOND;
        let at = promoted / MILLI;
        plans(&mut plan, (at, at + 1), Fault::Promote { server: 1 });
        let mut ledger = Ledger::default();
        owns(&mut ledger, Owning::Alone, 1, 3, 5);
        owns(&mut ledger, Owning::Alone, 2, 4, 6);
        ledger.claims[1].from = begins;
        let sim = world();
        sim.change(|state| {
            state.add_server();
            state.hosts[0].clock = by;
            state.service.switches.push(Switch {
                at: promoted,
                from: 0,
                to: 1,
                told: Vec::new(),
            });
        });
        sim.judge(ledger, &plan, Ledger::check_owners)
    }

    #[test]
    fn a_failover_makes_a_second_owner_only_where_the_new_clock_is_ahead_of_the_former_one() {
        let rule = "too many owners at once";
        let (promoted, begins) = (4_100 * MILLI, 4_200 * MILLI);
        assert!(broken(-11_000, promoted, begins).is_empty());
        for by in [-9_000, 0, 1_000_000] {
            assert_eq!(broken(by, promoted, begins), [rule]);
        }
        // The failover is before the clock is set back, or after the second owner.
        assert_eq!(broken(-11_000, 3_900 * MILLI, begins), [rule]);
        assert_eq!(broken(-11_000, 4_300 * MILLI, begins), [rule]);
    }
}
