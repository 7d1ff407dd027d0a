//! Futures that their tasks leave unpolled.

use super::cluster::longest_in_parts;
use super::late::{BEHIND_THE_TTL, NO_ANSWER};
use super::{Answer, Call, Ledger};
use crate::plan::Plan;
use crate::world::{Fault, SECOND, sim};

/// A span in which a task polled one of its futures not at all.
#[derive(Clone, Copy, Debug)]
pub struct Unpolled {
    pub process: usize,
    pub task: usize,
    pub from: u64,
    /// `u64::MAX`: it was not polled again so far, or never was, because its process has ended.
    pub until: u64,
}

impl Ledger {
    /// Notes that a task leaves a future unpolled from now on. Returns the number of the span.
    pub fn leaves_unpolled(&mut self, process: usize, task: usize) -> usize {
        self.unpolled.push(Unpolled {
            process,
            task,
            from: sim().now(),
            until: u64::MAX,
        });
        self.unpolled.len() - 1
    }

    pub fn polls_again(&mut self, span: usize) {
        self.unpolled[span].until = sim().now();
    }

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

    /// Returns whether a call has no answer because it waits for the question of an earlier call of its process, whose future
    /// rested. The server had answered that question with an order to ask again, or with a grant, and the time or the ttl was
    /// over when the future was polled.
    pub(super) fn is_unanswered_behind_a_rest(&self, plan: &Plan, number: usize) -> bool {
        let call = &self.calls[number];
        let (Answer::Refused(why), Some(answered)) = (&call.answer, call.answered) else {
            return false;
        };
        let asks_for_both = |it: &&Call| {
            let is_open = it.answered.is_none_or(|its| call.asked <= its);
            it.process == call.process && it.keys == call.keys && is_open
        };
        let has_just_rested = |it: &Call| {
            let pauses = self.pauses_of(it).map(|pause| pause.until);
            let mut rests = pauses.chain(it.rests).filter(|until| call.asked <= *until);
            let just = |until: u64| until..until.saturating_add(longest_in_parts(plan));
            rests.any(|until| just(until).contains(&answered))
        };
        let mut earlier = self.calls[..number].iter().filter(asks_for_both);
        let is_late = why.contains(NO_ANSWER) || why.contains(BEHIND_THE_TTL);
        is_late && earlier.any(has_just_rested)
    }

    /// The spans before its answer in which a call was left unpolled.
    pub(super) fn pauses_of(&self, call: &Call) -> impl Iterator<Item = &Unpolled> {
        let (from, to) = call.span();
        self.pauses_between(call, from, to)
    }

    fn pauses_between(&self, call: &Call, from: u64, to: u64) -> impl Iterator<Item = &Unpolled> {
        let (process, task) = (call.process, call.task);
        self.unpolled.iter().filter(move |it| {
            it.process == process && it.task == task && it.from <= to && from <= it.until
        })
    }

    /// Until when a call may wait for an owner of its process that is not polled, and whose key a fault has deleted: the
    /// process notices it when it renews the lock.
    pub(super) fn held_unpolled_until(&self, plan: &Plan, waiter: &Call) -> u64 {
        let losses = plan.faults.iter().filter(|it| it.fault.loses_data());
        let noticed = losses.flat_map(|loss| {
            let owners = self.calls.iter().filter(|it| {
                let granted = it.answered.filter(|_| it.answer.is_granted());
                it.process == waiter.process
                    && it.keys == waiter.keys
                    && granted.is_some_and(|granted| granted < loss.end())
                    && it.left.is_none_or(|left| loss.at < left)
            });
            owners
                .map(|owner| {
                    (
                        owner,
                        loss.end() + (owner.ttl / 3).min(10 * SECOND) * 101 / 100,
                    )
                })
                .filter(|(owner, noticed)| self.is_unpolled_between(owner, loss.at, *noticed))
                .map(|(_, noticed)| noticed)
        });
        noticed.max().unwrap_or(0)
    }

    /// Until when a call may wait for an owner of its process that does not renew its lock, and so does not notice that the
    /// server was flushed.
    pub(super) fn held_unrenewed_until(&self, plan: &Plan, waiter: &Call) -> u64 {
        let flushes = plan.faults.iter();
        let flushes = flushes.filter(|it| matches!(it.fault, Fault::Flush { .. }));
        let owners = self
            .calls
            .iter()
            .filter(|it| it.process == waiter.process && it.keys == waiter.keys && !it.renews);
        let holds = owners.filter_map(|it| Some((it.answered?, it.left?)));
        let over = flushes.flat_map(|flush| {
            let amid = holds
                .clone()
                .filter(|(from, left)| *from <= flush.end() && flush.at <= *left);
            amid.map(|(_, left)| left).collect::<Vec<_>>()
        });
        over.max().unwrap_or(0)
    }

