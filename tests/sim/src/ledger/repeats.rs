//! Requests that arrive twice never make a second owner, and leave nothing that has no end.

use super::Ledger;
use super::remains::stays;
use crate::plan::{Plan, Weather};
use crate::world::Sim;

impl Ledger {
    /// Checks a history in which a proxy repeats requests. Until its ttl ends, a repeated request may take a key for a lease
    /// that has ended, so callers may be refused, may wait and may lose a lock without another cause.
    pub fn check_repeats(&mut self, plan: &Plan, sim: &Sim) {
        assert_eq!(plan.weather, Weather::Repeats);
        sim.look(|state| self.check_owners(plan, state));
        // A drain waits for owners that linger on a lost lock, and a process that stood still notices the loss late.
        let may_last = plan.has_stops() && plan.habits.lingers.iter().any(|linger| *linger > 0);
        for (process, is_complete) in self.drained.clone() {
            if !is_complete && !may_last {
                self.violates("a manager is not drained", format!("p{process}"));
            }
        }
        let endless: Vec<String> = sim.look(|state| {
            let hosts = state.hosts.iter().enumerate();
            let entries = hosts.flat_map(|(server, host)| {
                let entries = host.server.entries();
                let endless = entries.filter(|(_, entry)| entry.ends.is_none());
                // All managers may be drained before a stranger deletes its key.
                endless.filter(move |(key, _)| !state.is_of_another_type(server, key))
            });
            let names = entries.map(|(key, _)| String::from_utf8_lossy(key).into_owned());
            names.filter(|key| !stays(key, plan)).collect()
        });
        if !endless.is_empty() {
            self.violates("left behind without an end", format!("{endless:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{calm, rules, with, world};
    use super::*;
    use crate::world::{Fault, SECOND};

    /// The rules that are broken at this second, where a stranger has a key of another type from second 1 to second 2, and
    /// one in its place has no end.
    fn broken(second: u64, in_its_place: &[&str]) -> Vec<&'static str> {
        let key = b"lockkit:{k0}".to_vec();
        let mut plan = with(Fault::OtherType { server: 0, key });
        plan.weather = Weather::Repeats;
        let sim = world();
        sim.change(|state| state.plan_faults(plan.faults.clone()));
        sim.run_until(second * SECOND + SECOND / 2);
        let words: Vec<&[u8]> = in_its_place.iter().map(|word| word.as_bytes()).collect();
        if !words.is_empty() {
            sim.change(|state| state.stranger_runs(0, &words));
        }
        let mut ledger = Ledger::default();
        ledger.check_repeats(&plan, &sim);
        rules(&ledger)
    }

    #[test]
    fn only_the_key_of_a_stranger_that_is_still_at_work_has_no_end() {
        let rule = "left behind without an end";
        assert!(broken(1, &[]).is_empty());
        assert!(broken(2, &[]).is_empty());
        let hash = ["HSET", "lockkit:{k0}", "field", "value"];
        assert_eq!(broken(2, &hash), [rule]);
        assert_eq!(broken(1, &["SET", "lockkit:{k0}", "value"]), [rule]);
        assert_eq!(broken(1, &["SET", "lockkit:k0", "value"]), [rule]);
    }

    #[test]
    fn a_drain_fails_only_for_an_owner_that_lingers_on_a_lock_whose_loss_was_noticed_late() {
        let broken = |stops_inside: bool, linger: u64| {
            let mut plan = calm();
            plan.weather = Weather::Repeats;
            plan.stops_inside = stops_inside;
            plan.habits.lingers = vec![0, linger];
            let mut ledger = Ledger::default();
            ledger.drained.push((0, false));
            let sim = world();
            ledger.check_repeats(&plan, &sim);
            rules(&ledger)
        };
        let rule = "a manager is not drained";
        assert!(broken(true, 6_000).is_empty());
        assert_eq!(broken(true, 0), [rule]);
        assert_eq!(broken(false, 6_000), [rule]);
    }
}
