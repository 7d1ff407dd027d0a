//! Shrinks a plan: takes away what a violation does not need.

use crate::history::{Log, run};
use crate::plan::Plan;
use crate::world::MILLI;

/// Runs at most so many histories.
const TRIALS: u32 = 2_000;

/// A plan that still shows a violation of the rule, with fewer faults, processes, tasks and keys, and shorter work.
///
/// Each smaller plan draws other random numbers while it runs. So a smaller plan may lose the violation, and one that is
/// smaller still may have it again.
pub fn shrink(plan: &Plan, rule: &str) -> Plan {
    let mut smallest = plan.clone();
    let mut trials = 0;
    loop {
        let smaller = smaller(&smallest).into_iter().find(|plan| {
            trials += 1;
            trials <= TRIALS && shows(plan, rule)
        });
        match smaller {
            Some(smaller) => smallest = smaller,
            None => return smallest,
        }
    }
}

fn shows(plan: &Plan, rule: &str) -> bool {
    let report = run(plan, Log::No);
    report.violations.iter().any(|it| it.rule == rule)
}

/// Plans that lack one thing, the largest thing first.
fn smaller(plan: &Plan) -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut with = |change: &dyn Fn(&mut Plan)| {
        let mut smaller = plan.clone();
        change(&mut smaller);
        if smaller != *plan {
            plans.push(smaller);
        }
    };
    for process in (1..plan.processes.len()).rev() {
        // Only the last one, because faults name processes by their numbers.
        let is_last = process + 1 == plan.processes.len();
        if is_last {
            with(&|plan| {
                plan.processes.pop();
                let faults = &mut plan.faults;
                faults.retain(|it| it.fault.process().is_none_or(|named| named < process));
            });
        }
    }
    for fault in 0..plan.faults.len() {
        with(&|plan| drop(plan.faults.remove(fault)));
    }
    for process in 0..plan.processes.len() {
        for task in 0..plan.processes[process].tasks.len() {
            with(&|plan| {
                plan.processes[process].tasks.remove(task);
            });
        }
    }
    for eighth in 1..8 {
        with(&|plan| plan.work_ends = (plan.work_ends / 8 * eighth).max(100 * MILLI));
    }
    with(&|plan| plan.keys = 1);
    with(&|plan| plan.stops_inside = false);
    with(&|plan| plan.stops_amid_a_release = false);
    with(&|plan| plan.cancels = 0);
    with(&|plan| plan.clocks.clear());
    with(&|plan| plan.far = 0);
    with(&|plan| plan.are_recent = false);
    with(&|plan| plan.exact_rights = false);
    for process in 0..plan.processes.len() {
        with(&|plan| plan.processes[process].leaves = None);
    }
    for verb in 0..plan.verbs.len() {
        if plan.verbs.len() > 1 {
            with(&|plan| {
                plan.verbs.remove(verb);
            });
        }
    }
    plans
}
