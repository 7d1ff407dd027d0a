//! Each call ends in time, and no key is free for long beside a waiter.

use super::calm::{brought_back_until, is_brought_back};
use super::excused::excused;
use super::overtime::overtime;
use super::quorum::taken;
use super::unheard::{LAST_RESORT, is_untold};
use super::unreleased::unreleased;
use super::{Call, Ledger, Record};
use crate::plan::{Plan, Topology, Verb, lock_name};
use crate::world::{Fault, LAST, LONGEST_STOP, MILLI, SECOND, State, slowest_segment};

/// How long a key may be free beside a waiter after the last fault.
const FREE: u64 = 4 * SECOND;
/// How long after a fault its effects last.
pub(super) const AFTERMATH: u64 = 2 * SECOND;
/// The same on a quorum. A node is not asked for a lease before late copies of its requests cannot arrive any more.
const AFTERMATH_AT_NODES: u64 = 9 * SECOND;
/// The longest pause of a waiter whose question failed.
const PAUSE: u64 = 260 * MILLI;
/// One call of a release removes so many dead waiters.
const DEAD_IN_ONE_CALL: usize = 1_000;
/// A waiter gives up when the store has failed for so long.
const OUTAGE: u64 = SECOND;

impl Ledger {
    pub fn check_waits(&mut self, plan: &Plan, state: &State) {
        let kills = (0..plan.processes.len()).any(|process| plan.ends_early(process));
        let stops = plan.has_stops();
        let is_exact = plan.has_exact_waits();
        let steps = plan.steps_clocks();
        let deletes = plan.has(|fault| matches!(fault, Fault::Delete { .. }));
        // Beside several keys there are readers too.
        let has_sets = plan.has_shares() || plan.verbs.contains(&Verb::Several);
        let forgets = deletes && has_sets;
        let is_back = |key: &usize| is_brought_back(plan, state, *key);
        let stuck = self.taken_without_room(plan);
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            // A key whose record found no memory stays taken for a ttl.
            let has_no_room = |it: &Record| it.has_no_room(plan) && call.keys.contains(&it.key);
            if plan.ends_early(call.process)
                || self.was_unpolled(number)
                || self.kept.records.iter().any(has_no_room)
                || call.keys.iter().any(|key| self.interrupted.contains(key))
            {
                continue;
            }
            let wrong = match (call.answered, call.wait) {
                // The key may stay with a process that was killed, or with shares whose set was deleted.
                (None, None) if kills || forgets => None,
                (None, None) if call.keys.iter().any(is_back) => None,
                (None, None) if call.keys.iter().any(|key| stuck.contains(key)) => None,
                (None, _) => Some("a call is never answered"),
                (Some(answered), Some(wait)) => {
                    let due = (call.asked + wait).max(call.rests.unwrap_or(0));
                    let end = due + overtime(plan, call);
                    // A caller behind another one waits until that one asks again.
                    let late = answered > end + PAUSE || answered > end && self.is_alone(number);
                    (late && !stops).then_some("a call is answered too late")
                }
                (Some(answered), None) => {
                    let keys = call.keys.iter();
                    let back = keys
                        .clone()
                        .map(|key| brought_back_until(plan, state, *key));
                    let kept = keys.flat_map(|key| unreleased(plan, state, *key));
                    let back = back.chain(kept.map(|(_, until)| until)).max();
                    let others = plan.work_ends + 20 * SECOND;
                    let longest = others.max(back.unwrap_or(0) + SECOND) + all_hold(plan);
                    let late = answered > longest.max(self.unserved(plan, state, call));
                    (late && !kills && !forgets && !plan.loses_data())
                        .then_some("a call waits for long")
                }
            };
            if let Some(rule) = wrong {
                self.violates(rule, self.show(number));
            }
            if is_exact && releases_late(plan, &self.calls[number]) {
                self.violates("a release waits for more than its trip", self.show(number));
            }
            if is_exact && self.gives_up_early(plan, number) {
                let text = self.show(number);
                self.violates("a wait ends before the store was out for a second", text);
            }
            // Nor is a waiter told anything while its manager takes a former master for the master.
            let untold =
                plan.has(|fault| matches!(fault, Fault::ResetSentinels | Fault::Strike { .. }));
            // A node that has lost its data does not vote.
            let is_out = plan.topology == Topology::Redlock
                && plan.has(|fault| fault.loses_data() || matches!(fault, Fault::Spoil { .. }));
            // Elsewhere a waiter may wait for something else than the key.
            let is_out = is_out
                || !is_exact
                    && (plan.topology == Topology::Redlock
                        || plan.has(|fault| matches!(fault, Fault::Delete { .. })));
            let rests = self.calls[number].rests.is_some();
            // The process that passed a key on looks at it when the ticket is over.
            let passed_on = kills && self.is_passed_on(number);
            let is_out = is_out || passed_on;
            if !is_out && !steps && !untold && !rests && self.calls[number].wait != Some(0) {
                self.check_free(number, plan, state);
            }
        }
    }

    /// Until when the server may not serve a call, and its process asks at last.
    fn unserved(&self, plan: &Plan, state: &State, call: &Call) -> u64 {
        let unserved = call.keys.iter();
        let unserved = unserved
            .map(|key| self.unserved_until(plan, state, *key, self.in_line_since(call, *key)));
        unserved.max().unwrap_or(0)
    }

    fn is_passed_on(&self, number: usize) -> bool {
        let keys = &self.calls[number].keys;
        self.tickets.iter().any(|ticket| keys.contains(&ticket.key))
    }

    /// Returns whether no other call of the process is about the key at the same time.
    fn is_alone(&self, number: usize) -> bool {
        let it = &self.calls[number];
        !self.calls.iter().enumerate().any(|(other, call)| {
            other != number && call.process == it.process && overlaps(it, call)
        })
    }

    /// Returns whether a waiter is told `Unavailable` before it, or one that it shares the answer with, was refused for a
    /// second.
    fn gives_up_early(&self, plan: &Plan, number: usize) -> bool {
        let it = &self.calls[number];
        let is_out =
            matches!(&it.answer, super::Answer::Refused(why) if why.starts_with("Unavailable"));
        // A waiter also shares the answer of a call that its task has left unpolled and given up.
        let is_known = plan.topology != Topology::Redlock && !plan.has_jobs();
        if !is_out || it.wait == Some(0) || !is_known {
            return false;
        }
        let answered = it.answered.unwrap_or(u64::MAX);
        !self.calls.iter().any(|call| {
            let least = call.wait.unwrap_or(OUTAGE).min(OUTAGE);
            let is_its = call.process == it.process && call.keys == it.keys;
            is_its
                && overlaps(it, call)
                && call.left.is_none()
                && call.asked + least - least / 100 <= answered
        })
    }

    /// Checks that the key was not free for long while the call waited.
    fn check_free(&mut self, number: usize, plan: &Plan, state: &State) {
        let call = &self.calls[number];
        let until = call.answered.unwrap_or(state.now);
        let is_near = is_near(plan, call);
        let limit = match is_near {
            true => plan.segments(8) + 300 * MILLI,
            false => FREE,
        };
        let aftermath = match plan.topology {
            Topology::Redlock => AFTERMATH_AT_NODES,
            _ => AFTERMATH,
        };
        let mut free = match is_near {
            true => call.asked.max(SECOND),
            false => call.asked.max(trouble(plan, state) + aftermath),
        };
        let forgets = plan.has(|fault| match fault {
            Fault::Delete { .. } => true,
            // PostgreSQL tells no waiter of it.
            Fault::Flush { .. } => plan.topology == Topology::Postgres,
            _ => false,
        });
        if forgets && !is_near {
            return;
        }
        free = free.max(self.unserved(plan, state, call));
        free = free.max(self.held_unrenewed_until(plan, call));
        if !is_near {
            free = free.max(self.held_unpolled_until(plan, call));
        }
        // The key of one of several may be taken at each moment.
        let mut taken: Vec<_> = call
            .keys
            .iter()
            .flat_map(|key| taken(plan, state, *key))
            .collect();
        taken.sort_unstable();
        let mut ended = 0;
        for (from, to) in taken.into_iter().chain([(until, until)]) {
            let from = from.min(until);
            if is_near {
                free = free.max(excused(plan, free, from));
            }
            // Asked only where it matters, because it looks at all calls.
            if is_near && from > free + limit {
                let call = &self.calls[number];
                free = free.max(self.left_amid_the_dead(plan, call, ended).min(from));
                free = free.max(self.flushed_unheard_until(plan, call, ended).min(from));
                let call = &self.calls[number];
                if is_given_unseen(plan, state, call, from)
                    || is_untold(plan, state, call.keys[0], ended)
                {
                    free = free.max(from);
                }
            }
            // Asked last for the same reason.
            let is_excused = || {
                let mut keys = self.calls[number].keys.iter();
                let is_unheard = keys.any(|key| self.is_end_unheard(plan, state, *key, ended));
                !is_near && from <= free + LAST_RESORT && is_unheard
            };
            if from > free + limit && !is_excused() {
                let since = free as f64 / 1e6;
                let text = format!("from {since:.3}: {}", self.show(number));
                self.violates("a call waits beside a free key", text);
                return;
            }
            free = free.max(to);
            ended = ended.max(to);
        }
    }
}

