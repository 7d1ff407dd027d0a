//! The eight ways to sell an item. All of them write the same order.

mod locked;
mod statements;

use crate::Result;
use crate::db::{Database, Written};
use crate::seller::Seller;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ReadThenWrite,
    AtomicUpdate,
    VersionColumn,
    UniqueIndex,
    ForUpdate,
    Lock,
    FencedLock,
    /// Only where the locks are in the PostgreSQL of the stock.
    CheckedLock,
}

/// Tells how an attempt to sell one item has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Sold,
    SoldOut,
    /// The database has refused the write, because another seller was first.
    Refused,
}

impl Way {
    pub(crate) const ALL: [Way; 8] = [
        Way::ReadThenWrite,
        Way::AtomicUpdate,
        Way::VersionColumn,
        Way::UniqueIndex,
        Way::ForUpdate,
        Way::Lock,
        Way::FencedLock,
        Way::CheckedLock,
    ];

    pub(crate) fn name(self, database: &Database) -> &'static str {
        match self {
            Way::ReadThenWrite => "read, then write",
            Way::AtomicUpdate => "one atomic UPDATE",
            Way::VersionColumn => "version column",
            Way::UniqueIndex => "unique index",
            Way::ForUpdate if database.locks_rows() => "SELECT … FOR UPDATE",
            Way::ForUpdate => "BEGIN IMMEDIATE",
            Way::Lock => "lock",
            Way::FencedLock => "lock with fencing",
            Way::CheckedLock => "lock with check_sql",
        }
    }

    /// Returns whether several sellers can be between their read and their write at the same time.
    pub(crate) fn overlaps(self) -> bool {
        !matches!(
            self,
            Way::ForUpdate | Way::Lock | Way::FencedLock | Way::CheckedLock
        )
    }

    /// Sells one item, or finds that there is none.
    ///
    /// `work` runs between the read and the write. It stands for work outside the database, for example a payment.
    pub(crate) fn sell(self, seller: &mut Seller, work: &mut dyn FnMut()) -> Result<Outcome> {
        match self {
            Way::ReadThenWrite => statements::read_then_write(seller, work),
            Way::AtomicUpdate => statements::atomic_update(seller, work),
            Way::VersionColumn => statements::version_column(seller, work),
            Way::UniqueIndex => statements::unique_index(seller, work),
            Way::ForUpdate => statements::for_update(seller, work),
            Way::Lock => locked::lock(seller, work),
            Way::FencedLock => locked::fenced_lock(seller, work),
            Way::CheckedLock => locked::checked_lock(seller, work),
        }
    }
}

/// Writes the new stock and the order in one transaction, or neither.
///
/// `refused` is the outcome if `update` finds no row.
fn update_and_order(
    seller: &mut Seller,
    (update, values): (&str, &[i64]),
    refused: Outcome,
) -> Result<Outcome> {
    seller.session.begin()?;
    finish(seller, (update, values), refused)
}

/// Does the same in a transaction that has begun.
fn finish(
    seller: &mut Seller,
    (update, values): (&str, &[i64]),
    refused: Outcome,
) -> Result<Outcome> {
    let outcome = match seller.session.write(update, values)? {
        Written::Rows(1) => match seller.order(None)? {
            Written::Rows(_) => Outcome::Sold,
            Written::Refused => Outcome::Refused,
        },
        Written::Rows(_) => refused,
        Written::Refused => Outcome::Refused,
    };
    let end = if outcome == Outcome::Sold {
        "COMMIT"
    } else {
        "ROLLBACK"
    };
    seller.session.run(end)?;
    Ok(outcome)
}
