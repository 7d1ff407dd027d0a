//! How long callers wait, hold and pause.

use super::Topology;
use crate::rng::Rng;

/// Each time is in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Habits {
    /// `None`: a caller waits for as long as it takes.
    pub waits: Vec<Option<u64>>,
    pub holds: Vec<u64>,
    /// How long shares are held. Some outlast what a waiter may cost those behind it.
    pub share_holds: Vec<u64>,
    /// A pause is shorter than one of these.
    pub pauses: Vec<u64>,
    /// How long an owner keeps the guard of a lost lock.
    pub lingers: Vec<u64>,
    /// Some locks are not renewed.
    pub unrenewed: bool,
    /// How many of a hundred owners block their runtime behind the end of a lock.
    pub blocks: u64,
    /// This process has readers only.
    pub reads_only: Option<usize>,
}

impl Habits {
    pub(super) fn draw(rng: &mut Rng, topology: Topology) -> Self {
        let mut holds = vec![0, 5, 40, 200, 700];
        if rng.percent(25) && topology.is_alone() {
            holds.push(4_000);
        }
        if topology == Topology::Redlock && rng.percent(30) {
            holds = vec![40, 700, 1_500, 4_000];
        }
        Self {
            waits: vec![Some(0), Some(300), Some(1_500), None],
            holds,
            share_holds: vec![0, 5, 40, 200, 700, 2_500, 4_500],
            pauses: vec![1, 20, 300],
            lingers: vec![0],
            unrenewed: rng.percent(15) && topology.is_alone(),
            blocks: 0,
            reads_only: None,
        }
    }
}
