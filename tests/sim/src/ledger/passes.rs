//! A lease that passes from task to task of a process stays there as long as no process waits, and not for longer.

use super::order::Waiting;
use super::{Claim, Ledger};
use crate::plan::{Plan, Topology, lock_name};
use crate::world::{MICRO, MILLI, State};

/// A lease passes on so often while a process waits, and for so long.
const PASSES: usize = 32;
const TIME: u64 = 20 * MILLI;
/// The time between the end of one task and the first look of the next.
const STEPS: u64 = 2 * MILLI;

/// Owners of one process, one behind the other, without another process in between.
#[derive(Clone)]
struct Run {
    process: usize,
    key: usize,
    /// The first looks of the owners.
    begins: Vec<u64>,
    last_call: usize,
}

impl Run {
    /// The parts of the run that begin with a turn: the master has given the key to a waiter of this process that was in the
    /// queue before the other process asked.
    fn without_turns(&self, state: &State, other: &Waiting) -> Vec<Run> {
        let master = &state.hosts[state.service.master];
        let given = master.given.get(lock_name(self.key).as_bytes());
        let is_turn = |before: u64, begin: u64| {
            let mut given = given.into_iter().flatten();
            given.any(|(at, age)| {
                let queued = at.saturating_sub(age.unsigned_abs() * MICRO);
                (before..=begin).contains(at) && *age >= 0 && queued < other.asked
            })
        };
        let part = |begins: &[u64]| Run {
            begins: begins.to_vec(),
            ..self.clone()
        };
        let parts = self
            .begins
            .chunk_by(|before, begin| !is_turn(*before, *begin));
        parts.map(part).collect()
    }
}

impl Ledger {
    pub(super) fn check_passes(&mut self, plan: &Plan, state: &State, waiting: &[Waiting]) {
        let mut claims = self.claims.clone();
        claims.sort_by_key(|claim| (claim.key, claim.from));
        let runs = self.runs(&claims);
        for one in waiting {
            let others = runs.iter().filter(|run| {
                run.key == one.key && run.process != one.process && run.begins[0] < one.until
            });
            for run in others.flat_map(|run| run.without_turns(state, one)) {
                let since = one.from.max(run.begins[0]);
                let beside = run
                    .begins
                    .iter()
                    .filter(|at| (since..one.until).contains(at));
                let beside: Vec<u64> = beside.copied().collect();
                let last = beside.last().copied().unwrap_or(0);
                // The first owner of the run is no pass.
                let is_long = last > since + TIME + TIME / 100 + STEPS && last != run.begins[0];
                if is_long || beside.len() > PASSES + 1 {
                    let text = format!(
                        "{} owners from {:.3} to {:.3}:\n  {}\n  {}",
                        beside.len(),
                        since as f64 / 1e6,
                        last as f64 / 1e6,
                        self.show(one.call),
                        self.show(run.last_call)
                    );
                    self.violates("a process passes a lock on beside a waiter for long", text);
                    return;
                }
            }
        }
        // On PostgreSQL there are too few fencing tokens for a lease that stays for long.
        let may_stay = plan.topology != Topology::Postgres;
        if may_stay
            && plan.processes.len() == 1
            && plan.latency <= MILLI / 3
            && plan.faults.is_empty()
        {
            self.check_stays(&claims);
        }
    }

    fn runs(&self, claims: &[Claim]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for claim in claims {
            let process = self.calls[claim.call].process;
            match runs.last_mut() {
                Some(run) if (run.key, run.process) == (claim.key, process) => {
                    run.begins.push(claim.from);
                    run.last_call = claim.call;
                }
                _ => runs.push(Run {
                    process,
                    key: claim.key,
                    begins: vec![claim.from],
                    last_call: claim.call,
                }),
            }
        }
        runs
    }

    /// Checks that a lease does not leave a process that is alone each time after the shortest limit.
    ///
    /// The latency decides which leases leave. Some do, and at least one stays longer.
    fn check_stays(&mut self, claims: &[Claim]) {
        let (mut short, mut long) = (0, 0);
        let mut since = claims.first().map_or(0, |claim| claim.from);
        for pair in claims.windows(2) {
            let [one, next] = pair else { continue };
            let (left, asked) = (self.calls[one.call].left, self.calls[next.call].asked);
            let waits = left.is_some_and(|left| asked < left);
            if next.key == one.key && next.token == one.token + 1 {
                continue;
            }
            match one.until.saturating_sub(since) {
                time if waits && (TIME / 4 * 3..3 * TIME).contains(&time) => short += 1,
                time if time >= 3 * TIME => long += 1,
                _ => {}
            }
            since = next.from;
        }
        if short >= 8 && long == 0 {
            let text = format!("{short} times");
            self.violates("a lease leaves a process that is alone", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Owning;
    use super::super::tests::{asks, calm, owns, world};
    use super::*;
    use crate::world::SECOND;

    /// The rules that are broken where a process has the key from second 2 to 3 and from 4 to 5, another one waits for it
    /// from 3 s on, and the server has given it to a waiter at this time, after so many milliseconds in the queue.
    fn broken(at: u64, waited: i64) -> Vec<&'static str> {
        let mut ledger = Ledger::default();
        owns(&mut ledger, Owning::Alone, 1, 2, 3);
        owns(&mut ledger, Owning::Alone, 2, 4, 5);
        let call = asks(&mut ledger, Owning::Alone, None, 3, Some(6));
        ledger.calls[call].process = 1;
        let one = Waiting {
            call,
            process: 1,
            key: 0,
            asked: 3 * SECOND,
            from: 3 * SECOND,
            until: 6 * SECOND,
        };
        let sim = world();
        sim.change(|state| {
            let given = vec![(at * MILLI, waited * 1_000)];
            state.hosts[0].given.insert(b"lockkit:k0".to_vec(), given);
        });
        sim.judge(ledger, &calm(), |it, plan, state| {
            it.check_passes(plan, state, &[one])
        })
    }

    #[test]
    fn a_turn_of_a_waiter_that_was_in_the_queue_before_is_no_pass() {
        let rule = "a process passes a lock on beside a waiter for long";
        assert!(broken(3_900, 901).is_empty());
        assert_eq!(broken(3_900, 899), [rule]);
        assert_eq!(broken(1_900, 901), [rule]);
        assert_eq!(broken(4_100, 1_200), [rule]);
    }
}
