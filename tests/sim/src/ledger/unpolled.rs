//! Futures that their tasks leave unpolled.

use super::{Answer, Call, Ledger};
use crate::world::sim;

/// A span in which a task polled one of its futures not at all.
#[derive(Clone, Copy, Debug)]
pub struct Unpolled {
    pub process: usize,
    pub task: usize,
    pub from: u64,
    pub until: u64,
}

impl Ledger {
    /// Notes that the future of a task's calls is dropped.
    pub fn gives_up(&mut self, process: usize, task: usize) {
        let now = sim().now();
        let calls = self.calls.iter_mut();
        for call in calls.filter(|call| call.process == process && call.task == task) {
            if call.answered.is_none() {
                call.answered = Some(now);
                call.answer = Answer::Cancelled;
            }
            call.left = call.left.or(Some(now));
        }
    }

    /// Returns whether a call was left unpolled before it was answered.
    pub(super) fn was_unpolled(&self, number: usize) -> bool {
        self.pauses_of(&self.calls[number]).next().is_some()
    }

    /// The spans before its answer in which a call was left unpolled.
    pub(super) fn pauses_of(&self, call: &Call) -> impl Iterator<Item = &Unpolled> {
        let (process, task, asked) = (call.process, call.task, call.asked);
        let answered = call.answered.unwrap_or(u64::MAX);
        self.unpolled.iter().filter(move |it| {
            it.process == process && it.task == task && it.from <= answered && asked <= it.until
        })
    }
}
