//! A breadth-first search through all states.
//!
//! A state is remembered by 64 bits of its hash. Among ten million states, the chance of a
//! collision is about one in three hundred thousand.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::seen::ByHash;
use super::world::{Limits, Step, World, Wrong};

/// The result of a search.
#[derive(Debug)]
pub(super) struct Exploration {
    pub(super) states: usize,
    /// The length of the longest path.
    pub(super) depth: usize,
    /// Whether the search saw every state within the limits.
    pub(super) complete: bool,
    pub(super) wrong: Option<(Wrong, Vec<Step>)>,
    /// The longest wait in ticks, once nothing failed any more.
    pub(super) longest_wait: u64,
}

/// The state from which each state was reached first, with the number of the step.
type Seen = ByHash<(u64, u16)>;

fn print(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Searches all states, up to `most` of them.
///
/// For one of `calm` states, the search also checks that every waiter gets the lock in the end.
pub(super) fn explore(limits: &Limits, most: usize, calm: u64) -> Exploration {
    let start = World::new(limits);
    let mut seen = Seen::default();
    seen.insert(print(&start), (0, 0));
    let mut found = Exploration {
        states: 1,
        depth: 0,
        complete: false,
        wrong: None,
        longest_wait: 0,
    };
    let mut layer = vec![start];
    while !layer.is_empty() {
        let mut next = Vec::new();
        for world in &layer {
            let here = print(world);
            for (number, step) in (0..).zip(world.steps(limits)) {
                let wrong = match world.after(step, limits) {
                    Ok(after) => {
                        let there = print(&after);
                        if seen.contains_key(&there) {
                            continue;
                        }
                        seen.insert(there, (here, number));
                        let wrong = ticks_to_rest(&after, there, calm, limits, &mut found);
                        next.push(after);
                        wrong.err()
                    }
                    Err(wrong) => Some(wrong),
                };
                if let Some(wrong) = wrong {
                    let mut path = path_to(here, &seen, limits);
                    path.push(step);
                    found.states = seen.len();
                    found.wrong = Some((wrong, path));
                    return found;
                }
            }
            if seen.len() >= most {
                found.states = seen.len();
                return found;
            }
        }
        found.depth += 1;
        layer = next;
    }
    found.states = seen.len();
    found.depth -= 1;
    found.complete = true;
    found
}

fn ticks_to_rest(
    world: &World,
    print: u64,
    calm: u64,
    limits: &Limits,
    found: &mut Exploration,
) -> Result<(), Wrong> {
    if calm == 0 || !print.is_multiple_of(calm) {
        return Ok(());
    }
    let waited = world.longest_wait(limits)?;
    found.longest_wait = found.longest_wait.max(waited);
    Ok(())
}

fn path_to(mut state: u64, seen: &Seen, limits: &Limits) -> Vec<Step> {
    let mut numbers = Vec::new();
    let start = print(&World::new(limits));
    while state != start {
        let (before, number) = seen[&state];
        numbers.push(number);
        state = before;
    }
    let mut world = World::new(limits);
    let mut path = Vec::new();
    for number in numbers.into_iter().rev() {
        let step = world.steps(limits)[usize::from(number)];
        world = world
            .after(step, limits)
            .expect("the search took this path before");
        path.push(step);
    }
    path
}
