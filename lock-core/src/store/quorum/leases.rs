//! The leases of a manager, and where each stands.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::vote_ledger::Spread;
use crate::base::acks::Acks;
use crate::base::sync::lock;
use crate::base::token::Token;

/// The leases of a manager that are asked for or held.
#[derive(Default)]
pub(super) struct Leases(Mutex<Table>);

#[derive(Default)]
struct Table {
    spreads: HashMap<Token, Arc<Spread>>,
    /// How many to have before looking for those that nobody needs.
    sweep_at: usize,
}

impl Leases {
    /// The lease's own spread, a new one if it has none.
    pub(super) fn begin(&self, token: Token) -> Arc<Spread> {
        let mut table = lock(&self.0);
        if table.spreads.len() >= table.sweep_at {
            table
                .spreads
                .retain(|_, spread| !(spread.is_over() && spread.is_resolved()));
            table.sweep_at = (table.spreads.len() * 2).max(64);
        }
        let spread = table.spreads.entry(token).or_default();
        spread.begin();
        Arc::clone(spread)
    }

    pub(super) fn of(&self, token: Token) -> Option<Arc<Spread>> {
        lock(&self.0).spreads.get(&token).cloned()
    }

    /// An attempt has failed: what comes late does not count. The lease may ask again, and must then know
    /// which nodes still have a question of it.
    pub(super) fn pause(&self, token: Token) {
        let mut table = lock(&self.0);
        if let Some(spread) = table.spreads.get(&token) {
            spread.pause();
            if spread.is_resolved() {
                table.spreads.remove(&token);
            }
        }
    }

    /// It never asks again, and what comes late does not count.
    pub(super) fn end(&self, token: Token) -> Option<Arc<Spread>> {
        let spread = lock(&self.0).spreads.remove(&token);
        if let Some(spread) = &spread {
            spread.end();
        }
        spread
    }

    pub(super) fn acks(&self, token: Token, of: usize) -> Acks {
        let granted = self
            .of(token)
            .map_or(0, |spread| spread.granted().count_ones());
        Acks::new(granted, u32::try_from(of).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::token::{Address, TokenSource};

    #[test]
    fn a_late_vote_counts_for_a_lease_that_is_wanted_and_for_no_other() {
        let (leases, tokens) = (Leases::default(), TokenSource::new(Address::random()));
        let token = tokens.fresh();
        let spread = leases.begin(token);
        assert!((0..3).all(|node| spread.claim(node)));
        assert!(spread.stands(0) && spread.stands(2));
        assert_eq!(leases.acks(token, 3), Acks::new(2, 3));
        assert!(leases.end(token).is_some());
        assert!(!spread.stands(1), "it is to be undone");
        assert_eq!(spread.touched(), 0b111);
        assert_eq!(leases.acks(token, 3), Acks::new(0, 3));
    }

    #[test]
    fn a_lease_that_asks_again_knows_which_nodes_still_have_a_question() {
        let (leases, tokens) = (Leases::default(), TokenSource::new(Address::random()));
        let token = tokens.fresh();
        let first = leases.begin(token);
        assert!(first.claim(0) && first.claim(1));
        assert!(!first.claim(1), "one question at a time");
        first.resolved(0);
        leases.pause(token);
        assert!(first.is_over());
        let second = leases.begin(token);
        assert!(second.may_ask(0) && !second.may_ask(1));
        assert!(!second.is_over());
        second.resolved(1);
        leases.pause(token);
        assert!(leases.of(token).is_none(), "nothing is kept for nothing");
    }

    #[test]
    fn what_nobody_asks_for_again_is_swept_away() {
        let (leases, tokens) = (Leases::default(), TokenSource::new(Address::random()));
        for _ in 0..1_000 {
            let token = tokens.fresh();
            let spread = leases.begin(token);
            assert!(spread.claim(0));
            leases.pause(token);
            spread.resolved(0);
        }
        assert!(lock(&leases.0).spreads.len() <= 64);
    }
}
