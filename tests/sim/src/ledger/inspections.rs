//! An operator sees holders that were there, and does not miss one.

use lock_core::operator::{HolderProcess, KeyState};

use super::answers::spans;
use super::causes::is_slow;
use super::late::are_late;
use super::undisturbed::{START, is_quiet, promptly};
use super::{Answer, Call, Claim, Ledger, Owning};
use crate::plan::{Plan, Topology, lock_name};
use crate::world::{Fault, MILLI, Planned, State};

/// A renewal takes so many segments, if the server does not know its script.
const RENEWAL: u64 = 4;

/// What an operator saw of a key, at some time between two times.
#[derive(Clone, Debug)]
pub struct Seen {
    pub key: usize,
    pub asked: u64,
    pub answered: u64,
    pub state: KeyState,
    pub holders: Vec<SeenHolder>,
}

#[derive(Clone, Debug)]
pub struct SeenHolder {
    pub process: HolderProcess,
    pub token: Option<u64>,
}

impl Ledger {
    pub fn check_inspections(&mut self, plan: &Plan, state: &State) {
        for seen in self.inspections.clone() {
            let wrong = self.wrong_holder(&seen).or_else(|| {
                let steps = plan.steps_clocks();
                let one_server = plan.topology != Topology::Redlock;
                (one_server && !steps).then(|| wrong_state(&seen, state))?
            });
            let wrong = wrong.or_else(|| silent_process(plan, state, &seen));
            let wrong = wrong.or_else(|| self.missed_owner(plan, &seen));
            if let Some(rule) = wrong {
                self.violates(rule, format!("{seen:?}"));
            }
        }
        let is_calm = plan.faults.is_empty() && !plan.stops_inside && !is_slow(plan);
        // The ledger does not note whose operator it was.
        let is_slowed = |time: u64| {
            plan.processes.iter().enumerate().any(|(process, it)| {
                let lasts = it.operation_timeout;
                let span = time.saturating_sub(lasts + lasts / 100)..time;
                are_late(&state.late, process, span, lasts)
            })
        };
        let mut errors = self.operator_errors.iter();
        let error = errors.find(|(time, why)| {
            let has_no_answer = why.contains("gave no answer in time");
            is_calm && *time > 2 * START && !(has_no_answer && is_slowed(*time))
        });
        if let Some((time, error)) = error {
            let text = format!("at {:.6}: {error}", *time as f64 / 1e9);
            self.violates("an operator is refused without a fault", text);
        }
    }

