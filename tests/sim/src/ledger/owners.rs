//! One owner.

use super::{Claim, Ledger, limits, registers, tokens};
use crate::plan::{Plan, Topology, lock_name};
use crate::world::State;

impl Ledger {
    /// Checks that spans of owners do not overlap, and that a later owner has a higher token.
    pub fn check_owners(&mut self, plan: &Plan, state: &State) {
        // Nor does a ticket write the mark that is not picked up.
        let steps = plan.steps_clocks();
        let passes_on = !self.tickets.is_empty();
        let mut claims = self.claims.clone();
        claims.sort_by_key(|claim| (claim.key, claim.from, claim.until));
        for of_a_key in claims.chunk_by(|one, other| one.key == other.key) {
            if !plan.loses_data() && !registers::is_taken_for_a_new_one(plan, state) {
                self.check_overlaps(plan, state, of_a_key);
            }
            let may_forget = tokens::may_be_forgotten(plan) || steps && passes_on;
            if !plan.loses_data() && !may_forget {
                self.check_tokens(plan, state, of_a_key);
            }
        }
    }

    /// Returns whether the one of two owners with the lower token believes by old news.
    fn is_stale(&self, plan: &Plan, state: &State, it: &Claim, later: &Claim) -> bool {
        let lower = if it.token < later.token { it } else { later };
        it.token != later.token && self.believes_old_news(plan, state, lower)
    }

    /// Returns whether an owner heard of its grant when that was over, and took it for a new one, because the clock of the
    /// server was set back meanwhile. On PostgreSQL no later answer comes behind the message on its connection. It believes no
    /// longer than the server's clock says.
    pub(super) fn believes_old_news(&self, plan: &Plan, state: &State, claim: &Claim) -> bool {
        if plan.topology != Topology::Postgres || !plan.steps_clocks() {
            return false;
        }
        let set_back = |since: u64| {
            let steps = plan.faults.iter();
            let steps = steps.filter(|it| (since..claim.from).contains(&it.at));
            steps.filter_map(|it| it.fault.clock_step()).sum::<u64>()
        };
        let given = state.hosts[0].given.get(lock_name(claim.key).as_bytes());
        let is_given = |at| given.is_some_and(|given| given.iter().any(|it| it.0 == at));
        let asked = self.calls[claim.call].asked;
        state.hosts[0].writes.iter().any(|it| {
            let over = it.at + it.lasts;
            it.key == claim.key
                && asked <= it.at
                && over < claim.from
                && claim.until <= over + set_back(it.at)
                && is_given(it.at)
        })
    }

    fn check_overlaps(&mut self, plan: &Plan, state: &State, claims: &[Claim]) {
        for (at, later) in claims.iter().enumerate() {
            // One step of a task may end the lock of a body and begin the next one.
            let meets = |it: &Claim| match plan.has_jobs() {
                true => it.until > later.from,
                false => it.until >= later.from,
            };
            let beside = claims[..at]
                .iter()
                .filter(|it| meets(it) && !self.is_forgotten(plan, state, it, later))
                .filter(|it| !self.is_about_a_freed_one(plan, it, later))
                .filter(|it| !self.is_stale(plan, state, it, later));
            let beside: Vec<&Claim> = beside.collect();
            let excludes = |it: &&Claim| it.owning.excludes(later.owning);
            let asked = self.calls[later.call].asked;
            let before = beside.iter().filter(|it| it.from < asked).count();
            let together = beside.iter().copied().chain([later]);
            let limits: Vec<u32> = together.map(|it| it.owning.limit()).collect();
            if beside.iter().any(excludes)
                || limits::is_exceeded(later.owning, before)
                || limits::are_exceeded(limits)
            {
                let older: Vec<String> = beside.iter().map(|it| self.show_claim(it)).collect();
                let text = format!("\n  {}\n  {}", older.join("\n  "), self.show_claim(later));
                self.violates("too many owners at once", text);
            }
        }
    }

    pub(super) fn show_claim(&self, claim: &Claim) -> String {
        let ms = |time: u64| time as f64 / 1e6;
        let (from, until) = (ms(claim.from), ms(claim.until));
        let call = self.show(claim.call);
        format!(
            "{:?} from {from:.3} to {until:.3}, token {}: {call}",
            claim.owning, claim.token
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::Owning;
    use super::super::tests::{owns, with, world, write};
    use super::*;
    use crate::world::{Fault, Kind, SECOND};

    /// A waiter is given a key at second 2 for a second and hears of it at second 5. The key has another owner meanwhile.
    #[derive(Clone, Copy)]
    struct News {
        topology: Topology,
        is_given: bool,
        /// When the clock of the server is set back by 4 s.
        step: u64,
        until: u64,
        tokens: (u64, u64),
        other_until: u64,
    }

    impl News {
        fn broken(self) -> Vec<&'static str> {
            let by = -4_000_000;
            let mut plan = with(Fault::StepClock { server: 0, by });
            plan.topology = self.topology;
            plan.faults[0].at = self.step * SECOND;
            let mut ledger = Ledger::default();
            owns(
                &mut ledger,
                Owning::Alone,
                self.tokens.0,
                3,
                self.other_until,
            );
            owns(&mut ledger, Owning::Alone, self.tokens.1, 5, self.until);
            ledger.calls[1].asked = SECOND;
            let sim = world();
            sim.change(|state| {
                let replaced = write(2 * SECOND, Kind::Replaced, SECOND);
                state.hosts[0].writes.push(replaced);
                let given = vec![(2 * SECOND, 0); usize::from(self.is_given)];
                let key = lock_name(0).into_bytes();
                state.hosts[0].given.insert(key, given);
            });
            sim.judge(ledger, &plan, Ledger::check_owners)
        }
    }

    #[test]
    fn an_owner_believes_old_news_only_as_long_as_a_clock_that_was_set_back_says() {
        let (many, falls) = ("too many owners at once", "a token does not rise");
        let news = News {
            topology: Topology::Postgres,
            is_given: true,
            step: 3,
            until: 7,
            tokens: (2, 1),
            other_until: 6,
        };
        assert!(news.broken().is_empty());
        let topology = Topology::One;
        assert_eq!(News { topology, ..news }.broken(), [many]);
        for step in [1, 6] {
            assert_eq!(News { step, ..news }.broken(), [many]);
        }
        assert_eq!(News { until: 8, ..news }.broken(), [many]);
        let tokens = (1, 2);
        assert_eq!(News { tokens, ..news }.broken(), [many]);
        for (other_until, broken) in [(6, many), (4, falls)] {
            let news = News {
                other_until,
                ..news
            };
            assert!(news.broken().is_empty());
            let is_given = false;
            assert_eq!(News { is_given, ..news }.broken(), [broken]);
        }
    }
}