impl Ledger {
    /// The time by which a waiter asks by itself, where the key is free since `free`: a process died between two calls of its
    /// release, because the queue had more dead waiters than one call removes.
    fn left_amid_the_dead(&self, plan: &Plan, waiter: &Call, free: u64) -> u64 {
        let queue = plan.topology.queue_name(waiter.keys[0]).into_bytes();
        let has_many = |time: u64| {
            plan.faults.iter().any(|it| {
                let is_many = matches!(&it.fault, Fault::Gone { key, count, .. }
                    if *key == queue && *count >= DEAD_IN_ONE_CALL);
                is_many && it.at <= time
            })
        };
        let releases = self.calls.iter().filter(|it| it.keys == waiter.keys);
        let deaths = releases.filter_map(|it| {
            let (left, dies) = (it.left?, plan.dies(it.process)?);
            let is_amid = left <= free
                && free <= dies + plan.segments(1)
                && left <= dies
                && dies <= it.ended.unwrap_or(left + plan.segments(6));
            (is_amid && has_many(free)).then_some(dies + LAST_RESORT)
        });
        deaths.max().unwrap_or(0)
    }
}

/// The time in which each task holds a lock once.
fn all_hold(plan: &Plan) -> u64 {
    let tasks: usize = plan.processes.iter().map(|it| it.tasks.len()).sum();
    let longest = plan.habits.holds.iter().max().copied().unwrap_or(0);
    tasks as u64 * longest * MILLI
}

