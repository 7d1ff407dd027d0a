//! The waiters of one process get a key in the order of their calls, and so do those for its permits.

use super::calm::Calm;
use super::causes::is_slow;
use super::{Call, Ledger, Owning};
use crate::plan::Plan;
use crate::world::{Fault, MILLI};

/// The time in which a waiter gets a lease that was on its way already.
const ON_ITS_WAY: u64 = 60 * MILLI;

impl Ledger {
    /// Checks that no waiter is overtaken in its process. One that is not polled when its turn comes loses that turn only.
    pub fn check_line(&mut self, plan: &Plan) {
        // A question that fails may cost its waiter the turn.
        if plan.stops_inside
            || is_slow(plan)
            || !plan.faults.iter().all(|it| is_mild(plan, &it.fault))
        {
            return;
        }
        let waiters: Vec<usize> = (0..self.calls.len())
            .filter(|it| self.lines_up(plan, *it))
            .collect();
        let slack = Calm::of(plan).slack;
        for (at, waiter) in waiters.iter().enumerate() {
            let call = &self.calls[*waiter];
            let polled_since = self.pauses_of(call).map(|it| it.until).max();
            let begins = polled_since.map_or(call.asked, |since| since.saturating_add(ON_ITS_WAY));
            let later = waiters[at + 1..].iter();
            let overtaken: Vec<usize> = later
                .filter(|other| self.overtakes(**other, call, begins))
                .filter(|other| {
                    call.owning == Owning::Alone || self.stands_behind(**other, call, slack)
                })
                .copied()
                .collect();
            let allowed = usize::from(polled_since.is_some()) + self.stalled_beside(plan, call);
            if overtaken.len() > allowed {
                let others: Vec<String> = overtaken.iter().map(|it| self.show(*it)).collect();
                let text = format!("\n  {}\n  {}", self.show(*waiter), others.join("\n  "));
                self.violates("a waiter is overtaken in its process", text);
            }
        }
    }

    /// Returns whether a call waited in the line of its process, and was granted. Readers stand in several lines.
    fn lines_up(&self, plan: &Plan, number: usize) -> bool {
        let call = &self.calls[number];
        let has_line = match call.owning {
            Owning::Alone => true,
            Owning::READER => false,
            Owning::Share(_) => plan.faults.is_empty() && call.goes_on.is_none(),
        };
        call.answer.is_granted() && call.keys.len() == 1 && has_line && call.wait != Some(0)
    }

    /// Returns whether a permit came behind another one and was not let in at once. One that finds a question before it asks
    /// by itself, so it may be let in before one whose answer is on its way.
    fn stands_behind(&self, other: usize, before: &Call, slack: u64) -> bool {
        let it = &self.calls[other];
        it.asked > before.asked + slack && it.answered.is_some_and(|time| time > it.asked + slack)
    }

    fn overtakes(&self, other: usize, before: &Call, begins: u64) -> bool {
        let it = &self.calls[other];
        let (Some(answered), Some(granted)) = (it.answered, before.answered) else {
            return false;
        };
        it.asked > before.asked
            && answered > begins
            && answered < granted
            && is_beside(it, before)
            && !self.was_unpolled(other)
    }

    /// How many calls beside this one were not polled. Whichever waiter is polled first takes the turn of such a call.
    fn stalled_beside(&self, plan: &Plan, call: &Call) -> usize {
        let others = self.calls.iter().filter(|it| is_beside(it, call));
        // A pause is noted when it ends, and a process may end before.
        let never_ends = |it: &Call| it.answered.is_none() && plan.ends_early(it.process);
        others
            .filter(|it| never_ends(it) || self.pauses_of(it).next().is_some())
            .count()
    }
}

/// Returns whether a fault makes no question fail.
fn is_mild(plan: &Plan, fault: &Fault) -> bool {
    match fault {
        Fault::Slow { process, by, .. } => 4 * by < plan.processes[*process].operation_timeout,
        _ => false,
    }
}

/// Returns whether two calls of one process name the same keys, and both want them alone or both with others.
fn is_beside(one: &Call, other: &Call) -> bool {
    let is_alone = |call: &Call| call.owning == Owning::Alone;
    one.process == other.process && one.keys == other.keys && is_alone(one) == is_alone(other)
}

#[cfg(test)]
mod tests {
    use super::super::Answer;
    use super::super::tests::{calls, calm, rules};
    use super::*;

    /// Two tasks of a process wait for a key, the first one from 2 to 8 s.
    #[test]
    fn a_waiter_that_is_overtaken_in_its_process_breaks_a_rule() {
        let broken = ["a waiter is overtaken in its process"];
        let none: [&str; 0] = [];
        let permit = Owning::Share(2);
        for (owning, asked, served, expected) in [
            (Owning::Alone, 3, 7, &broken[..]),
            (Owning::Alone, 3, 9, &none[..]),
            (permit, 3, 7, &broken[..]),
            (permit, 3, 9, &none[..]),
            // It was let in at once.
            (permit, 7, 7, &none[..]),
            // Both asked at the same moment.
            (permit, 2, 7, &none[..]),
            (Owning::READER, 3, 7, &none[..]),
        ] {
            let mut ledger = Ledger::default();
            for (asked, served) in [(2, 8), (asked, served)] {
                calls(&mut ledger, owning, None, asked, Some(served)).answer = Answer::Granted;
            }
            ledger.check_line(&calm());
            assert_eq!(rules(&ledger), expected, "{owning:?} {asked} {served}");
        }
    }
}
