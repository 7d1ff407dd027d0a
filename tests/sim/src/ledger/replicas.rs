//! Servers with replicas: an owner believes no longer than its key lives on all servers that must have it, and a release
//! waits for no replica.

use super::Ledger;
use super::answers::left;
use crate::plan::{Plan, Topology};
use crate::world::{Fault, MILLI, State, slowest_segment};

impl Ledger {
    /// Checks that replicas that receive nothing delay no release.
    pub fn check_releases(&mut self, plan: &Plan) {
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
            if released > left + longest && !is_first && !plan.ends_early(call.process) {
                let text = self.show(number);
                self.violates("a release waits for replicas", text);
            }
        }
    }
}

/// For how long the servers that must have a key still have it, in true time. `None`: no server must have it. `since`: when
/// its owner asked for it.
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
    let gave_up = state.service.demoted.is_some_and(|time| time >= since);
    (!gave_up).then_some(lefts[0])
}
