//! A share is refused only for others that it must not stand beside, and `is_full` is a fact.

use std::collections::BTreeSet;

use super::calm::{Calm, calls_tell_all, late_copy_until};
use super::itself::meets_itself;
use super::{Answer, Call, Ledger, Owning};
use crate::plan::{Plan, Topology, lock_name};
use crate::world::{Fault, MILLI, Planned, State};

/// A call that asks no server is answered within this time.
const AT_ONCE: u64 = MILLI;
/// The latency at which each round trip takes longer than that.
const SLOW: u64 = MILLI;

impl Ledger {
    pub fn check_share_refusals(&mut self, plan: &Plan, state: &State) {
        if !plan.has_shares() {
            return;
        }
        let calm = Calm::of(plan);
        let tells_all = calls_tell_all(plan);
        for of_key in self.calls_by_key(plan) {
            for &number in &of_key {
                let call = &self.calls[number];
                let is_share = call.owning != Owning::Alone;
                if call.answer != Answer::Busy || plan.ends_early(call.process) {
                    continue;
                }
                let meets_itself = meets_itself(plan, state, call);
                if is_share && is_early(call) {
                    let text = self.show(number);
                    self.violates("a share is refused before its wait is over", text);
                }
                if tells_all && !meets_itself {
                    self.check_share_refusal(plan, state, &calm, &of_key, number);
                }
                if is_share {
                    self.check_full_process(plan, number);
                }
            }
        }
    }

    fn check_share_refusal(
        &mut self,
        plan: &Plan,
        state: &State,
        calm: &Calm,
        of_key: &[usize],
        number: usize,
    ) {
        let call = &self.calls[number];
        let others: Vec<&Call> = of_key
            .iter()
            .filter(|other| **other != number && self.meets(plan, state, calm, number, **other))
            .map(|other| &self.calls[*other])
            .collect();
        let excluded = others.iter().any(|it| it.owning.excludes(call.owning));
        let limits = others.iter().map(|it| it.owning.limit());
        let least = limits.min().unwrap_or(u32::MAX).min(call.owning.limit());
        let enough = others.len() as u64 >= u64::from(least);
        // While a slot moves, no share joins others.
        let is_share = call.owning != Owning::Alone;
        let is_apart = is_share && !others.is_empty() && plan.moves_at_the_time_of(call);
        if self.interrupted.contains(&call.keys[0]) || stands_behind_the_dead(plan, call) {
            return;
        }
        let rule = if !excluded && !enough && !is_apart {
            "a call is refused that no other was in the way of"
        } else if call.is_full && !self.is_full_of(&others, call) {
            "full though a permit is left"
        } else {
            return;
        };
        self.violates(rule, self.show(number));
    }

    /// Returns whether another call may have been in the key, or in its queue, while a call was asked.
    fn meets(&self, plan: &Plan, state: &State, calm: &Calm, number: usize, other: usize) -> bool {
        let (call, it) = (&self.calls[number], &self.calls[other]);
        let answered = call.answered.unwrap_or(u64::MAX);
        // A process waits for its own releases that are in its way. Where replicas acknowledge, a lock is asked for on a
        // connection of its own, and a release that its caller waits for may be behind.
        let ended = match (&it.answer, plan.topology) {
            (Answer::Cancelled, _) => it.answered,
            (_, Topology::Replicas) => it.ended.or(it.left),
            _ if is_released_twice(state, it) => it.ended.or(it.left),
            _ => it.left,
        };
        let is_own = calm.is_quiet && it.process == call.process;
        // It does not wait for a downgrade that was dropped on its way.
        let is_given_back =
            |reader: &Call| reader.answer == Answer::Cancelled && reader.goes_on == Some(other);
        let is_open = it.goes_on.is_some() || self.calls.iter().any(is_given_back);
        if is_own && !is_open && ended.is_some_and(|ended| ended < call.asked) {
            return false;
        }
        // A dead waiter may have been given the key since.
        let is_dead = it.answer == Answer::None;
        // A call that is not polled may have been granted the key, until that was undone and it asked again. A question that a
        // fault has kept may take the key behind the answer to its repetition. Over several servers, a call that is refused has
        // had the votes of some.
        let refused = it.answered.unwrap_or(u64::MAX);
        let only_asked = it.answer == Answer::Busy
            && plan.topology != Topology::Redlock
            && it.wait == Some(0)
            && it.rests.is_none()
            && late_copy_until(plan, it, refused) == 0;
        !only_asked
            && it.asked <= answered
            && (is_dead || self.is_in_the_way_until(plan, calm, other) >= call.asked)
    }

