//! A free lock on one server costs one write of native commands.

use std::ops::Range;

use super::{Answer, Call, Ledger};
use crate::plan::{Plan, Topology, lock_name};
use crate::world::{MILLI, SECOND, State, slowest_segment};

/// The time in which a manager may still be connecting.
const START: u64 = SECOND;
/// For so long a process takes a key for one that is contended, and asks by a script at once.
const LATELY: u64 = 2_200 * MILLI;
/// When the keeper looks for late copies of a request that was not answered.
const LOOKS_AGAIN: Range<u64> = 5_500 * MILLI..7 * SECOND;

impl Ledger {
    /// Returns the number of scripts so far, if the call is the only one and its key is free for certain.
    pub fn scripts_before(&self, plan: &Plan, state: &State, call: usize) -> Option<u64> {
        let tasks: usize = plan
            .processes
            .iter()
            .map(|process| process.tasks.len())
            .sum();
        let before = call.checked_sub(1).map(|before| &self.calls[before]);
        // A record or a cooldown may be on its way by a script. An order raises the mark above the clock.
        let is_quiet = plan.topology == Topology::One
            && !plan.keeps_keys()
            && !plan.has_orders()
            && plan.faults.is_empty()
            && !plan.stops_inside
            && tasks == 1
            && state.now > START
            && before.is_some_and(|before| before.released.is_some())
            && !self.was_contended(plan, state, call)
            && !self.has_others_beside(state.now, call)
            && !self.has_renewals_on_their_way(plan, state.now, call);
        let it = &self.calls[call];
        let is_free = it.keys.iter().all(|key| state.value_of(0, *key).is_none());
        (is_quiet && is_free && it.keys.len() == 1).then(|| state.hosts[0].server.scripts)
    }

    /// Returns whether something was in the way of a call shortly before.
    ///
    /// The server gave the key to a waiter, the caller met a release of its own process, a release in the background was on its
    /// way, where its script was not known, or that of kept work, or the keeper sent a release for the second time.
    fn was_contended(&self, plan: &Plan, state: &State, call: usize) -> bool {
        let keys = &self.calls[call].keys;
        let mut given = keys
            .iter()
            .filter_map(|key| state.hosts[0].given.get(lock_name(*key).as_bytes())?.last());
        let mut unconfirmed = self.calls[..call].iter().filter(|it| it.released.is_none());
        let on_its_way = 4 * slowest_segment(plan.latency);
        let since = state.server_time(0) - (on_its_way / 1_000) as i64;
        let mut kept = self.kept_work.iter();
        kept.any(|it| it.until.is_none_or(|until| until > since))
            || given.any(|(at, _)| at + LATELY > state.now)
            || unconfirmed.any(|it| {
                let age = state.now - it.left.or(it.answered).unwrap_or(state.now);
                it.keys == *keys && age < LATELY || age < on_its_way || LOOKS_AGAIN.contains(&age)
            })
    }

    /// Returns whether the task has other calls at the same time, or has left one unpolled, shortly before too.
    ///
    /// The process undoes what such a call has asked for, and looks for late copies of it.
    fn has_others_beside(&self, now: u64, call: usize) -> bool {
        let task = self.calls[call].task;
        let mut others = self.calls[..call].iter().filter(|it| it.task != task);
        let is_open = |it: &Call| {
            let left = match it.answer {
                Answer::None | Answer::Granted | Answer::Lost => it.left,
                _ => it.left.or(it.answered),
            };
            let over = it.released.or(left.map(|left| left + LATELY));
            over.is_none_or(|over| over > now)
        };
        let mut unpolled = self.unpolled.iter();
        others.any(is_open) || unpolled.any(|it| it.until.saturating_add(LOOKS_AGAIN.end) > now)
    }

    /// Returns whether a renewal of a lock that was left a moment ago may still be on its way to the server. A watched lock is
    /// renewed once right after its grant, on another connection than its release.
    fn has_renewals_on_their_way(&self, plan: &Plan, now: u64, call: usize) -> bool {
        let keys = &self.calls[call].keys;
        let slowest = slowest_segment(plan.latency);
        self.calls[..call].iter().any(|it| {
            let is_renewed = |left: u64| it.watched || left >= it.asked + it.ttl / 3;
            let left = it.left.filter(|left| is_renewed(*left));
            (it.keys != *keys || it.watched) && left.is_some_and(|left| left + slowest > now)
        })
    }

