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

    /// Returns whether a release is not confirmed because nothing polled it: its time was over when it was polled again.
    pub(super) fn released_unpolled(&self, number: usize) -> bool {
        let call = &self.calls[number];
        let (Answer::NotReleased(why), Some(left)) = (&call.answer, call.left) else {
            return false;
        };
        let ended = call.ended.unwrap_or(u64::MAX);
        why.starts_with("Unavailable") && self.pauses_between(call, left, ended).next().is_some()
    }

    /// The spans before its answer in which a call was left unpolled.
    pub(super) fn pauses_of(&self, call: &Call) -> impl Iterator<Item = &Unpolled> {
        self.pauses_between(call, call.asked, call.answered.unwrap_or(u64::MAX))
    }

    fn pauses_between(&self, call: &Call, from: u64, to: u64) -> impl Iterator<Item = &Unpolled> {
        let (process, task) = (call.process, call.task);
        self.unpolled.iter().filter(move |it| {
            it.process == process && it.task == task && it.from <= to && from <= it.until
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Owning;
    use super::super::tests::{asks, calm, rules};
    use super::*;
    use crate::world::SECOND;

    const BROKEN: &str = "refused or lost without trouble";

    /// The rules that are broken where a release begins at second 5 and fails at second 9, for this reason, and its future
    /// is not polled in a span.
    fn broken_by_a_release(why: &str, (from, until): (u64, u64)) -> Vec<&'static str> {
        let mut ledger = Ledger::default();
        let call = asks(&mut ledger, Owning::Alone, Some(0), 4, Some(4));
        ledger.calls[call].left = Some(5 * SECOND);
        ledger.calls[call].ended = Some(9 * SECOND);
        ledger.calls[call].answer = Answer::NotReleased(why.to_owned());
        ledger.unpolled.push(Unpolled {
            process: 0,
            task: 0,
            from: from * SECOND,
            until: until * SECOND,
        });
        ledger.check_quiet(&calm());
        rules(&ledger)
    }

    #[test]
    fn a_release_that_is_not_polled_is_not_confirmed() {
        assert!(broken_by_a_release("Unavailable", (5, 9)).is_empty());
        assert_eq!(broken_by_a_release("Unavailable", (10, 12)), [BROKEN]);
        assert_eq!(broken_by_a_release("Misconfigured", (5, 9)), [BROKEN]);
    }
}