    /// A token was named that no owner had meanwhile.
    fn wrong_holder(&self, seen: &Seen) -> Option<&'static str> {
        let may_have = |call: &Call, token: u64| {
            let meanwhile = call.asked <= seen.answered
                && call.left.is_none_or(|left| left >= seen.asked)
                && call.keys.contains(&seen.key);
            // Its owner may have given up as it was granted, or may still collect other keys.
            let refused = matches!(call.answer, Answer::Busy | Answer::NoTicket);
            let unknown = call.token.is_none() && (call.keys.len() > 1 || !refused);
            let collects = call.keys.len() > 1 && call.token.is_some_and(|it| token <= it);
            meanwhile && (unknown || collects || call.token == Some(token))
        };
        let tokens = seen.holders.iter().filter_map(|holder| holder.token);
        let mut wrong = tokens.filter(|token| !self.calls.iter().any(|it| may_have(it, *token)));
        wrong
            .next()
            .map(|_| "an operator sees a token that no owner has")
    }

    /// Returns whether a ticket of the owner was over at that moment. On PostgreSQL it may be picked up for a round trip more,
    /// because a process knows the server's time by the last answer.
    fn was_just_over(&self, plan: &Plan, seen: &Seen, owner: &Claim) -> bool {
        self.tickets.iter().any(|it| {
            let its = it.by == owner.call || it.uses.contains(&owner.call);
            its && seen.answered >= it.asked + it.pick_up
                && seen.asked <= it.made + it.pick_up + plan.segments(4)
        })
    }

    /// An owner that believed all the time was not seen, or was taken for another one.
    fn missed_owner(&self, plan: &Plan, seen: &Seen) -> Option<&'static str> {
        let reached = seen.asked > START && is_quiet(plan, seen.asked, seen.answered, |_| false);
        // A manager may connect to some nodes later than to others. Those that it does not know yet are silent, and then a
        // refused attempt may look like the owner.
        let knows_all = reached && seen.asked > 2 * START;
        let trouble = plan.topology == Topology::Redlock && !knows_all;
        // A row of PostgreSQL outlasts its lease. So a ticket that is over is valid again, if the clock is set back and no other
        // client has had the key.
        let revives = plan.topology == Topology::Postgres && plan.steps_clocks();
        let revives = revives && self.tickets.iter().any(|it| it.key == seen.key);
        if plan.has(Fault::loses_data) || trouble || revives {
            return None;
        }
        let all_the_time = |claim: &&Claim| {
            claim.key == seen.key
                && claim.owning == Owning::Alone
                && claim.from <= seen.asked
                && seen.answered <= claim.until
        };
        let owner = self.claims.iter().find(all_the_time)?;
        let freed = self
            .orders
            .iter()
            .any(|order| order.sent <= seen.answered && self.is_about(order, owner.call));
        if freed || plan.topology == Topology::Postgres && self.was_just_over(plan, seen, owner) {
            return None;
        }
        let [holder] = seen.holders.as_slice() else {
            return Some("an operator misses an owner");
        };
        let process = self.calls[owner.call].process;
        match holder.process {
            HolderProcess::Holds => (holder.token != Some(owner.token))
                .then_some("an operator sees another token than the owner's"),
            HolderProcess::Ended if self.is_on_its_way(owner) => None,
            HolderProcess::Ended if self.looks_like_an_attempt(plan, seen, owner) => None,
            HolderProcess::Ended => Some("an operator takes an owner for one that has ended"),
            HolderProcess::Gone if reached && !plan.ends_early(process) => {
                Some("an operator takes a living owner for gone")
            }
            HolderProcess::Foreign => Some("an operator takes an owner for a stranger"),
            _ => None,
        }
    }

    /// Returns whether a silent node may make an attempt of another call look like the owner. A process asks a node no more for a
    /// while that has not answered a renewal in an eighth of the ttl. With one vote each, the last vote to end is shown.
    fn looks_like_an_attempt(&self, plan: &Plan, seen: &Seen, owner: &Claim) -> bool {
        let shortest = plan.ttls.iter().min().map_or(0, |ttl| ttl * MILLI);
        let is_silent = plan.topology == Topology::Redlock && shortest / 8 < plan.segments(RENEWAL);
        let withdrawn = |call: &Call| call.answered.map(|it| it + plan.segments(2));
        let mut calls = self.calls.iter().enumerate();
        is_silent
            && calls.any(|(number, call)| {
                number != owner.call
                    && call.keys.contains(&seen.key)
                    && call.asked <= seen.answered
                    && withdrawn(call).is_none_or(|it| it >= seen.asked)
            })
    }
}

/// The key was free all the time, or taken all the time.
fn wrong_state(seen: &Seen, state: &State) -> Option<&'static str> {
    let spans = spans(state, seen.key);
    let all_the_time = |it: &(u64, u64)| it.0 <= seen.asked && seen.answered <= it.1;
    let at_times = |it: &(u64, u64)| it.0 <= seen.answered && seen.asked <= it.1;
    match seen.state {
        // Between two values it may be free for a moment that takes no time.
        KeyState::Free if spans.iter().any(all_the_time) && !has_changed(seen, state) => {
            Some("an operator takes a key for free")
        }
        KeyState::Held | KeyState::CoolingDown if !spans.iter().any(at_times) => {
            Some("an operator takes a key for taken")
        }
        _ => None,
    }
}

fn has_changed(seen: &Seen, state: &State) -> bool {
    let name = lock_name(seen.key);
    let lives = state.hosts[0].lives.get(name.as_bytes());
    let mut changes = lives.into_iter().flatten().map(|life| life.0);
    changes.any(|change| seen.asked <= change && change <= seen.answered)
}

