//! A key has no owner while it cools down, and cools down after such owners only.

use super::causes::is_slow;
use super::kept::Refused;
use super::{Cooldown, Ledger};
use crate::plan::{Plan, Topology, lock_name};
use crate::world::{Fault, MILLI, State, slowest_segment};

impl Ledger {
    pub fn check_cooldowns(&mut self, plan: &Plan, state: &State) {
        for cooldown in self.kept.cooldowns.clone() {
            for key in self.calls[cooldown.call].keys.clone() {
                self.check_no_owner(plan, &cooldown, key);
            }
        }
        for refused in self.kept.refusals.clone() {
            if refused.is_cooling_down && refused.record.is_none() {
                self.check_cause(plan, &refused);
            }
            if refused.is_cooling_down {
                self.check_time(plan, state, &refused);
            }
        }
    }

    /// Checks that a key has no owner before its cooldown is over.
    fn check_no_owner(&mut self, plan: &Plan, cooldown: &Cooldown, key: usize) {
        let is_calm = plan.faults.is_empty() && !plan.stops_inside && !is_slow(plan);
        let (Some(lasts), call) = (cooldown.lasts, &self.calls[cooldown.call]) else {
            return;
        };
        // Otherwise the key may have run out before.
        let confirmed = call.released.is_some_and(|released| released < lasts);
        let is_certain = match plan.topology {
            Topology::One
            | Topology::Replicas
            | Topology::Sentinel
            | Topology::Cluster
            | Topology::Postgres => is_calm || confirmed,
            // A cooldown is acknowledged by no majority.
            Topology::Redlock => is_calm,
        };
        // A server that does not set the key keeps no cooldown.
        if !is_certain || plan.loses_data() || plan.refuses() || plan.ends_early(call.process) {
            return;
        }
        let until = cooldown.ended + cooldown.span / 100 * 99;
        let until = until.min(self.forgotten_from(key, cooldown.ended));
        let from = self.last_seen(cooldown.call, key);
        let owner = self.claims.iter().find(|claim| {
            claim.call != cooldown.call
                && claim.key == key
                && claim.from > from
                && claim.from < until
        });
        if let Some(owner) = owner {
            let text = format!(
                "for {} ms: {}\n  {}",
                cooldown.span / MILLI,
                self.show(cooldown.call),
                self.show_claim(owner)
            );
            self.violates("an owner while the key cools down", text);
        }
    }

    /// Checks that an owner has left the cooldown of which a caller hears.
    fn check_cause(&mut self, plan: &Plan, refused: &Refused) {
        let (asked, answered) = self.span_of(refused);
        let asked = asked.saturating_sub(self.shared_from(plan, refused));
        let steps = plan.clock_steps();
        let refused_by = self.calls[refused.call].process;
        let is_caused = self.kept.cooldowns.iter().any(|cooldown| {
            let call = &self.calls[cooldown.call];
            let over = match call.released {
                Some(released) if plan.topology != Topology::Redlock => {
                    let lasts = cooldown.span / 100 * 101 + 10 * MILLI;
                    released + lasts + steps + clock_behind(plan, refused_by)
                }
                _ => u64::MAX,
            };
            call.keys.contains(&refused.key) && cooldown.ended <= answered && asked <= over
        });
        // Tasks that are aborted leave the cooldown that their lock has at the moment.
        let is_of_the_aborted = self.calls.iter().any(|call| {
            call.keys.contains(&refused.key)
                && call.left.is_none()
                && plan.processes[call.process].leaves.is_some()
        });
        if !is_caused && !is_of_the_aborted {
            self.blames(refused, None, "a key cools down after no owner");
        }
    }

    /// Checks that the error says when the key is free.
    fn check_time(&mut self, plan: &Plan, state: &State, refused: &Refused) {
        let is_calm = plan.faults.is_empty() && !plan.stops_inside;
        if !is_calm || plan.topology == Topology::Redlock {
            return;
        }
        let (asked, answered) = self.span_of(refused);
        let name = lock_name(refused.key);
        let lives = state
            .hosts
            .iter()
            .filter_map(|host| host.lives.get(name.as_bytes()));
        let lives: Vec<_> = lives.flatten().collect();
        let exact = lives.iter().any(|(from, until)| {
            let (Some(until), Some(after)) = (until, refused.retry_after) else {
                return false;
            };
            // The caller may share an answer that was under way when it asked.
            let slack = 3 * MILLI + after / 100 + 2 * slowest_segment(plan.latency);
            *from <= answered
                && until.saturating_sub(answered) <= after + slack
                && after <= until.saturating_sub(asked) + slack
        });
        if !exact {
            let text = format!("in {:?} ns, {lives:?}", refused.retry_after);
            self.violates(
                "a refusal says a wrong time",
                [text, self.show(refused.call)].concat(),
            );
        }
    }
}

/// By how much a process may take PostgreSQL's clock to be behind, because the answer that told it was on a slow link.
fn clock_behind(plan: &Plan, process: usize) -> u64 {
    let slow = plan.faults.iter().filter_map(|it| match it.fault {
        Fault::Slow {
            process: of, by, ..
        } if of == process => Some(by + by / 2),
        _ => None,
    });
    match plan.topology {
        Topology::Postgres => slow.max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asks, rules, with};
    use super::super::{Answer, Owning};
    use super::*;
    use crate::world::SECOND;

    #[test]
    fn on_a_slow_link_a_cooldown_on_postgresql_seems_to_last_longer() {
        // A cooldown of a second begins at second 3. Process 0 is refused for it so long behind its end.
        let broken = |topology, process, behind: u64| {
            let mut plan = with(Fault::Slow {
                process,
                server: 0,
                by: 400 * MILLI,
            });
            plan.topology = topology;
            plan.processes[0].operation_timeout = 200 * MILLI;
            let mut ledger = Ledger::default();
            let owner = asks(&mut ledger, Owning::Alone, Some(0), 1, Some(2));
            let ended = 3 * SECOND;
            let call = &mut ledger.calls[owner];
            (call.answer, call.left, call.released) = (Answer::Granted, Some(ended), Some(ended));
            ledger.kept.cooldowns.push(Cooldown {
                call: owner,
                ended,
                span: SECOND,
                lasts: None,
            });
            let call = asks(&mut ledger, Owning::Alone, Some(0), 4, Some(5));
            ledger.calls[call].asked += behind;
            let refused = Refused {
                call,
                key: 0,
                record: None,
                is_cooling_down: true,
                retry_after: None,
            };
            ledger.check_cause(&plan, &refused);
            rules(&ledger)
        };
        let rule = "a key cools down after no owner";
        assert!(broken(Topology::Postgres, 0, 800 * MILLI).is_empty());
        assert_eq!(broken(Topology::Postgres, 0, 900 * MILLI), [rule]);
        assert_eq!(broken(Topology::Postgres, 1, 800 * MILLI), [rule]);
        assert_eq!(broken(Topology::One, 0, 800 * MILLI), [rule]);
    }
}
