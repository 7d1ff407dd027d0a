//! Keys that stay taken without a share, because the release of the last one was interrupted while their slot moved.
//!
//! While a slot moves, a release deletes the set of shares, and then the key. A process that stands still in between, or
//! whose connection breaks or whose time is over, leaves the key to its end. The guide says so, and the rules about waiting leave such keys
//! out.

use super::Ledger;
use super::answers::{spans, spans_of};
use super::cluster::longest_in_parts;
use crate::plan::{Plan, ProcessPlan, Topology, lock_name};
use crate::world::{MILLI, State};

/// The value of a key that several shares have.
const SEVERAL: &[u8] = b"shared/lockkit";
/// The longest time between the two steps of a release that is not interrupted.
const STEP: u64 = 100 * MILLI;

impl Ledger {
    /// Finds the keys that had no share for longer than a release takes.
    pub fn find_interrupted(&mut self, plan: &Plan, state: &State) {
        // A release is also over with its time. Where that is shorter than its steps, the second one may be missing.
        let may_be_late =
            |process: &ProcessPlan| process.operation_timeout < longest_in_parts(plan);
        let is_interrupted_at_all =
            plan.has(|fault| !fault.is_hidden()) || plan.processes.iter().any(may_be_late);
        if plan.topology == Topology::Cluster && is_interrupted_at_all {
            let keys = (0..plan.keys).filter(|key| is_interrupted(plan, state, *key));
            self.interrupted = keys.collect();
        }
    }
}

fn is_interrupted(plan: &Plan, state: &State, key: usize) -> bool {
    let name = lock_name(key);
    let hosts = state.hosts.iter();
    let texts = hosts.filter_map(|host| host.texts.get(name.as_bytes()));
    let mut texts: Vec<_> = texts.flatten().collect();
    texts.sort_unstable();
    let sets = spans_of(state, 0..state.hosts.len(), &plan.topology.shares_name(key));
    let taken = spans(state, key);
    let each = texts.iter().enumerate();
    let mut of_several = each.filter(|(_, (_, text))| text == SEVERAL);
    of_several.any(|(at, (from, _))| {
        let next = texts.get(at + 1).map_or(state.now, |next| next.0);
        let end = taken.iter().find(|it| it.0 <= *from && *from <= it.1);
        let until = end.map_or(*from, |it| it.1).min(next);
        let covered = sets.iter().filter(|it| it.0 <= until).map(|it| it.1).max();
        until > covered.unwrap_or(*from).max(*from) + STEP
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{with, world};
    use super::*;
    use crate::world::{Fault, SECOND};

    /// The keys that stay taken where the set of shares ends at this second, and the key at second 9.
    fn left_with(set_ends: u64) -> Vec<usize> {
        left_in(with(Fault::Stop { process: 0 }), set_ends)
    }

    fn left_in(mut plan: Plan, set_ends: u64) -> Vec<usize> {
        (plan.topology, plan.keys) = (Topology::Cluster, 1);
        let sim = world();
        sim.change(|state| {
            let host = &mut state.hosts[0];
            let word = vec![(SECOND, SEVERAL.to_vec())];
            host.texts.insert(b"lockkit:k0".to_vec(), word);
            let mut lives = |name: &str, ends: u64| {
                let life = vec![(SECOND, Some(ends * SECOND))];
                host.lives.insert(name.as_bytes().to_vec(), life);
            };
            lives("lockkit:k0", 9);
            lives("lockkit:!s:{lockkit:k0}", set_ends);
            state.now = 9 * SECOND;
        });
        let mut ledger = Ledger::default();
        sim.look(|state| ledger.find_interrupted(&plan, state));
        ledger.interrupted
    }

    #[test]
    fn a_key_without_a_set_of_shares_was_left_by_a_release() {
        assert_eq!(left_with(2), [0]);
        assert!(left_with(10).is_empty());
    }

    #[test]
    fn a_release_that_has_less_time_than_its_steps_take_may_leave_a_key() {
        let of_so_much_time = |timeout: u64| {
            let mut plan = with(Fault::MoveSlot {
                slot: 0,
                further: 0,
                in_dispute: false,
            });
            plan.latency = 5_000_000;
            for process in &mut plan.processes {
                process.operation_timeout = timeout;
            }
            left_in(plan, 2)
        };
        assert_eq!(of_so_much_time(200 * MILLI), [0]);
        assert!(of_so_much_time(10 * SECOND).is_empty());
    }
}
