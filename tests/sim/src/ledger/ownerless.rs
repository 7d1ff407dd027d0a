//! No call waits for long while the key has no owner.
//!
//! A key may be taken and have no owner: by a call whose future is not polled, or that was given up.

use super::Ledger;
use super::unreleased::unreleased;
use crate::plan::{Plan, Topology, Verb};
use crate::world::{LAST, LONGEST_STOP, SECOND, State};

/// How long a key may have no owner beside a waiter.
const OWNERLESS: u64 = 4 * SECOND;
/// For each process whose waiter is not polled, the others wait so much longer.
const GRANT: u64 = 2 * SECOND;
const LATE: u64 = 8 * SECOND;
/// How long after a fault its effects last.
const AFTERMATH: u64 = 2 * SECOND;

impl Ledger {
    pub fn check_ownerless(&mut self, plan: &Plan, state: &State) {
        let is_left_to_owners = plan.verbs.iter().all(|verb| {
            matches!(
                verb,
                Verb::Acquire | Verb::Run | Verb::Keep | Verb::Neglect | Verb::Lead
            )
        });
        let ends_early = (0..plan.processes.len()).any(|process| plan.ends_early(process));
        let applies = is_left_to_owners && !ends_early && plan.topology != Topology::Redlock;
        if !applies || plan.loses_data() || plan.steps_clocks() {
            return;
        }
        let trouble = match plan.stops_inside {
            true => LAST + LONGEST_STOP + AFTERMATH,
            false => plan.last_fault_ends() + AFTERMATH,
        };
        // Requests that arrive late take a key, and are undone when the sockets have given up.
        let late = if plan.faults.is_empty() { 0 } else { LATE };
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            if call.wait != Some(0) && call.keys.len() == 1 && !self.was_unpolled(number) {
                self.check_waiter(plan, state, number, (trouble, OWNERLESS + late));
            }
        }
    }

    fn check_waiter(
        &mut self,
        plan: &Plan,
        state: &State,
        number: usize,
        (trouble, longest): (u64, u64),
    ) {
        let call = &self.calls[number];
        let until = call.answered.unwrap_or(state.now);
        let mut since = call.asked.max(trouble);
        if until < since + longest {
            return;
        }
        let beside = |it: &&super::Unpolled| it.from < until && call.asked < it.until;
        let unpolled = self.unpolled.iter().filter(beside).count() as u64;
        let longest = longest + GRANT * unpolled.min(4);
        let mut owned = self.owned(call.keys[0]);
        owned.extend(unreleased(plan, state, call.keys[0]));
        owned.sort_unstable();
        for (from, to) in owned.into_iter().chain([(until, until)]) {
            if from.min(until) > since + longest {
                let text = format!("from {:.3}: {}", since as f64 / 1e6, self.show(number));
                self.violates("a call waits while the key has no owner", text);
                return;
            }
            since = since.max(to);
        }
    }

    /// The spans in which a key had an owner.
    fn owned(&self, key: usize) -> Vec<(u64, u64)> {
        let claims = self.claims.iter().filter(|claim| claim.key == key);
        let claims = claims.map(|claim| (claim.from, claim.until));
        let calls = self.calls.iter().filter(|call| call.keys.contains(&key));
        // An owner that is not polled does not look at its lock.
        let held = calls.filter(|call| call.answer.is_granted());
        let held = held.filter_map(|call| Some((call.answered?, self.releases_until(call))));
        claims.chain(held).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asks, calls, calm, world};
    use super::super::unreleased::tests::{fails_over, keeps_a_lock};
    use super::super::{Answer, Owning, Unpolled};
    use super::*;

    /// An owner of a lock with a ttl of 20 s, which begins to release it at second 3 and does not poll the release.
    struct Scene {
        task: usize,
        /// From when on the task does not poll its future.
        from: u64,
        /// When the release is answered.
        ended: Option<u64>,
        /// How long another process waits for the key, from second 2 on.
        until: u64,
    }

    impl Scene {
        fn broken(&self) -> Vec<&'static str> {
            let mut ledger = Ledger::default();
            let it = calls(&mut ledger, Owning::Alone, Some(0), 2, Some(2));
            it.answer = Answer::Granted;
            (it.ttl, it.left) = (20 * SECOND, Some(3 * SECOND));
            it.ended = self.ended.map(|ended| ended * SECOND);
            calls(&mut ledger, Owning::Alone, None, 2, Some(self.until)).process = 1;
            ledger.unpolled.push(Unpolled {
                process: 0,
                task: self.task,
                from: self.from * SECOND,
                until: u64::MAX,
            });
            let mut plan = calm();
            plan.processes.resize(2, plan.processes[0].clone());
            world().judge(ledger, &plan, Ledger::check_ownerless)
        }
    }

    #[test]
    fn a_key_stays_taken_to_the_end_of_the_ttl_only_if_its_release_is_not_polled() {
        let rule = "a call waits while the key has no owner";
        let scene = Scene {
            task: 0,
            from: 4,
            ended: None,
            until: 23,
        };
        assert!(scene.broken().is_empty());
        assert_eq!(Scene { task: 1, ..scene }.broken(), [rule]);
        assert_eq!(Scene { from: 2, ..scene }.broken(), [rule]);
        let ended = Some(4);
        assert_eq!(Scene { ended, ..scene }.broken(), [rule]);
        assert_eq!(Scene { until: 40, ..scene }.broken(), [rule]);
    }

    #[test]
    fn a_key_has_no_owner_up_to_the_end_of_a_lock_whose_release_is_forgotten() {
        // The lock ends at second 31, and a late request may have the key for some seconds more.
        let broken = |released: u64, until: u64| {
            let mut ledger = Ledger::default();
            asks(&mut ledger, Owning::Alone, None, 2, Some(until));
            let sim = world();
            sim.change(|state| keeps_a_lock(state, released));
            sim.judge(ledger, &fails_over(), Ledger::check_ownerless)
        };
        let rule = "a call waits while the key has no owner";
        assert!(broken(3, 42).is_empty());
        assert_eq!(broken(3, 44), [rule]);
        assert_eq!(broken(31, 42), [rule], "it was not released");
    }
}
