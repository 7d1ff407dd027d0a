//! Waiters that are not told of the end of a lease, and ask at last when an earlier, longer one would have ended.
//!
//! The server tells no waiter of a lease that ends by itself. A waiter asks when the lease ends for which it was refused. The
//! next owner may have a shorter one, and end first. A grant is shorter, too. Only the process that has handed the key over
//! looks at its end, if it is still there.

use super::{Call, Ledger};
use crate::plan::{Plan, Topology, lock_name};
use crate::world::{Fault, Planned, SECOND, State};

/// The longest time after which a waiter asks without a push.
pub(super) const LAST_RESORT: u64 = 31 * SECOND;
/// A renewal before the end of a process may arrive later than that.
const ON_ITS_WAY: u64 = SECOND;
/// The time of a grant, in which an owner that was handed the key renews it.
const GRANT: u64 = 2 * SECOND;

impl Ledger {
    /// Returns whether the lease of a key that is free since `free` has ended by itself then, and its waiters were not told.
    pub(super) fn is_end_unheard(&self, plan: &Plan, state: &State, key: usize, free: u64) -> bool {
        self.end_is_heard_by(plan, state, key, free) >= free + LAST_RESORT
    }

    /// When waiters ask at last for a key that is known to be free since `free`: its lease has ended by itself up to then, because
    /// its process had ended, and another lease may have been longer, or the process that had handed the key over has ended too.
    pub(super) fn end_is_heard_by(&self, plan: &Plan, state: &State, key: usize, free: u64) -> u64 {
        let end_of = |process: usize| {
            let ended = || state.processes.get(process)?.ended;
            plan.dies(process).or_else(ended)
        };
        let ended_by_itself = |it: &Call| {
            let lasts = it.ttl + it.ttl / 50 + ON_ITS_WAY;
            let is_left = it.keys.contains(&key) && it.released.is_none();
            let end = end_of(it.process).filter(|end| is_left && *end <= free)?;
            Some(free.min(end + lasts - 1))
        };
        let dies_with_its_grant = |it: &Call| {
            let end = plan.dies(it.process);
            it.answered.is_some_and(|granted| {
                let is_new = end.is_some_and(|end| (granted..granted + GRANT).contains(&end));
                let is_gone = |process: usize| {
                    // A manager that is dropped looks no more.
                    let ends = [end_of(process), plan.processes[process].leaves];
                    ends.into_iter().flatten().any(|end| end < granted + GRANT)
                };
                let hands_over = |before: &Call| {
                    let left = before.left;
                    (before.process == it.process || is_gone(before.process))
                        && before.keys.contains(&key)
                        && left.is_some_and(|left| (left..left + ON_ITS_WAY).contains(&granted))
                };
                is_new && self.calls.iter().any(hands_over)
            })
        };
        if is_untold(plan, state, key, free) {
            return free + LAST_RESORT;
        }
        let is_unheard = |it: &Call| plan.ttls.len() > 1 || dies_with_its_grant(it);
        let calls = self.calls.iter();
        let ends = calls.filter_map(|it| ended_by_itself(it).filter(|_| is_unheard(it)));
        ends.max().map_or(0, |end| end + LAST_RESORT)
    }
}

/// Returns whether a process has ended or stands still right behind a write that gives the key to a waiter. On PostgreSQL the
/// message of the write is a statement of its own, which it may not have sent.
pub(super) fn is_untold(plan: &Plan, state: &State, key: usize, free: u64) -> bool {
    let ended = |process: usize| {
        let ended = state.processes.get(process).and_then(|it| it.ended);
        plan.dies(process).or(ended)
    };
    let stops = |it: &Planned| matches!(it.fault, Fault::Stop { .. }).then_some(it.at);
    let stops = plan.faults.iter().filter_map(stops);
    let ends = (0..plan.processes.len()).filter_map(ended).chain(stops);
    let ends: Vec<u64> = ends.collect();
    let given = state
        .hosts
        .first()
        .and_then(|host| host.given.get(lock_name(key).as_bytes()));
    let untold = |given: u64| {
        let near = plan.segments(2);
        let is_near = ends.iter().any(|end| end.abs_diff(given) <= near);
        is_near && (given..given + LAST_RESORT).contains(&free)
    };
    plan.topology == Topology::Postgres && given.into_iter().flatten().any(|it| untold(it.0))
}