    /// Checks that a granted call has run no script.
    pub fn check_scripts(&mut self, state: &State, call: usize, before: u64) {
        // The scripts of calls beside this one, and those that undo what it has asked for while its future rested, are not its
        // own.
        let rested = self.was_unpolled(call) || self.calls[call].rests.is_some();
        if call + 1 < self.calls.len() || rested {
            return;
        }
        let count = state.hosts[0].server.scripts - before;
        if self.calls[call].answer == Answer::Granted && count > 0 {
            let text = format!("{count}: {}", self.show(call));
            self.violates("a free lock takes a script", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Owning;
    use super::super::tests::{asks, calls, calm, rules, world};
    use super::*;
    use crate::world::EPOCH;

    /// The rules that are broken where a script arrives beside a call, and a lock of this key was held before from second 2
    /// on, for so many milliseconds of its ttl of a second, and left so many ago.
    fn broken(key: usize, held: u64, ago: u64) -> Vec<&'static str> {
        broken_where_it_rests(None, false, key, held, ago)
    }

    fn broken_where_it_rests(
        rests: Option<u64>,
        watched: bool,
        key: usize,
        held: u64,
        ago: u64,
    ) -> Vec<&'static str> {
        let mut ledger = Ledger::default();
        let before = asks(&mut ledger, Owning::Alone, None, 2, Some(2));
        let left = 2 * SECOND + held * MILLI;
        let it = &mut ledger.calls[before];
        (it.keys, it.answer) = (vec![key], Answer::Granted);
        (it.left, it.released) = (Some(left), Some(left));
        it.watched = watched;
        broken_at(ledger, rests, left + ago * MILLI)
    }

    /// The rules that are broken where a script arrives beside one more call, at this time.
    fn broken_at(mut ledger: Ledger, rests: Option<u64>, now: u64) -> Vec<&'static str> {
        let mut plan = calm();
        plan.processes.truncate(1);
        plan.processes[0].tasks.truncate(1);
        plan.latency = 5 * MILLI;
        let call = asks(&mut ledger, Owning::Alone, None, 3, Some(4));
        ledger.calls[call].answer = Answer::Granted;
        ledger.calls[call].rests = rests;
        let sim = world();
        sim.change(|state| {
            state.now = now;
            if let Some(scripts) = ledger.scripts_before(&plan, state, call) {
                state.hosts[0].server.scripts += 1;
                ledger.check_scripts(state, call, scripts);
            }
        });
        rules(&ledger)
    }

    #[test]
    fn only_a_renewal_that_may_be_on_its_way_is_no_script_of_a_later_call() {
        let rule = "a free lock takes a script";
        let slowest = slowest_segment(5 * MILLI) / MILLI;
        assert!(broken(1, 350, 1).is_empty());
        assert!(broken(1, 350, slowest - 1).is_empty());
        assert_eq!(broken(1, 350, slowest + 1), [rule]);
        assert_eq!(broken(1, 300, 1), [rule]);
        assert_eq!(broken(0, 350, 1), [rule]);
        let broken_if_watched = |ago| broken_where_it_rests(None, true, 0, 5, ago);
        assert!(broken_if_watched(slowest - 1).is_empty());
        assert_eq!(broken_if_watched(slowest + 1), [rule]);
    }

    #[test]
    fn a_release_in_the_background_may_be_on_its_way_beside_a_later_call() {
        let broken = |ago: u64| {
            let mut ledger = Ledger::default();
            for (key, released) in [(1, None), (2, Some(3 * SECOND))] {
                let it = calls(&mut ledger, Owning::Alone, None, 2, Some(2));
                (it.keys, it.answer) = (vec![key], Answer::Granted);
                (it.left, it.released) = (Some(2 * SECOND), released);
            }
            broken_at(ledger, None, 2 * SECOND + ago)
        };
        let slowest = slowest_segment(5 * MILLI);
        assert!(broken(4 * slowest - 1).is_empty());
        assert_eq!(broken(4 * slowest), ["a free lock takes a script"]);
    }

    #[test]
    fn the_release_of_kept_work_may_be_on_its_way_beside_a_later_call() {
        let slowest = slowest_segment(5 * MILLI);
        let broken = |until: Option<u64>| {
            let mut ledger = Ledger::default();
            let before = asks(&mut ledger, Owning::Alone, None, 2, Some(2));
            let it = &mut ledger.calls[before];
            (it.left, it.released) = (Some(2 * SECOND), Some(2 * SECOND));
            let kept = ledger.keeps(0, before);
            ledger.kept_work[kept].until = until.map(|until| EPOCH + (until / 1_000) as i64);
            broken_at(ledger, None, 3 * SECOND)
        };
        assert!(broken(None).is_empty(), "it works still");
        assert!(broken(Some(3 * SECOND - 4 * slowest + MILLI)).is_empty());
        assert_eq!(
            broken(Some(3 * SECOND - 4 * slowest)),
            ["a free lock takes a script"]
        );
    }

    #[test]
    fn a_call_whose_future_rested_is_undone_by_a_script() {
        assert!(broken_where_it_rests(Some(4 * SECOND), false, 0, 350, 1).is_empty());
    }
}
