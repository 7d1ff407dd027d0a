//! A search through all states, and from the answers back to the states that lead to them.

use std::mem;

use super::design::{Key, Keys, Limits};
use super::steps::Step;
use super::world::{World, Wrong};
use crate::model::seen::{ByHash, print};

/// The states by their numbers, in the order in which the search reaches them.
#[derive(Default)]
pub(super) struct Search {
    numbers: ByHash<usize>,
    pub(super) steps: usize,
    /// The step that reached a state first, and the state before it.
    pub(super) states: Vec<(usize, Step)>,
    /// The states from which a step without a fault leads to this one.
    before: Vec<Vec<u32>>,
    /// The keys that a step without a fault answers in a state.
    answers: Vec<Keys>,
}

impl Search {
    /// Visits all states, and then looks for those from which no answer follows. Returns the path to the first violation.
    pub(super) fn run(&mut self, limits: &Limits) -> Result<(), (Wrong, Vec<Step>)> {
        let start = World::start(limits);
        self.reaches(&start, (0, Step::Sends(0)));
        let mut layer = vec![(0, start)];
        while !layer.is_empty() {
            let mut next = Vec::new();
            for (here, world) in layer {
                for step in world.steps(limits) {
                    let after = world.after(step, limits);
                    let mut after = after.map_err(|wrong| (wrong, self.path(here, Some(step))))?;
                    let answered = mem::take(&mut after.answered);
                    if after == world {
                        continue; // The run waits.
                    }
                    self.steps += 1;
                    let fresh = self.states.len();
                    let there = self.reaches(&after, (here, step));
                    if !matches!(step, Step::Fault(..)) {
                        self.answers[here] |= answered;
                        self.before[there].push(here as u32);
                    }
                    if there == fresh {
                        next.push((there, after));
                    }
                }
            }
            layer = next;
        }
        let mut keys = limits.requests.iter().flat_map(|keys| keys.iter());
        match keys.find_map(|key| self.never_answered(*key)) {
            Some(state) => Err((Wrong::NeverAnswered, self.path(state, None))),
            None => Ok(()),
        }
    }

    fn reaches(&mut self, world: &World, first: (usize, Step)) -> usize {
        let fresh = self.states.len();
        let number = *self.numbers.entry(print(world)).or_insert(fresh);
        if number == fresh {
            self.states.push(first);
            self.before.push(Vec::new());
            self.answers.push(0);
        }
        number
    }

    /// Returns the nearest state from which no path without a fault leads to an answer for the key.
    fn never_answered(&self, key: Key) -> Option<usize> {
        let answers = self.answers.iter().map(|keys| keys & 1 << key != 0);
        let mut leads: Vec<bool> = answers.collect();
        let mut rest: Vec<usize> = (0..leads.len()).filter(|state| leads[*state]).collect();
        while let Some(state) = rest.pop() {
            for before in &self.before[state] {
                if !mem::replace(&mut leads[*before as usize], true) {
                    rest.push(*before as usize);
                }
            }
        }
        leads.iter().position(|leads| !leads)
    }

    fn path(&self, mut state: usize, last: Option<Step>) -> Vec<Step> {
        let mut path = Vec::from_iter(last);
        while state != 0 {
            let (before, step) = self.states[state];
            path.insert(0, step);
            state = before;
        }
        path
    }
}
