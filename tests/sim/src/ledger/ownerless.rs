//! No call waits for long while the key has no owner.
//!
//! A key may be taken and have no owner: by a call whose future is not polled, or that was given up.

use super::{Answer, Ledger};
use crate::plan::{Plan, Topology, Verb};
use crate::world::{LAST, LONGEST_STOP, SECOND, Sim};

/// How long a key may have no owner beside a waiter.
const OWNERLESS: u64 = 4 * SECOND;
/// For each process whose waiter is not polled, the others wait so much longer.
const GRANT: u64 = 2 * SECOND;
const LATE: u64 = 8 * SECOND;
/// How long after a fault its effects last.
const AFTERMATH: u64 = 2 * SECOND;

impl Ledger {
    pub fn check_ownerless(&mut self, plan: &Plan, sim: &Sim) {
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
                self.check_waiter(number, trouble, OWNERLESS + late, sim.now());
            }
        }
    }

    fn check_waiter(&mut self, number: usize, trouble: u64, longest: u64, now: u64) {
        let call = &self.calls[number];
        let until = call.answered.unwrap_or(now);
        let mut since = call.asked.max(trouble);
        if until < since + longest {
            return;
        }
        let beside = |it: &&super::Unpolled| it.from < until && call.asked < it.until;
        let unpolled = self.unpolled.iter().filter(beside).count() as u64;
        let longest = longest + GRANT * unpolled.min(4);
        let mut owned = self.owned(call.keys[0]);
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
        let held = calls.filter_map(|call| match call.answer {
            Answer::Granted | Answer::Lost | Answer::NotReleased(_) => {
                Some((call.answered?, self.releases_until(call)))
            }
            _ => None,
        });
        claims.chain(held).collect()
    }
}