/// Returns whether a release, which no replica has to acknowledge, takes longer than its trip on a new connection.
fn releases_late(plan: &Plan, call: &Call) -> bool {
    let harmless = |fault: &Fault| {
        matches!(
            fault,
            Fault::StopReplica { .. } | Fault::StepClock { .. } | Fault::ForgetScripts { .. }
        )
    };
    let disturbed = plan.has(|fault| !harmless(fault)) || plan.has_stops();
    let trip = 10 * slowest_segment(plan.latency) + 5 * MILLI;
    let known = plan.topology.is_alone();
    let late = |(left, ended)| ended > left + trip;
    known && !disturbed && call.asked > SECOND && call.left.zip(call.ended).is_some_and(late)
}

fn overlaps(it: &Call, call: &Call) -> bool {
    let (begins, ends) = it.span();
    let is_over = call.left.or(call.answered).unwrap_or(u64::MAX);
    call.keys == it.keys && call.asked <= ends && begins <= is_over
}

fn trouble(plan: &Plan, state: &State) -> u64 {
    match plan.stops_inside {
        true => LAST + LONGEST_STOP,
        false => state.last_fault_ends(),
    }
}

/// Returns whether each time in which the key is free beside this call has its cause in a fault of that time.
///
/// A waiter that is stopped costs its grant, which the process that handed the key over sees to. So at most one other
/// process is stopped, and at most one ends.
fn is_near(plan: &Plan, call: &Call) -> bool {
    let is_one_key = call.keys.len() == 1 && matches!(call.owning, super::Owning::Alone);
    let known = plan.topology.is_alone();
    let calm = plan.is_connected() && !plan.stops_inside && plan.habits.blocks == 0;
    let stopped =
        |process: usize| plan.has(|fault| fault.is_a_stop() && fault.process() == Some(process));
    let stopped: Vec<usize> = (0..plan.processes.len())
        .filter(|it| stopped(*it))
        .collect();
    let others_go_on = match stopped[..] {
        [] => plan.ends() <= 1,
        [other] => other != call.process && plan.ends() <= 1,
        _ => false,
    };
    // A waiter that was refused for a long lease does not hear of a shorter one that ends by itself.
    let all_end = plan.ends() == 0 && stopped.is_empty();
    plan.has_exact_waits()
        && is_one_key
        && known
        && calm
        && others_go_on
        && (all_end || plan.ttls.len() == 1)
}

/// Returns whether the key was given to a waiter that had asked a moment ago, and neither that one nor the process that gave it
/// may be there.
///
/// The next waiters are not told of the end of such a grant.
fn is_given_unseen(plan: &Plan, state: &State, call: &Call, until: u64) -> bool {
    if plan.ends() == 0 || !plan.has(Fault::is_a_stop) {
        return false;
    }
    let given = state.hosts[0].given.get(lock_name(call.keys[0]).as_bytes());
    let last = given.and_then(|given| given.iter().rev().find(|it| it.0 < until));
    last.is_some_and(|(_, age)| (0..=1_000_000).contains(age))
}

#[cfg(test)]
#[path = "waits_tests.rs"]
mod tests;
