//! A breadth-first search through all states. A state is remembered by 64 bits of its hash.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::steps::ShareStep;
use super::world::{ShareLimits, ShareWorld, ShareWrong, Time};
use crate::model::seen::ByHash;

/// The result of a search.
#[derive(Debug)]
pub(super) struct SharesFound {
    pub(super) states: usize,
    pub(super) depth: usize,
    pub(super) wrong: Option<(ShareWrong, Vec<ShareStep>)>,
    /// The longest wait in ticks, once nothing failed any more.
    pub(super) longest_wait: Time,
}

fn print(world: &ShareWorld) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Searches all states. From one of `calm` states, the search also checks that every waiter gets in; 0: from none.
pub(super) fn explore(limits: &ShareLimits, calm: u64) -> SharesFound {
    let start = ShareWorld::new(limits);
    let mut seen: ByHash<(u64, u16)> = ByHash::default();
    seen.insert(print(&start), (0, 0));
    let mut found = SharesFound {
        states: 1,
        depth: 0,
        wrong: None,
        longest_wait: 0,
    };
    let mut layer = vec![start];
    while !layer.is_empty() {
        let mut next = Vec::new();
        for world in &layer {
            let here = print(world);
            for (number, step) in (0..).zip(world.steps(limits)) {
                let checked = world.after(step, limits).and_then(|after| {
                    let there = print(&after);
                    if seen.contains_key(&there) {
                        return Ok(());
                    }
                    seen.insert(there, (here, number));
                    if calm > 0 && there.is_multiple_of(calm) {
                        let waited = after.longest_wait(limits)?;
                        found.longest_wait = found.longest_wait.max(waited);
                    }
                    next.push(after);
                    Ok(())
                });
                if let Err(wrong) = checked {
                    let mut path = path_to(here, &seen, limits);
                    path.push(step);
                    found.states = seen.len();
                    found.wrong = Some((wrong, path));
                    return found;
                }
            }
        }
        found.depth += 1;
        layer = next;
    }
    found.states = seen.len();
    found
}

fn path_to(state: u64, seen: &ByHash<(u64, u16)>, limits: &ShareLimits) -> Vec<ShareStep> {
    let mut world = ShareWorld::new(limits);
    let start = print(&world);
    let (mut state, mut numbers) = (state, Vec::new());
    while state != start {
        let (before, number) = seen[&state];
        numbers.push(number);
        state = before;
    }
    let mut path = Vec::new();
    for number in numbers.into_iter().rev() {
        let step = world.steps(limits)[usize::from(number)];
        world = world.after(step, limits).expect("a path that was taken");
        path.push(step);
    }
    path
}
