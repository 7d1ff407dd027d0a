//! The locks of a majority: when the key is taken, and on which servers an owner has it.

use super::answers::{spans, spans_at};
use super::calm::arrives_by;
use super::late::{NO_ANSWER, NO_TIME_LEFT};
use super::{Answer, Call, Ledger};
use crate::plan::{Plan, Topology};
use crate::world::{Fault, Kind, LAST, LONGEST_STOP, MILLI, Planned, SECOND, State, Write};

/// After the last fault, and after the grant, the renewals of this time bring a lock to all servers.
const SETTLED: u64 = 4 * SECOND;
/// A server from which a vote that came late was withdrawn is not asked for the lock before a copy of the vote is too old to
/// arrive.
const COPIES: u64 = 8 * SECOND;

/// The spans of true time in which so many servers had a key that no majority was free.
pub(super) fn taken(plan: &Plan, state: &State, key: usize) -> Vec<(u64, u64)> {
    if plan.topology != Topology::Redlock {
        return spans(state, key);
    }
    let needed = plan.servers - plan.minority();
    let servers = (0..plan.servers).map(|server| spans_at(state, [server], key));
    let mut edges: Vec<(u64, i32)> = servers
        .flatten()
        .flat_map(|(from, until)| [(from, 1), (until, -1)])
        .collect();
    edges.sort_unstable();
    let (mut count, mut since, mut taken) = (0, None, Vec::new());
    for (time, change) in edges {
        count += change;
        match since {
            None if count >= needed as i32 => since = Some(time),
            Some(from) if count < needed as i32 => {
                taken.push((from, time));
                since = None;
            }
            _ => {}
        }
    }
    taken
}

impl Ledger {
    /// Notes the value that a majority of the servers has for an owner, at its first look that finds one. A later value may be
    /// another owner's, because a stranger has deleted the key.
    pub fn note_value(&mut self, plan: &Plan, state: &State, call: usize) {
        let Some(key) = self.calls[call].keys.first() else {
            return;
        };
        let mut values: Vec<u64> = (0..plan.servers)
            .filter_map(|server| state.value_of(server, *key))
            .collect();
        values.sort_unstable();
        let of_many = values
            .chunk_by(|one, other| one == other)
            .find(|same| same.len() > plan.minority());
        if let Some(same) = of_many {
            self.values.entry(call).or_insert(same[0]);
        }
    }

    /// Checks that an owner counts no server that has not had the key for a whole ttl.
    pub fn check_acks(&mut self, plan: &Plan, state: &State, call: usize, granted: u32) {
        let it = &self.calls[call];
        if plan.topology != Topology::Redlock || plan.has(Fault::loses_data) {
            return;
        }
        let has = |server: &usize| state.value_of(*server, it.keys[0]).is_some();
        if granted as usize <= (0..plan.servers).filter(has).count() {
            self.miscounts.remove(&call);
            return;
        }
        let since = state.now.saturating_sub(it.ttl + 100 * MILLI);
        let had = |server: &usize| {
            let mut spans = spans_at(state, [*server], it.keys[0]).into_iter();
            spans.any(|span| span.1 >= since)
        };
        let have = (0..plan.servers).filter(had).count();
        // A vote that has ended may count until the next renewal is answered.
        let begun = *self.miscounts.entry(call).or_insert(state.now);
        let is_renewed = state.now > begun + it.ttl / 2 + 200 * MILLI;
        if granted as usize > have && is_renewed && !state.thawed {
            let text = format!("{granted} of {have}: {}", self.show(call));
            self.violates("an owner counts a server that is without the key", text);
        }
    }

    /// Checks that a lock that is held for long, without a fault, is on all servers.
    pub fn check_servers(&mut self, plan: &Plan, state: &State, call: usize) {
        let it = &self.calls[call];
        let (key, ttl) = (it.keys[0], it.ttl);
        let trouble = match plan.stops_inside {
            true => LAST + LONGEST_STOP,
            false => state.last_fault_ends(),
        };
        let since = it.answered.unwrap_or(u64::MAX).max(trouble);
        let differs = |fault: &Fault| {
            fault.loses_data()
                || fault.clock_step().is_some()
                || matches!(fault, Fault::Spoil { .. })
        };
        if plan.topology != Topology::Redlock
            || state.now < since.saturating_add(ttl + SETTLED)
            || plan.has(differs)
        {
            return;
        }
        let without = (0..plan.servers).find(|server| {
            state.value_of(*server, key).is_none() && !self.had_a_late_vote(state, call, *server)
        });
        if let Some(server) = without {
            let text = format!("s{server}: {}", self.show(call));
            self.violates("a lock is not on all servers again", text);
        }
    }

    /// Returns whether a vote for a lock came after its question was given up, and was withdrawn around the grant.
    fn had_a_late_vote(&self, state: &State, call: usize, server: usize) -> bool {
        let it = &self.calls[call];
        let (Some(value), Some(granted)) = (self.values.get(&call), it.answered) else {
            return false;
        };
        let writes = state.hosts[server].writes.iter();
        let writes: Vec<&Write> = writes.filter(|write| write.key == it.keys[0]).collect();
        writes.windows(2).any(|pair| {
            let (vote, withdrawn) = (pair[0], pair[1]);
            vote.value == *value
                && withdrawn.kind == Kind::Gone
                && !withdrawn.is_strange
                && withdrawn.at < granted + SECOND
                && state.now < withdrawn.at + COPIES + it.ttl
        })
    }

