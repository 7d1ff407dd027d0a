//! The leases of a manager, and the nodes that have them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use super::departing::Departing;
use super::vote_ledger::VoteLedger;
use crate::base::acks::Acks;
use crate::base::sync::lock;
use crate::base::token::Token;

/// The leases that the manager asks for or holds.
#[derive(Default)]
pub(super) struct Leases {
    table: Mutex<Table>,
    pub(super) departing: Arc<Departing>,
}

#[derive(Default)]
struct Table {
    ledgers: HashMap<Token, Arc<VoteLedger>>,
    /// The number of leases at which the next sweep removes those that are over.
    sweep_at: usize,
    /// The ledgers of leases that hints withdraw. A release that is sent again needs no second hint.
    hinted: HashMap<Token, Weak<VoteLedger>>,
    sweep_hinted_at: usize,
}

impl Leases {
    /// Returns the ledger of a lease, a new one if it has none.
    pub(super) fn begin(&self, token: Token) -> Arc<VoteLedger> {
        let mut table = lock(&self.table);
        if table.ledgers.len() >= table.sweep_at {
            table.ledgers.retain(|_, ledger| !is_done(ledger));
            table.sweep_at = (table.ledgers.len() * 2).max(64);
        }
        let ledger = table.ledgers.entry(token).or_default();
        ledger.begin();
        Arc::clone(ledger)
    }

    pub(super) fn of(&self, token: Token) -> Option<Arc<VoteLedger>> {
        lock(&self.table).ledgers.get(&token).cloned()
    }

    /// Ends an attempt that has failed: late votes do not count. The lease may ask again, and must then know
    /// which nodes have an open question, and later which nodes have its entry in their queues.
    pub(super) fn pause(&self, token: Token) {
        let mut table = lock(&self.table);
        if let Some(ledger) = table.ledgers.get(&token) {
            ledger.pause();
            if ledger.leaves_nothing() {
                table.ledgers.remove(&token);
            }
        }
    }

    /// Ends a lease for good: late votes do not count.
    pub(super) fn end(&self, token: Token) -> Option<Arc<VoteLedger>> {
        let mut table = lock(&self.table);
        let ledger = table.ledgers.remove(&token).or_else(|| table.hinted(token));
        drop(table);
        ledger.iter().for_each(|ledger| ledger.end());
        ledger
    }

    /// Ends a lease for good whose record may be sent again. Its ledger is kept until [`end`](Self::end).
    pub(super) fn end_with_record(&self, token: Token) -> Option<Arc<VoteLedger>> {
        let ledger = self.of(token);
        let ledger = ledger.or_else(|| lock(&self.table).hinted(token));
        ledger.iter().for_each(|ledger| ledger.end());
        ledger
    }

    /// Notes that hints have the ledger of a lease. Its end is known for as long as one of them is not delivered.
    pub(super) fn is_hinted(&self, token: Token, ledger: &Arc<VoteLedger>) {
        let mut table = lock(&self.table);
        if table.hinted.len() >= table.sweep_hinted_at {
            table.hinted.retain(|_, ledger| ledger.strong_count() > 0);
            table.sweep_hinted_at = (table.hinted.len() * 2).max(64);
        }
        table.hinted.insert(token, Arc::downgrade(ledger));
    }

    pub(super) fn acks(&self, token: Token, of: usize) -> Acks {
        let granted = self
            .of(token)
            .filter(|ledger| !ledger.has_ended())
            .map_or(0, |ledger| ledger.granted().count_ones());
        Acks::new(granted, u32::try_from(of).unwrap_or(u32::MAX))
    }
}

impl Table {
    fn hinted(&self, token: Token) -> Option<Arc<VoteLedger>> {
        self.hinted.get(&token).and_then(Weak::upgrade)
    }
}

/// Returns whether nothing of a lease is under way that the table has to know.
fn is_done(ledger: &Arc<VoteLedger>) -> bool {
    // The tasks and hints that look after open votes have the ledger too.
    let is_left = ledger.has_ended() && Arc::strong_count(ledger) == 1;
    ledger.is_over() && (ledger.leaves_nothing() || is_left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::token::{Address, TokenSource};

    #[test]
    fn a_late_vote_counts_for_a_lease_that_is_wanted_and_for_no_other() {
        let (leases, tokens) = (Leases::default(), TokenSource::new(Address::random()));
        let token = tokens.fresh();
        let ledger = leases.begin(token);
        assert!((0..3).all(|node| ledger.claim(node)));
        assert!(ledger.stands(0) && ledger.stands(2));
        assert_eq!(leases.acks(token, 3), Acks::new(2, 3));
        assert!(leases.end(token).is_some());
        assert!(!ledger.stands(1), "it is to be undone");
        assert_eq!(ledger.touched(), 0b111);
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
    fn the_places_of_a_lease_in_queues_are_known_until_it_ends() {
        let (leases, tokens) = (Leases::default(), TokenSource::new(Address::random()));
        let token = tokens.fresh();
        let ledger = leases.begin(token);
        assert!(ledger.claim(0));
        ledger.is_queued(0);
        ledger.is_without(0);
        ledger.resolved(0);
        leases.pause(token);
        let again = leases.begin(token);
        assert!(again.claim(1) && again.stands(1));
        assert_eq!(again.touched(), 0b11, "a node that is out gets a hint");
        let ended = leases.end(token).expect("it is known");
        ended.is_taken_back(0);
        assert_eq!(ended.touched(), 0b10);
    }

    #[test]
    fn the_ledger_of_a_hint_is_known_until_the_hint_is_delivered() {
        let (leases, tokens) = (Leases::default(), TokenSource::new(Address::random()));
        let token = tokens.fresh();
        let of_the_hint = VoteLedger::forgotten(3);
        leases.is_hinted(token, &of_the_hint);
        for _ in 0..2 {
            let again = leases.end(token).expect("a hint has it");
            assert!(Arc::ptr_eq(&again, &of_the_hint));
            let again = leases.end_with_record(token).expect("a hint has it");
            assert!(Arc::ptr_eq(&again, &of_the_hint));
        }
        drop(of_the_hint);
        assert!(leases.end(token).is_none());
        for _ in 0..1_000 {
            leases.is_hinted(tokens.fresh(), &Arc::default());
        }
        assert!(lock(&leases.table).hinted.len() <= 64);
    }

    #[test]
    fn what_nobody_asks_for_again_is_swept_away() {
        let (leases, tokens) = (Leases::default(), TokenSource::new(Address::random()));
        for _ in 0..1_000 {
            let token = tokens.fresh();
            let ledger = leases.begin(token);
            assert!(ledger.claim(0));
            leases.pause(token);
            ledger.resolved(0);
        }
        assert!(lock(&leases.table).ledgers.len() <= 64);
    }
}
