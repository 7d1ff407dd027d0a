//! A breadth-first search through all states of a model.

use std::collections::hash_map::Entry;
use std::hash::Hash;

use super::seen::{ByHash, print};

/// A state of a model.
pub(super) trait Explored: Hash + Sized {
    type Limits;
    type Step: Copy;
    type Wrong;

    fn start(limits: &Self::Limits) -> Self;

    fn steps(&self, limits: &Self::Limits) -> Vec<Self::Step>;

    /// Returns the state after a step, which is not checked yet.
    fn after(&self, step: Self::Step, limits: &Self::Limits) -> Result<Self, Self::Wrong>;

    /// Checks the invariants of a state.
    fn check(&self, limits: &Self::Limits) -> Result<(), Self::Wrong>;

    /// Returns the ticks until every waiter has the lock, once nothing fails any more.
    fn longest_wait(&self, limits: &Self::Limits) -> Result<u64, Self::Wrong>;
}

/// The result of a search that saw every state within the limits, or a state that is wrong.
#[derive(Debug)]
pub(super) struct Exploration<Wrong, Step> {
    pub(super) states: usize,
    /// The length of the longest path.
    pub(super) depth: usize,
    pub(super) wrong: Option<(Wrong, Vec<Step>)>,
    /// The longest wait in ticks, once nothing failed any more.
    pub(super) longest_wait: u64,
}

/// The state from which each state was reached first, with the number of the step.
type Seen = ByHash<(u64, u16)>;

/// Searches all states.
///
/// For one of `calm` states, the search also checks that every waiter gets the lock in the end; 0: for none.
pub(super) fn explore<W: Explored>(
    limits: &W::Limits,
    calm: u64,
) -> Exploration<W::Wrong, W::Step> {
    let start = W::start(limits);
    let mut seen = Seen::default();
    let mut layer = vec![(print(&start), start)];
    seen.insert(layer[0].0, (0, 0));
    let mut found = Exploration {
        states: 1,
        depth: 0,
        wrong: None,
        longest_wait: 0,
    };
    loop {
        let mut next = Vec::new();
        for (here, world) in &layer {
            for (number, step) in (0..).zip(world.steps(limits)) {
                let checked = world.after(step, limits).and_then(|after| {
                    let there = print(&after);
                    let Entry::Vacant(place) = seen.entry(there) else {
                        return Ok(());
                    };
                    place.insert((*here, number));
                    after.check(limits)?;
                    if calm > 0 && there.is_multiple_of(calm) {
                        let waited = after.longest_wait(limits)?;
                        found.longest_wait = found.longest_wait.max(waited);
                    }
                    next.push((there, after));
                    Ok(())
                });
                if let Err(wrong) = checked {
                    let mut path = path_to::<W>(*here, &seen, limits);
                    path.push(step);
                    found.states = seen.len();
                    found.wrong = Some((wrong, path));
                    return found;
                }
            }
        }
        if next.is_empty() {
            found.states = seen.len();
            return found;
        }
        found.depth += 1;
        layer = next;
    }
}

fn path_to<W: Explored>(mut state: u64, seen: &Seen, limits: &W::Limits) -> Vec<W::Step> {
    let mut world = W::start(limits);
    let start = print(&world);
    let mut numbers = Vec::new();
    while state != start {
        let (before, number) = seen[&state];
        numbers.push(number);
        state = before;
    }
    let mut path = Vec::new();
    for number in numbers.into_iter().rev() {
        let step = world.steps(limits)[usize::from(number)];
        let after = world.after(step, limits).ok();
        world = after.expect("the search took this path before");
        path.push(step);
    }
    path
}
