//! No call waits for long while the key has room for it.
//!
//! Between the owners and the waiters that exclude it, and while fewer owners are inside than its limit, a waiter enters at
//! once. A waiter that is dead, stopped or not polled costs a bounded time.

use super::calm::{Calm, calls_tell_all};
use super::dead::addresses;
use super::{Answer, Call, Ledger, Owning};
use crate::plan::{Plan, Topology, lock_name};
use crate::world::{Fault, MILLI, SECOND, State};

/// How long the turn of a waiter may take.
const AT_ONCE: u64 = SECOND;
const ON_A_QUORUM: u64 = 2 * SECOND;
const IN_TROUBLE: u64 = 4 * SECOND;
/// A waiter is left in peace for so long before it is asked whether it still waits.
const IN_PEACE: u64 = SECOND;
/// For so long the store gives a key to a waiter that does not take it.
const GRANT: u64 = 2 * SECOND;
/// A waiter that is not polled loses its turn to another one of its process after this time.
const UNPOLLED: u64 = 200 * MILLI;

impl Ledger {
    pub fn check_turns(&mut self, plan: &Plan, state: &State) {
        let now = state.now;
        if !plan.has_shares() || !calls_tell_all(plan) {
            return;
        }
        let calm = Calm::of(plan);
        let longest = match (calm.is_quiet, plan.topology) {
            (true, Topology::Redlock) => ON_A_QUORUM,
            (true, _) => AT_ONCE,
            _ => IN_TROUBLE,
        } + calm.slack;
        for of_key in self.calls_by_key(plan) {
            for &number in &of_key {
                let call = &self.calls[number];
                let from = call.asked.max(calm.begins);
                let until = call.answered.unwrap_or(now);
                let is_left = self.interrupted.contains(&call.keys[0]);
                let waits = call.wait != Some(0) && call.rests.is_none() && call.keys.len() == 1;
                let waits = waits && !is_left;
                if !waits || plan.ends_early(call.process) || until <= from + longest {
                    continue;
                }
                let longest = longest + self.cost_of_others(plan, &of_key, number, until);
                let turn = self.longest_turn(plan, state, &calm, &of_key, number, (from, until));
                let heard = self.end_is_heard_by(plan, state, call.keys[0], turn.0);
                if turn.1 > turn.0.max(heard) + longest {
                    let ms = |time: u64| time as f64 / 1e6;
                    let text = format!(
                        "from {:.3} to {:.3}: {}",
                        ms(turn.0),
                        ms(turn.1),
                        self.show(number)
                    );
                    self.violates("a call waits though the key has room for it", text);
                }
            }
        }
    }

    /// How long waiters that do not go on may keep a call waiting.
    fn cost_of_others(&self, plan: &Plan, of_key: &[usize], number: usize, until: u64) -> u64 {
        let call = &self.calls[number];
        let others = of_key.iter().map(|other| &self.calls[*other]);
        let mut cost = 0;
        // Of a process that dies the permits, the readers and the locks wait in lines of their own.
        let mut lines: Vec<(usize, Option<bool>)> = Vec::new();
        for it in others.filter(|it| it.asked <= until) {
            if let Some(rests) = it.rests.filter(|rests| *rests >= call.asked) {
                let own = it.process == call.process && !it.owning.excludes(call.owning);
                let turn = match own && !self.asks_beside(of_key, it) {
                    true => UNPOLLED,
                    false => GRANT + UNPOLLED,
                };
                cost += turn.min(rests - it.asked);
            }
            let dies = plan.dies(it.process).filter(|_| it.answer == Answer::None);
            let Some(dies) = dies else {
                continue;
            };
            let grant = it.ttl.min(GRANT);
            let line = match it.owning {
                Owning::Alone => None,
                owning => Some(owning == Owning::READER),
            };
            if !lines.iter().any(|known| known.0 == it.process) {
                // It may have said right before that it waits.
                cost += match it.asked + IN_PEACE < dies {
                    true => grant.max(IN_PEACE),
                    false => IN_PEACE,
                };
            }
            if !lines.contains(&(it.process, line)) {
                lines.push((it.process, line));
                // A server sees that a killed one listens no more. A node of a cluster knows its own listeners only.
                let process = it.process;
                let is_unseen = plan.topology == Topology::Cluster;
                if is_unseen || plan.has(|fault| *fault == Fault::Halt { process }) {
                    // One that is asked whether it waits may be given the key when those inside have left.
                    let excludes = it.owning.excludes(call.owning);
                    cost += if excludes { 2 * grant } else { grant };
                }
            }
        }
        cost
    }