    /// Returns whether as many owners as the limit of a call may have been inside.
    fn is_full_of(&self, others: &[&Call], call: &Call) -> bool {
        let inside = others.iter().filter(|it| !it.owning.excludes(call.owning));
        inside.count() as u64 >= u64::from(call.owning.limit())
    }

    /// Checks that a process that has all permits refuses a caller without a question to the server.
    fn check_full_process(&mut self, plan: &Plan, number: usize) {
        let call = &self.calls[number];
        let stops = plan.stops_processes();
        if call.wait != Some(0) || call.owning == Owning::READER || stops || plan.latency < SLOW {
            return;
        }
        let answered = call.answered.unwrap_or(u64::MAX);
        let own = self.claims.iter().filter(|claim| {
            claim.key == call.keys[0]
                && self.calls[claim.call].process == call.process
                && !claim.owning.excludes(call.owning)
                && claim.from <= call.asked
                && claim.until >= answered
        });
        let is_full = own.count() as u64 >= u64::from(call.owning.limit());
        let at_once = answered < call.asked + AT_ONCE;
        if is_full && call.rests.is_none() && !(at_once && call.is_full) {
            let text = self.show(number);
            self.violates("a process that has all permits asks the server", text);
        }
    }
}

/// Returns whether a server did not know the script of a release. The script is then sent behind the questions that are on their
/// way.
fn is_released_twice(state: &State, call: &Call) -> bool {
    let Some(left) = call.left else { return false };
    let key = lock_name(call.keys[0]).into_bytes();
    (0..state.hosts.len()).any(|server| {
        let by_its_clock = |at: u64| state.server_time_at(server, at);
        let span = by_its_clock(left)..=by_its_clock(call.ended.unwrap_or(state.now));
        let times = state.hosts[server].server.not_known.get(&key);
        times.is_some_and(|times| times.iter().any(|at| span.contains(at)))
    })
}

/// Returns whether the library refused a call before the end of its wait.
fn is_early(call: &Call) -> bool {
    match (call.wait, call.answered) {
        // By a clock that may be fast.
        (Some(wait), Some(answered)) => answered < call.asked + wait - wait / 100,
        _ => true,
    }
}

