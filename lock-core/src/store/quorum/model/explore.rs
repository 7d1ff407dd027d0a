//! Explores all states breadth first.

use super::steps::QuorumStep;
use super::world::{QuorumBounds, QuorumViolation, QuorumWorld};
use crate::model::seen::{ByHash, print};

/// The result when all states are explored, or one of them is wrong.
#[derive(Debug)]
pub(super) struct QuorumFound {
    pub(super) states: usize,
    /// The length of the longest way to a state.
    pub(super) depth: usize,
    pub(super) wrong: Option<(QuorumViolation, Vec<QuorumStep>)>,
}

/// The predecessor of each state.
type QuorumSeen = ByHash<u64>;

/// Explores all states.
pub(super) fn explore(limits: &QuorumBounds) -> QuorumFound {
    let start = QuorumWorld::new(limits).canonical(limits);
    let mut seen = QuorumSeen::default();
    seen.insert(print(&start), 0);
    let (mut layer, mut steps, mut depth) = (vec![start], Vec::new(), 0);
    loop {
        let mut next = Vec::new();
        for world in &layer {
            let here = print(world);
            steps.clear();
            world.steps(limits, &mut steps);
            for step in &steps {
                match world.after(*step, limits) {
                    Ok(after) => {
                        let after = after.canonical(limits);
                        seen.entry(print(&after)).or_insert_with(|| {
                            next.push(after);
                            here
                        });
                    }
                    Err(wrong) => {
                        let way = way_to(here, wrong, &seen, limits);
                        return QuorumFound {
                            states: seen.len(),
                            depth: way.len(),
                            wrong: Some((wrong, way)),
                        };
                    }
                }
            }
        }
        if next.is_empty() {
            return QuorumFound {
                states: seen.len(),
                depth,
                wrong: None,
            };
        }
        depth += 1;
        layer = next;
    }
}

/// The steps to a state and the violation there, with the same names of nodes and clients in all steps.
fn way_to(
    mut state: u64,
    wrong: QuorumViolation,
    seen: &QuorumSeen,
    limits: &QuorumBounds,
) -> Vec<QuorumStep> {
    let mut prints = Vec::new();
    while state != 0 {
        prints.push(state);
        state = seen[&state];
    }
    let mut world = QuorumWorld::new(limits);
    let mut way = Vec::new();
    for print_of in prints.into_iter().rev().skip(1) {
        let (step, after) = taken(&world, limits)
            .find_map(|(step, after)| {
                let after = after.ok()?;
                (print(&after.canonical(limits)) == print_of).then_some((step, after))
            })
            .expect("it was come this way before");
        way.push(step);
        world = after;
    }
    let last = taken(&world, limits).find(|(_, after)| after.as_ref().err() == Some(&wrong));
    way.extend(last.map(|(step, _)| step));
    way
}

fn taken(
    world: &QuorumWorld,
    limits: &QuorumBounds,
) -> impl Iterator<Item = (QuorumStep, Result<QuorumWorld, QuorumViolation>)> {
    let mut steps = Vec::new();
    world.steps(limits, &mut steps);
    let (world, limits) = (*world, limits.clone());
    steps
        .into_iter()
        .map(move |step| (step, world.after(step, &limits)))
}
