//! A share is refused only for others that it must not stand beside, and `is_full` is a fact.

use std::collections::BTreeSet;

use super::calm::{Calm, calls_tell_all};
use super::{Answer, Call, Ledger, Owning};
use crate::plan::{Plan, Topology, lock_name};
use crate::world::{Fault, MILLI, Planned};

/// A call that asks no server is answered within this time.
const AT_ONCE: u64 = MILLI;
/// The latency at which each round trip takes longer than that.
const SLOW: u64 = MILLI;

impl Ledger {
    pub fn check_share_refusals(&mut self, plan: &Plan) {
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
                if is_share && is_early(call) {
                    let text = self.show(number);
                    self.violates("a share is refused before its wait is over", text);
                }
                if tells_all {
                    self.check_share_refusal(plan, &calm, &of_key, number);
                }
                if is_share {
                    self.check_full_process(plan, number);
                }
            }
        }
    }

    fn check_share_refusal(&mut self, plan: &Plan, calm: &Calm, of_key: &[usize], number: usize) {
        let call = &self.calls[number];
        let others: Vec<&Call> = of_key
            .iter()
            .filter(|other| **other != number && self.meets(plan, calm, number, **other))
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
        let text = self.show(number);
        self.violates(rule, text);
    }

    /// Returns whether another call may have been in the key, or in its queue, while a call was asked.
    fn meets(&self, plan: &Plan, calm: &Calm, number: usize, other: usize) -> bool {
        let (call, it) = (&self.calls[number], &self.calls[other]);
        let answered = call.answered.unwrap_or(u64::MAX);
        // A process waits for its own releases that are in its way. Where replicas acknowledge, a lock is asked for on a
        // connection of its own, and a release that its caller waits for may be behind.
        let ended = match (&it.answer, plan.topology) {
            (Answer::Cancelled, _) => it.answered,
            (_, Topology::Replicas) => it.ended.or(it.left),
            // The server does not have the script, which is sent behind a question that is on its way.
            _ if self.is_first_share(it) => it.ended.or(it.left),
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
        // A call that is not polled may have been granted the key, until that was undone and it asked again.
        let only_asked = it.answer == Answer::Busy && it.wait == Some(0) && it.rests.is_none();
        !only_asked
            && it.asked <= answered
            && (is_dead || self.is_in_the_way_until(plan, calm, other) >= call.asked)
    }

    /// Returns whether no share was released before a call ended its own one.
    fn is_first_share(&self, call: &Call) -> bool {
        let mut shares = self.calls.iter().filter(|it| it.owning != Owning::Alone);
        call.left.is_some() && shares.all(|it| it.released.is_none() || it.released > call.left)
    }

    /// Returns whether as many owners as the limit of a call may have been inside.
    fn is_full_of(&self, others: &[&Call], call: &Call) -> bool {
        let inside = others.iter().filter(|it| !it.owning.excludes(call.owning));
        inside.count() as u64 >= u64::from(call.owning.limit())
    }

    /// Checks that a process that has all permits refuses a caller without a question to the server.
    fn check_full_process(&mut self, plan: &Plan, number: usize) {
        let call = &self.calls[number];
        let stops = plan.stops_inside
            || plan.has(|it| matches!(it, Fault::Stop { .. } | Fault::Block { .. }));
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

/// Returns whether the library refused a call before the end of its wait.
fn is_early(call: &Call) -> bool {
    match (call.wait, call.answered) {
        // By a clock that may be fast.
        (Some(wait), Some(answered)) => answered < call.asked + wait - wait / 100,
        _ => true,
    }
}

/// Returns whether a majority of the servers of a quorum may have had a dead waiter before a call. They do not count who
/// listens, so it keeps shares out for some seconds.
fn stands_behind_the_dead(plan: &Plan, call: &Call) -> bool {
    let key = lock_name(call.keys[0]).into_bytes();
    let is_before = |planned: &&Planned| {
        let is_of_the_key = matches!(&planned.fault, Fault::Dead { key: of, .. } if *of == key);
        is_of_the_key && call.answered.is_none_or(|answered| planned.at < answered)
    };
    let dead = plan.faults.iter().filter(is_before);
    let servers: BTreeSet<Option<usize>> = dead.map(|it| it.fault.server()).collect();
    plan.topology == Topology::Redlock && servers.len() > plan.minority()
}