/// Returns whether a majority of the servers of a quorum may have had a dead waiter before a call, or some of them only a
/// register that is no number, so that they do not vote. They do not count who listens, so a dead waiter keeps shares out for
/// some seconds.
fn stands_behind_the_dead(plan: &Plan, call: &Call) -> bool {
    let key = lock_name(call.keys[0]).into_bytes();
    let before = |it: &&Planned| call.answered.is_none_or(|answered| it.at < answered);
    let before = plan.faults.iter().filter(before).map(|it| &it.fault);
    let is_dead = |it: &&Fault| matches!(it, Fault::Dead { key: of, .. } if *of == key);
    let spoilt = before
        .clone()
        .filter(|it| matches!(it, Fault::Spoil { .. }));
    let dead: Vec<&Fault> = before.filter(is_dead).collect();
    let servers = dead.iter().copied().chain(spoilt).map(Fault::server);
    let servers: BTreeSet<Option<usize>> = servers.collect();
    plan.topology == Topology::Redlock && !dead.is_empty() && servers.len() > plan.minority()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asks, calls, calm, with, world};
    use super::*;
    use crate::plan::Verb;
    use crate::world::SECOND;

    #[test]
    fn a_question_that_a_fault_has_kept_takes_the_key_behind_its_call() {
        // The fault keeps what this process sends from second 1 to second 2.
        let broken = |process: usize, asked: u64| {
            let mut plan = with(Fault::Late { process, server: 0 });
            plan.verbs = vec![Verb::Read];
            let mut ledger = Ledger::default();
            let owner = calls(&mut ledger, Owning::Alone, Some(0), asked, Some(asked));
            (owner.answer, owner.left) = (Answer::Granted, owner.answered);
            owner.released = owner.answered;
            calls(&mut ledger, Owning::Alone, Some(0), asked, Some(asked + 1)).answer =
                Answer::Busy;
            let call = calls(&mut ledger, Owning::READER, Some(0), 4, Some(4));
            (call.process, call.answer) = (1, Answer::Busy);
            world().judge(ledger, &plan, Ledger::check_share_refusals)
        };
        let rule = "a call is refused that no other was in the way of";
        assert!(broken(0, 1).is_empty());
        assert_eq!(broken(1, 1), [rule]);
        assert_eq!(broken(0, 3), [rule]);
    }

    #[test]
    fn two_calls_refuse_each_other_where_each_has_the_votes_of_some_servers() {
        let broken = |topology: Topology| {
            let mut plan = calm();
            (plan.topology, plan.verbs) = (topology, vec![Verb::Read]);
            let mut ledger = Ledger::default();
            for owning in [Owning::Alone, Owning::READER] {
                calls(&mut ledger, owning, Some(0), 1, Some(2)).answer = Answer::Busy;
            }
            world().judge(ledger, &plan, Ledger::check_share_refusals)
        };
        let rule = "a call is refused that no other was in the way of";
        assert!(broken(Topology::Redlock).is_empty());
        assert_eq!(broken(Topology::One), [rule, rule]);
    }

    #[test]
    fn a_release_by_a_script_that_the_server_does_not_know_is_in_the_way_of_a_later_call() {
        // The server is asked at this time by a script that it does not know. The owner leaves at second 3, and its release is
        // confirmed at second 4.
        let broken = |asked: u64| {
            let mut ledger = Ledger::default();
            let owner = calls(&mut ledger, Owning::Alone, Some(0), 1, Some(2));
            (owner.answer, owner.left) = (Answer::Granted, Some(3 * SECOND));
            (owner.ended, owner.released) = (Some(4 * SECOND), Some(4 * SECOND));
            let call = asks(&mut ledger, Owning::READER, Some(0), 3, Some(4));
            ledger.calls[call].asked += MILLI;
            ledger.calls[call].answer = Answer::Busy;
            let mut plan = calm();
            plan.verbs = vec![Verb::Downgrade];
            let sim = world();
            sim.change(|state| {
                let micros = state.server_time_at(0, asked);
                let host = &mut state.hosts[0];
                host.server
                    .not_known
                    .insert(lock_name(0).into_bytes(), vec![micros]);
            });
            sim.judge(ledger, &plan, Ledger::check_share_refusals)
        };
        let rule = "a call is refused that no other was in the way of";
        assert!(broken(3 * SECOND + MILLI).is_empty());
        assert_eq!(broken(2 * SECOND), [rule]);
        assert_eq!(broken(5 * SECOND), [rule]);
    }

    #[test]
    fn a_share_stands_behind_a_dead_waiter_where_the_other_servers_do_not_vote() {
        let stands = |dead: &[usize], spoilt: &[usize]| {
            let mut plan = calm();
            (plan.topology, plan.servers) = (Topology::Redlock, 3);
            let key = lock_name(0).into_bytes();
            let dead = dead.iter().map(|server| Fault::Dead {
                server: *server,
                key: key.clone(),
            });
            let spoilt = spoilt.iter().map(|server| Fault::Spoil { server: *server });
            plan.faults.extend(dead.chain(spoilt).map(|fault| Planned {
                at: SECOND,
                lasts: SECOND,
                fault,
            }));
            let mut ledger = Ledger::default();
            let call = asks(&mut ledger, Owning::READER, Some(0), 2, Some(4));
            stands_behind_the_dead(&plan, &ledger.calls[call])
        };
        assert!(stands(&[0, 1], &[]));
        assert!(stands(&[1], &[0]));
        assert!(!stands(&[1], &[]));
        assert!(!stands(&[1], &[1]));
        assert!(!stands(&[], &[0, 1]));
    }
}
