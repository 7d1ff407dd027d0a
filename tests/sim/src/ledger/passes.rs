//! A lease that passes from task to task of a process stays there as long as no process waits, and not for longer.

use super::order::Waiting;
use super::{Claim, Ledger};
use crate::plan::Plan;
use crate::world::MILLI;

/// A lease passes on so often while a process waits, and for so long.
const PASSES: usize = 32;
const TIME: u64 = 20 * MILLI;
/// The time between the end of one task and the first look of the next.
const STEPS: u64 = 2 * MILLI;

/// Owners of one process, one behind the other, without another process in between.
struct Run {
    process: usize,
    key: usize,
    /// The first looks of the owners.
    begins: Vec<u64>,
    last_call: usize,
}

impl Ledger {
    pub(super) fn check_passes(&mut self, plan: &Plan, waiting: &[Waiting]) {
        let mut claims = self.claims.clone();
        claims.sort_by_key(|claim| (claim.key, claim.from));
        let runs = self.runs(&claims);
        for one in waiting {
            let others = runs.iter().filter(|run| {
                run.key == one.key && run.process != one.process && run.begins[0] < one.until
            });
            for run in others {
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
        if plan.processes.len() == 1 && plan.latency <= MILLI / 3 && plan.faults.is_empty() {
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
