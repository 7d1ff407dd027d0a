//! Counts what became of all payments.

use std::collections::BTreeMap;

use super::clients::Paid;
use crate::payments::service::Payment;

#[derive(Debug)]
pub(super) struct Tally {
    pub(super) name: &'static str,
    pub(super) kills: u64,
    /// The payments that were written, and whose processes were killed before the record.
    pub(super) unrecorded: u64,
    /// The payments that clients were told of.
    pub(super) keys: usize,
    pub(super) doubles: u64,
    /// The answers whose payment is not in the database.
    pub(super) without_effect: usize,
    pub(super) two_answers: usize,
    pub(super) never_answered: usize,
}

impl Tally {
    pub(super) fn of(name: &'static str, paid: &[Paid], payments: &[Payment]) -> Tally {
        let mut taken: BTreeMap<u64, Vec<Payment>> = BTreeMap::new();
        for payment in payments {
            taken.entry(payment.amount).or_default().push(*payment);
        }
        let is_taken = |payment: Payment| {
            let of_amount = taken.get(&payment.amount);
            of_amount.is_some_and(|taken| taken.contains(&payment))
        };
        let has_effect = |paid: &Paid| {
            let mut payments = paid.payments();
            payments.all(|payment| payment.amount == paid.amount && is_taken(payment))
        };
        Tally {
            name,
            kills: 0,
            unrecorded: 0,
            keys: paid.len(),
            doubles: taken.values().map(|taken| taken.len() as u64 - 1).sum(),
            without_effect: paid.iter().filter(|paid| !has_effect(paid)).count(),
            two_answers: paid.iter().filter(|paid| paid.answers.len() > 1).count(),
            never_answered: 0,
        }
    }

    pub(super) fn print(&self) {
        println!(
            "| {} | {} kills | {} keys | {} double effects | {} answers without effect | {} keys with two answers | \
             {} keys never answered |",
            self.name,
            self.kills,
            self.keys,
            self.doubles,
            self.without_effect,
            self.two_answers,
            self.never_answered
        );
    }

    #[track_caller]
    pub(super) fn assert_once(&self) {
        assert!(self.keys > 0, "no payment was taken");
        let failures = [self.without_effect, self.two_answers, self.never_answered];
        assert_eq!((self.doubles, failures), (0, [0; 3]), "{self:?}");
    }
}