    /// Returns whether a call, at the end of its wait, may have no answer although a majority of the servers answers: the votes
    /// are split between its process and another one, and the third server does not decide, in one of two ways.
    ///
    /// Its answers stand still in a connection that has frozen. A newer connection to that server works, so the call asks it
    /// again, and waits once more. Or its register is no number, so it refuses each vote with an error.
    pub(super) fn is_undecided_beside_a_fault(&self, plan: &Plan, number: usize) -> bool {
        let call = &self.calls[number];
        let (Answer::Refused(why), Some(answered)) = (&call.answer, call.answered) else {
            return false;
        };
        let freezes = |it: &Planned| {
            matches!(it.fault, Fault::Freeze { .. })
                && it.fault.process() == Some(call.process)
                && it.at < answered
                && call.asked < arrives_by(it)
        };
        // The clock of the process may be fast.
        let has_waited = call
            .wait
            .is_some_and(|wait| answered + wait / 100 >= call.asked + wait);
        let from = answered.saturating_sub(plan.processes[call.process].operation_timeout);
        let is_spoilt = |it: &Planned| matches!(it.fault, Fault::Spoil { .. }) && it.at < answered;
        let leaves_a_token = |it: &Call| {
            it.process != call.process
                && it.keys == call.keys
                && it.answered.is_some_and(|granted| granted < answered)
                && it.answer == Answer::Granted
                && it.left.is_none_or(|left| left + it.ttl > from)
        };
        plan.topology == Topology::Redlock
            && [NO_ANSWER, NO_TIME_LEFT].iter().any(|it| why.contains(it))
            && has_waited
            && (plan.faults.iter().any(freezes) && self.others_want(number, from..answered)
                || plan.faults.iter().any(is_spoilt) && self.calls.iter().any(leaves_a_token))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Owning;
    use super::super::tests::{asks, calls, calm, owns, with, world};
    use super::*;
    use crate::plan::Weather;
    use crate::world::Ways;

    /// The rules that are broken where connections of this process have frozen from second 1 to second 2, and a call of process
    /// 0 that was asked at second 2 and waits for so long has no answer until second 3. A call of the other process is asked
    /// at this time.
    fn broken(frozen: usize, wait: Option<u64>, other: usize, asked: u64) -> Vec<&'static str> {
        let [rules, others] =
            [NO_ANSWER, NO_TIME_LEFT].map(|why| broken_for(why, frozen, wait, other, asked));
        assert_eq!(rules, others);
        rules
    }

    fn broken_for(
        why: &str,
        frozen: usize,
        wait: Option<u64>,
        other: usize,
        asked: u64,
    ) -> Vec<&'static str> {
        let mut plan = with(Fault::Freeze {
            process: frozen,
            server: 0,
            ways: Ways::Replies,
        });
        plan.topology = Topology::Redlock;
        plan.weather = Weather::Rough;
        (plan.servers, plan.latency, plan.ttls) = (3, MILLI, vec![10_000]);
        let mut ledger = Ledger::default();
        calls(&mut ledger, Owning::Alone, wait, 2, Some(3)).answer =
            Answer::Refused(format!("Unavailable {why} 200ms"));
        calls(&mut ledger, Owning::Alone, None, asked, None).process = other;
        world().judge(ledger, &plan, Ledger::check_causes)
    }

    #[test]
    fn a_call_has_no_answer_where_votes_are_split_beside_a_frozen_connection() {
        let rule = "refused or lost without a fault";
        assert!(broken(0, Some(0), 1, 2).is_empty());
        assert!(broken(0, Some(SECOND), 1, 2).is_empty());
        assert_eq!(broken(1, Some(0), 1, 2), [rule]);
        assert_eq!(broken(0, Some(2 * SECOND), 1, 2), [rule], "it goes on");
        assert_eq!(broken(0, None, 1, 2), [rule], "it goes on");
        assert_eq!(broken(0, Some(0), 0, 2), [rule], "nobody else wants it");
        assert_eq!(broken(0, Some(0), 1, 3), [rule], "nobody else wants it");
    }

    #[test]
    fn a_call_may_be_told_that_votes_are_split_where_a_server_cannot_vote_and_another_one_keeps_a_token()
     {
        let broken = |spoilt: u64, owner: usize, left: u64| {
            let mut plan = with(Fault::Spoil { server: 0 });
            plan.faults[0].at = spoilt * SECOND;
            plan.topology = Topology::Redlock;
            plan.weather = Weather::Strange;
            (plan.servers, plan.latency, plan.ttls) = (3, MILLI, vec![1_000]);
            let mut ledger = Ledger::default();
            let it = calls(&mut ledger, Owning::Alone, None, 1, Some(1));
            (it.process, it.answer, it.left) = (owner, Answer::Granted, Some(left * MILLI));
            let call = asks(&mut ledger, Owning::Alone, Some(0), 3, Some(3));
            let it = &mut ledger.calls[call];
            it.answer = Answer::Refused(format!("Unavailable {NO_TIME_LEFT}"));
            let is_undecided = ledger.is_undecided_beside_a_fault(&plan, call);
            !is_undecided
        };
        assert!(!broken(1, 1, 2_500));
        assert!(broken(4, 1, 2_500), "the register is spoilt later");
        assert!(broken(1, 0, 2_500), "its own token");
        assert!(broken(1, 1, 1_500), "the token is over");
    }

    #[test]
    fn the_key_of_an_owner_is_not_confused_with_that_of_the_next_one() {
        let mut ledger = Ledger::default();
        owns(&mut ledger, Owning::Alone, 1, 0, 5);
        let sim = world();
        let mut values = Vec::new();
        for value in [&b"one"[..], b"two"] {
            sim.change(|state| state.stranger_runs(0, &[b"SET", b"lockkit:k0", value]));
            sim.look(|state| {
                ledger.note_value(&calm(), state, 0);
                values.extend(state.value_of(0, 0));
            });
        }
        assert_ne!(values[0], values[1]);
        assert_eq!(ledger.values[&0], values[0]);
    }
}
