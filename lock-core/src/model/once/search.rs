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
    states: Vec<State>,
    pub(super) steps: usize,
}

struct State {
    /// The step that reached this state first, and the state before it.
    first: (usize, Step),
    /// The states from which a step without a fault leads to this one.
    before: Vec<u32>,
    /// The keys that a step without a fault answers here.
    answers: Keys,
}

impl Search {
    pub(super) fn states(&self) -> usize {
        self.states.len()
    }

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
                    let after = after.map_err(|wrong| (wrong, self.path(here, Some(step))))?;
                    // None: the run waits.
                    let Some(mut after) = after else { continue };
                    self.steps += 1;
                    let answered = mem::take(&mut after.answered);
                    let fresh = self.states.len();
                    let there = self.reaches(&after, (here, step));
                    if !matches!(step, Step::Fault(..)) {
                        self.states[here].answers |= answered;
                        self.states[there].before.push(here as u32);
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
            self.states.push(State {
                first,
                before: Vec::new(),
                answers: 0,
            });
        }
        number
    }

    /// Returns the nearest state from which no path without a fault leads to an answer for the key.
    fn never_answered(&self, key: Key) -> Option<usize> {
        let answers = self
            .states
            .iter()
            .map(|state| state.answers & 1 << key != 0);
        let mut leads: Vec<bool> = answers.collect();
        let mut rest: Vec<usize> = (0..leads.len()).filter(|state| leads[*state]).collect();
        while let Some(state) = rest.pop() {
            for before in &self.states[state].before {
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
            let (before, step) = self.states[state].first;
            path.insert(0, step);
            state = before;
        }
        path
    }
}