    /// Returns whether a share found others of its process in line, so that it may have asked at once, beside the line. The
    /// others do not stand behind it then.
    fn asks_beside(&self, of_key: &[usize], call: &Call) -> bool {
        let others = of_key.iter().map(|other| &self.calls[*other]);
        let mut in_line = others.filter(|it| {
            let is_like = it.process == call.process && !it.owning.excludes(call.owning);
            is_like && it.task != call.task && it.asked <= call.asked
        });
        in_line.any(|it| it.answered.is_none_or(|answered| answered >= call.asked))
    }

    /// The longest span of the call's wait in which no other call was in its way.
    fn longest_turn(
        &self,
        plan: &Plan,
        state: &State,
        calm: &Calm,
        of_key: &[usize],
        number: usize,
        (from, until): (u64, u64),
    ) -> (u64, u64) {
        let call = &self.calls[number];
        let mut least = call.owning.limit();
        // At each time: how much more excludes the call, and how many more owners are inside.
        let mut changes: Vec<(u64, i32, i32)> = Vec::new();
        for &other in of_key.iter().filter(|other| **other != number) {
            let it = &self.calls[other];
            if it.asked >= until || only_asks(it) {
                continue;
            }
            let ends = match keeps_its_place(plan, it) {
                true => u64::MAX,
                false => self
                    .is_in_the_way_until(plan, calm, other)
                    .max(held_by_the_dead_until(plan, state, calm, it)),
            };
            if it.owning.excludes(call.owning) {
                changes.push((it.asked, 1, 0));
                changes.push((ends, -1, 0));
                continue;
            }
            if it.wait != Some(0) && it.answered.is_none_or(|answered| answered > from) {
                least = least.min(it.owning.limit());
            }
            if let Some(answered) = it.answered {
                changes.push((answered.saturating_sub(calm.slack).max(it.asked), 0, 1));
                changes.push((ends, 0, -1));
            } else if ends > plan.dies(it.process).unwrap_or(u64::MAX) {
                changes.push((it.asked, 0, 1));
                changes.push((ends, 0, -1));
            }
        }
        changes.sort_unstable();
        let (mut excluded, mut inside) = (0, 0);
        let (mut turn, mut longest) = (from, (from, from));
        for (time, excludes, enters) in changes.into_iter().chain([(until, 0, 0)]) {
            let time = time.clamp(from, until);
            let has_room = excluded == 0 && i64::from(inside) < i64::from(least);
            if has_room && time - turn > longest.1 - longest.0 {
                longest = (turn, time);
            }
            excluded += excludes;
            inside += enters;
            // The turn goes on only if there was room up to now.
            if !(has_room && excluded == 0 && i64::from(inside) < i64::from(least)) {
                turn = time;
            }
        }
        longest
    }
}

/// Returns whether a call stays in line although its machine has stopped. The servers of a quorum only see that its connection
/// is open.
fn keeps_its_place(plan: &Plan, call: &Call) -> bool {
    let process = call.process;
    let is_halted = || plan.has(|fault| *fault == Fault::Halt { process });
    plan.topology == Topology::Redlock && call.answer == Answer::None && is_halted()
}