/// A process that lives answers, and no connection listens for one that is dead. A process replaces a connection that was silent
/// in a freeze when it needs it next, which may be long behind the freeze, and hears nothing at that moment.
fn silent_process(plan: &Plan, state: &State, seen: &Seen) -> Option<&'static str> {
    let mut holders = seen.holders.iter();
    let silent = holders.any(|holder| holder.process == HolderProcess::Silent);
    let begun = seen.asked.saturating_sub(promptly(plan));
    // A manager that is dropped answers no more, either.
    let mut exits = plan
        .processes
        .iter()
        .flat_map(|process| process.exits.into_iter().chain(process.leaves));
    let exits = exits.any(|exits| exits <= seen.answered);
    // On a quorum a manager connects to some nodes later than to others.
    let connects = match plan.topology {
        Topology::Redlock => seen.asked < 2 * START,
        _ => seen.asked < START,
    };
    let freezes = |it: &Planned| matches!(it.fault, Fault::Freeze { .. }) && it.at <= seen.answered;
    let replaces = plan.faults.iter().any(freezes) && state.has_dialed_in(begun..=seen.answered);
    (silent && !exits && !connects && !replaces && is_quiet(plan, begun, seen.answered, |_| false))
        .then_some("a process is silent without a fault")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{calls, calm, owns, with, world};
    use super::*;
    use crate::world::{SECOND, Ways};

    #[test]
    fn a_process_is_silent_behind_its_manager_and_while_it_replaces_a_connection_that_a_freeze_has_silenced()
     {
        let freeze = with(Fault::Freeze {
            process: 0,
            server: 0,
            ways: Ways::Replies,
        });
        // The connection is replaced at this millisecond, and the operator asks in second 6.
        let wrong = |plan: &Plan, dialed: u64| {
            let seen = Seen {
                key: 0,
                asked: 6 * SECOND,
                answered: 6 * SECOND + 250 * MILLI,
                state: KeyState::Held,
                holders: vec![SeenHolder {
                    process: HolderProcess::Silent,
                    token: None,
                }],
            };
            let sim = world();
            sim.change(|state| {
                state.now = dialed * MILLI;
                state.dial(0, 0);
            });
            sim.look(|state| silent_process(plan, state, &seen).is_some())
        };
        assert!(!wrong(&freeze, 6_100));
        assert!(wrong(&freeze, 5_000));
        assert!(wrong(&freeze, 6_251));
        assert!(wrong(&calm(), 6_100));
        let dropped = |at: u64| {
            let mut plan = calm();
            plan.processes[0].leaves = Some(at * MILLI);
            plan
        };
        assert!(!wrong(&dropped(6_100), 6_100));
        assert!(wrong(&dropped(6_251), 6_100));
    }

    #[test]
    fn an_operator_takes_an_attempt_for_the_owner_where_a_node_may_be_silent() {
        let rule = Some("an operator takes an owner for one that has ended");
        // A call asks at second 5 for the key that another one has, and is answered at this millisecond.
        let missed = |topology: Topology, ttl: u64, answered: u64| {
            let mut plan = calm();
            (plan.topology, plan.latency, plan.ttls) = (topology, 5 * MILLI, vec![ttl]);
            let mut ledger = Ledger::default();
            owns(&mut ledger, Owning::Alone, 7, 2, 9);
            calls(&mut ledger, Owning::Alone, None, 5, None).answered = Some(answered * MILLI);
            let seen = Seen {
                key: 0,
                asked: 6 * SECOND,
                answered: 7 * SECOND,
                state: KeyState::Held,
                holders: vec![SeenHolder {
                    process: HolderProcess::Ended,
                    token: None,
                }],
            };
            ledger.missed_owner(&plan, &seen)
        };
        assert_eq!(missed(Topology::Redlock, 300, 5_990), None);
        assert_eq!(missed(Topology::Redlock, 300, 5_900), rule);
        assert_eq!(missed(Topology::Redlock, 3_000, 5_990), rule);
        assert_eq!(missed(Topology::One, 300, 5_990), rule);
    }
}
