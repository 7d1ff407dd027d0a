//! Servers with replicas: an owner believes no longer than its key lives on all servers that must have it, and a release
//! waits for no replica.

use super::Ledger;
use super::answers::left;
use crate::plan::{Plan, Topology};
use crate::world::{Fault, MILLI, State, slowest_segment};

impl Ledger {
    /// Checks that replicas that receive nothing delay no release.
    pub fn check_releases(&mut self, plan: &Plan, state: &State) {
        let others = plan.has(|fault| !matches!(fault, Fault::StopReplica { .. }));
        if plan.topology != Topology::Replicas || plan.has_stops() || others {
            return;
        }
        // It may stand behind one command, and its batch behind another one.
        let longest = 4 * slowest_segment(plan.latency) + 20 * MILLI;
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            let (Some(left), Some(released)) = (call.left, call.released) else {
                continue;
            };
            let mut others = self.calls.iter();
            // The first one of a process connects.
            let is_first = !others.any(|it| {
                it.process == call.process && it.released.is_some_and(|released| released < left)
            });
            let longest = longest + state.connects_for(plan, call.process, left, released);
            if released > left + longest && !is_first && !plan.ends_early(call.process) {
                self.violates("a release waits for replicas", self.show(number));
            }
        }
    }
}

/// For how long the servers that must have a key still have it, in true time. `None`: no server must have it. `since`: no
/// server has confirmed the lock to its owner before.
pub(super) fn lives(plan: &Plan, state: &State, key: usize, since: u64) -> Option<i64> {
    let servers = 0..plan.data_servers();
    let mut lefts: Vec<i64> = servers.map(|server| left(state, server, key)).collect();
    let master = lefts[state.service.master];
    lefts.sort_unstable_by(|one, other| other.cmp(one));
    let acks = usize::from(plan.acks);
    if state.service.switches.is_empty() {
        return Some(master.min(lefts[acks]));
    }
    if acks >= plan.replicas.len() {
        // All replicas have acknowledged the key, so each server has it, whichever is promoted.
        return Some(lefts[acks]);
    }
    // The master that granted it has it, as long as it keeps its data.
    let gave_up = state.service.demoted.iter().any(|time| *time >= since);
    (!gave_up).then_some(lefts[0])
}

#[cfg(test)]
mod tests {
    use super::super::Owning;
    use super::super::tests::{asks, calm, world};
    use super::*;
    use crate::world::{SECOND, Switch};

    /// The rules that are broken where an owner that asks at second 5, with a ttl of a second, believes for so long at that
    /// time in a key that no server has, and a former master has given up its data so long before.
    fn broken(believes: u64, before: u64) -> Vec<&'static str> {
        let mut plan = calm();
        (plan.topology, plan.replicas) = (Topology::Sentinel, vec![0]);
        let mut ledger = Ledger::default();
        let call = asks(&mut ledger, Owning::Alone, Some(0), 5, Some(5));
        let sim = world();
        sim.change(|state| {
            state.add_server();
            state.now = 5 * SECOND;
            let (at, told) = (SECOND, Vec::new());
            let switch = Switch {
                at,
                from: 1,
                to: 0,
                told,
            };
            state.service.switches.push(switch);
            state.service.demoted.push(state.now - before);
        });
        sim.judge(ledger, &plan, |it, plan, state| {
            it.check_deadline(plan, state, call, believes)
        })
    }

    #[test]
    fn only_a_belief_of_before_a_failover_may_be_about_a_lost_key() {
        let rule = "an owner believes longer than its key lives";
        assert!(broken(300 * MILLI, 600 * MILLI).is_empty());
        assert_eq!(broken(300 * MILLI, 800 * MILLI), [rule]);
    }
}
