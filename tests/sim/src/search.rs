//! Searches for a violation: one seed after another.

use std::fmt::Write;
use std::ops::ControlFlow;

use crate::history::{Log, Report, run};
use crate::place::Place;
use crate::plan::Plan;
use crate::shrink::shrink;

/// What histories did, added up.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    pub histories: u64,
    pub calls: usize,
    pub grants: usize,
    pub steps: u64,
    pub commands: u64,
}

impl Sum {
    fn add(&mut self, report: &Report) {
        self.histories += 1;
        self.calls += report.ledger.calls.len();
        self.grants += report.grants;
        self.steps += report.steps;
        self.commands += report.commands;
    }
}

/// Runs the histories of each place, one seed after another, as long as `goes_on` says so.
///
/// # Errors
///
/// A violation, as text: the seed, the plan, and the smallest plan that shows it.
pub fn search(
    places: &[Place],
    first: u64,
    mut goes_on: impl FnMut(&Sum) -> ControlFlow<()>,
) -> (Sum, Result<(), String>) {
    let mut sum = Sum::default();
    for seed in first.. {
        for place in places {
            if goes_on(&sum).is_break() {
                return (sum, Ok(()));
            }
            let Some(plan) = place.plan(seed) else {
                continue;
            };
            let report = run(&plan, Log::No);
            sum.add(&report);
            if !report.violations.is_empty() {
                return (sum, Err(explain(&plan, &report)));
            }
        }
    }
    (sum, Ok(()))
}

/// A violation with its plan, and with the smallest plan that shows it.
pub fn explain(plan: &Plan, report: &Report) -> String {
    let mut text = plan.to_string();
    let tell = |text: &mut String, report: &Report| {
        for violation in report.violations.iter().take(4) {
            writeln!(text, "{violation}").expect("a text");
        }
    };
    tell(&mut text, report);
    let small = shrink(plan, report.violations[0].rule);
    writeln!(text, "\nThe smallest plan that shows it:\n{small}").expect("a text");
    tell(&mut text, &run(&small, Log::No));
    let name = format!("{:?}", plan.topology).to_lowercase();
    writeln!(
        text,
        "\nIn tests/sim, with its log: cargo run --release -- seed {name} {}",
        plan.seed
    )
    .expect("a text");
    text
}
