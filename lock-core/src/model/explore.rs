//! Breadth first through all that can happen. A state is remembered by 64 bits of its hash: among ten
//! million the chance that any two are taken for one is about one in three hundred thousand.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::seen::ByHash;
use super::world::{Limits, Step, World, Wrong};

/// What was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) states: usize,
    /// The longest way to a state.
    pub(super) depth: usize,
    /// Whether every state within the limits was seen.
    pub(super) complete: bool,
    pub(super) wrong: Option<(Wrong, Vec<Step>)>,
    /// The longest that anybody had to wait once nothing went wrong any more, in ticks.
    pub(super) longest_wait: u64,
}

/// Where a state was come to from, and by which of the steps there.
type Seen = ByHash<(u64, u16)>;

fn print(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Looks at all states, up to `most` of them. In one of `calm` states it is tried out whether
/// everybody who waits gets the lock in the end.
pub(super) fn explore(limits: &Limits, most: usize, calm: u64) -> Found {
    let start = World::new(limits);
    let mut seen = Seen::default();
    seen.insert(print(&start), (0, 0));
    let mut found = Found {
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
                        let wrong = comes_to_rest(&after, there, calm, limits, &mut found);
                        next.push(after);
                        wrong.err()
                    }
                    Err(wrong) => Some(wrong),
                };
                if let Some(wrong) = wrong {
                    let mut way = way_to(here, &seen, limits);
                    way.push(step);
                    found.states = seen.len();
                    found.wrong = Some((wrong, way));
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

fn comes_to_rest(
    world: &World,
    print: u64,
    calm: u64,
    limits: &Limits,
    found: &mut Found,
) -> Result<(), Wrong> {
    if calm == 0 || !print.is_multiple_of(calm) {
        return Ok(());
    }
    let waited = world.longest_wait(limits)?;
    found.longest_wait = found.longest_wait.max(waited);
    Ok(())
}

fn way_to(mut state: u64, seen: &Seen, limits: &Limits) -> Vec<Step> {
    let mut numbers = Vec::new();
    let start = print(&World::new(limits));
    while state != start {
        let (before, number) = seen[&state];
        numbers.push(number);
        state = before;
    }
    let mut world = World::new(limits);
    let mut way = Vec::new();
    for number in numbers.into_iter().rev() {
        let step = world.steps(limits)[usize::from(number)];
        world = world
            .after(step, limits)
            .expect("it was come this way before");
        way.push(step);
    }
    way
}