/// Until when a waiter may have the key whose process died when the server had granted it the lock, and before it heard of it.
fn held_by_the_dead_until(plan: &Plan, state: &State, calm: &Calm, call: &Call) -> u64 {
    let Some(dies) = plan
        .dies(call.process)
        .filter(|_| call.answer == Answer::None)
    else {
        return 0;
    };
    let last = dies + calm.slack;
    let addresses = addresses(state, call.process);
    let set = plan.topology.shares_name(call.keys[0]);
    let is_its = |value: &[u8]| addresses.iter().any(|its| value.starts_with(its));
    let has_it = state.masters().any(|server| {
        let texts = state.hosts[server]
            .texts
            .get(lock_name(call.keys[0]).as_bytes());
        let mut texts = texts.into_iter().flatten().filter(|it| it.0 <= last);
        let shares = state.hosts[server].texts.get(set.as_bytes());
        let mut shares = shares
            .into_iter()
            .flatten()
            .filter(|it| (call.asked..=last).contains(&it.0));
        texts.next_back().is_some_and(|it| is_its(&it.1)) || shares.any(|it| is_its(&it.1))
    });
    if has_it {
        last + call.ttl + call.ttl / 50
    } else {
        0
    }
}

/// Returns whether a call was refused at once, and left nothing.
fn only_asks(call: &Call) -> bool {
    call.wait == Some(0) && call.answer == Answer::Busy
}

#[cfg(test)]
mod tests {
    use super::super::tests::{calls, calm, plans, world};
    use super::*;
    use crate::plan::Verb;

    /// The rules that are broken where a waiter waits for a minute beside one whose process was killed at second 5, and the
    /// server had this value in this key from second 4 on.
    fn broken(topology: Topology, owning: Owning, key: &str, value: &[u8]) -> Vec<&'static str> {
        let mut plan = calm();
        plan.topology = topology;
        plan.verbs = vec![Verb::Acquire, Verb::Read];
        plans(&mut plan, (5_000, 6_000), Fault::Kill { process: 0 });
        let mut ledger = Ledger::default();
        calls(&mut ledger, owning, None, 2, None).ttl = 300 * SECOND;
        calls(&mut ledger, Owning::Alone, None, 3, None).process = 1;
        let sim = world();
        sim.change(|state| {
            let card: [&[u8]; 3] = [b"SET", b"lockkit:!h:00000000000000aa", b"1\nhost-0"];
            state.stranger_runs(0, &card);
            let values = vec![(4 * SECOND, value.to_vec())];
            state.hosts[0].texts.insert(key.into(), values);
            state.now = 60 * SECOND;
        });
        sim.judge(ledger, &plan, Ledger::check_turns)
    }

    #[test]
    fn a_waiter_may_have_been_granted_its_lock_in_the_moment_in_which_it_was_killed() {
        let rule = "a call waits though the key has room for it";
        for (topology, owning, key) in [
            (Topology::One, Owning::Alone, "lockkit:k0"),
            (Topology::One, Owning::READER, "lockkit:!s:{k0}"),
            (Topology::Cluster, Owning::READER, "lockkit:!s:{lockkit:k0}"),
        ] {
            assert!(broken(topology, owning, key, b"00000000000000aa/0").is_empty());
            assert_eq!(broken(topology, owning, key, b"00000000000000bb/0"), [rule]);
        }
    }

    #[test]
    fn a_call_waits_for_the_last_resort_from_the_end_of_the_lease_of_a_process_that_was_killed() {
        // The share of a process that is killed at second 2 ends at second 11. Connections are ended up to second 26.
        let broken = |answered: u64| {
            let mut plan = calm();
            plan.verbs = vec![Verb::Permits];
            plan.ttls = vec![10_000, 300_000];
            plans(&mut plan, (2_000, 3_000), Fault::Kill { process: 0 });
            let ended = Fault::EndConnections { server: 0 };
            plans(&mut plan, (25_000, 26_000), ended);
            let mut ledger = Ledger::default();
            calls(&mut ledger, Owning::Share(1), None, 1, Some(1)).ttl = 10 * SECOND;
            calls(&mut ledger, Owning::Share(1), None, 3, Some(answered)).process = 1;
            for call in &mut ledger.calls {
                call.answer = Answer::Granted;
            }
            let sim = world();
            sim.change(|state| state.now = 90 * SECOND);
            sim.judge(ledger, &plan, Ledger::check_turns)
        };
        assert!(broken(44).is_empty());
        assert_eq!(broken(54), ["a call waits though the key has room for it"]);
    }
}