    /// Until when the key of a lock that was left may stay taken, because its task does not poll the release: the server may
    /// not have its script, and the request is not repeated.
    pub(super) fn releases_until(&self, call: &Call) -> u64 {
        let left = call.left.unwrap_or(u64::MAX);
        let is_its = |it: &&Unpolled| {
            let is_its = it.process == call.process && it.task == call.task;
            is_its && left <= it.from && call.ended.is_none_or(|ended| it.from < ended)
        };
        let until = self.unpolled.iter().filter(is_its).map(|it| it.until).max();
        until.map_or(left, |until| until.min(left + call.ttl))
    }

    fn is_unpolled_between(&self, call: &Call, from: u64, until: u64) -> bool {
        self.unpolled.iter().any(|it| {
            it.process == call.process && it.task == call.task && it.from < until && from < it.until
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Owning;
    use super::super::tests::{asks, calls, calm, rules, with, world};
    use super::*;
    use crate::plan::Topology;
    use crate::world::{MILLI, SECOND};

    #[test]
    fn a_call_waits_for_an_owner_of_its_process_that_is_not_renewed_over_a_flush() {
        let until = |renews: bool, process: usize, flushed: u64| {
            let mut plan = with(Fault::Flush { server: 0 });
            (plan.faults[0].at, plan.faults[0].lasts) = (flushed * SECOND, 1);
            let mut ledger = Ledger::default();
            let it = calls(&mut ledger, Owning::Alone, Some(0), 2, Some(2));
            (it.process, it.renews, it.left) = (process, renews, Some(6 * SECOND));
            let waiter = asks(&mut ledger, Owning::Alone, None, 3, Some(7));
            ledger.held_unrenewed_until(&plan, &ledger.calls[waiter])
        };
        assert_eq!(until(false, 0, 4), 6 * SECOND);
        assert_eq!(until(true, 0, 4), 0);
        assert_eq!(until(false, 1, 4), 0);
        assert_eq!(until(false, 0, 1), 0);
        assert_eq!(until(false, 0, 7), 0);
    }

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
        ledger.check_quiet(&calm(), &[]);
        rules(&ledger)
    }

    #[test]
    fn a_release_that_is_not_polled_is_not_confirmed() {
        assert!(broken_by_a_release("Unavailable", (5, 9)).is_empty());
        assert_eq!(broken_by_a_release("Unavailable", (10, 12)), [BROKEN]);
        assert_eq!(broken_by_a_release("Misconfigured", (5, 9)), [BROKEN]);
    }

    #[test]
    fn a_call_has_no_answer_where_an_earlier_one_of_its_process_has_just_rested() {
        for topology in Topology::ALL {
            let mut plan = calm();
            (plan.topology, plan.latency, plan.ttls) = (topology, MILLI, vec![1000]);
            // The second at which the earlier call has rested, and the one at which the other call is answered.
            let is_broken = |rests: Option<u64>, answered: u64, key: usize, why: &str| {
                let mut ledger = Ledger::default();
                let earlier = asks(&mut ledger, Owning::Alone, Some(3), 7, Some(11));
                // Another task has it, which may poll it again. Or it polls itself.
                ledger.calls[earlier].task = 1;
                let until = rests.map(|until| until * SECOND);
                match why {
                    BEHIND_THE_TTL => ledger.unpolled.extend(until.map(|until| Unpolled {
                        process: 0,
                        task: 1,
                        from: 7 * SECOND,
                        until,
                    })),
                    _ => ledger.calls[earlier].rests = until,
                }
                ledger.calls[earlier].keys = vec![key];
                calls(&mut ledger, Owning::Alone, Some(0), 8, Some(answered)).answer =
                    Answer::Refused(why.to_owned());
                let sim = world();
                sim.look(|state| ledger.check_causes(&plan, state));
                !rules(&ledger).is_empty()
            };
            for late in [NO_ANSWER, BEHIND_THE_TTL] {
                assert!(!is_broken(Some(9), 9, 0, late), "{topology:?}");
                assert!(is_broken(None, 9, 0, late), "{topology:?}");
                assert!(is_broken(Some(7), 9, 0, late), "{topology:?}");
                assert!(is_broken(Some(9), 10, 0, late), "{topology:?}");
                assert!(is_broken(Some(9), 9, 1, late), "{topology:?}");
            }
            assert!(is_broken(Some(9), 9, 0, "no connection"), "{topology:?}");
        }
    }
}
