//! Compares lock-core's protocol with the Lua scripts: the same random operations on both, at the same times.
//!
//! The scripts run in a simulated server. After each operation the reply, the pushes and all keys are compared. The clock
//! goes back and jumps to the ends of keys, the server runs out of memory, and processes die and come back.
//!
//! * `SIM_OPERATIONS`: how many operations are compared; 100 000 if not set
//! * `SIM_SEED`: the first seed; 1 if not set

mod again;
mod both;
mod faults;
mod random;
mod seen;
mod smallest;

use std::collections::BTreeMap;
use std::env;

use super::differential::kit;

use self::both::{Both, Step};
use self::random::Choices;

/// The operations of one seed. Each seed begins without data.
const STEPS: u64 = 400;

#[test]
fn the_scripts_do_what_the_protocol_says() {
    let number = |name| env::var(name).ok()?.parse::<u64>().ok();
    let operations = number("SIM_OPERATIONS").unwrap_or(100_000);
    let first = number("SIM_SEED").unwrap_or(1);
    let scripts = kit::scripts();
    let mut replies = BTreeMap::new();
    for seed in first..first + operations.div_ceil(STEPS) {
        if let Some(steps) = differing_steps(seed, &scripts, &mut replies) {
            panic!("seed {seed}\n{}", smallest::of(&steps, &scripts));
        }
    }
    println!("{replies:#?}");
}

/// Compares one seed, and counts the replies. Returns the steps up to the first difference.
fn differing_steps(
    seed: u64,
    scripts: &BTreeMap<String, String>,
    replies: &mut BTreeMap<String, u64>,
) -> Option<Vec<Step>> {
    let mut choices = Choices::new(seed);
    let mut both = Both::new(scripts);
    let mut steps = Vec::new();
    for _ in 0..STEPS {
        let step = choices.next(&both);
        steps.push(step.clone());
        let Ok(answer) = both.run(&step) else {
            return Some(steps);
        };
        *replies.entry(answer.kind(&step)).or_default() += 1;
        choices.heard(&step, &answer);
    }
    None
}
