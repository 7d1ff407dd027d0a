//! The three ways that take a lock of the kit around the read, the work and the write.

use lock_core::{LockGuard, Wait};

use super::{Outcome, finish, update_and_order};
use crate::Result;
use crate::db::Written;
use crate::seller::{READ, Seller, WRITE};

/// Reads, works and writes while it holds the lock.
pub(super) fn lock(seller: &mut Seller, work: &mut dyn FnMut()) -> Result<Outcome> {
    under_lock(seller, |seller, _| {
        let stock = seller.stock(READ, &[])?;
        if stock == 0 {
            return Ok(Outcome::SoldOut);
        }
        // `guard.is_valid()` before the write would not help, because the process can also stop after that check.
        work();
        update_and_order(seller, (WRITE, &[stock - 1]), Outcome::Refused)
    })
}

/// Does the same, and stores its fencing token first. The database refuses the write of an earlier owner.
pub(super) fn fenced_lock(seller: &mut Seller, work: &mut dyn FnMut()) -> Result<Outcome> {
    under_lock(seller, |seller, guard| {
        let token = guard.fencing_token().into();
        let claim = "UPDATE inventory_example_products SET fence = ? WHERE id = 1 AND fence <= ?";
        if seller.session.write(claim, &[token, token])? != Written::Rows(1) {
            return Ok(Outcome::Refused);
        }
        let read = "SELECT stock FROM inventory_example_products WHERE id = 1 AND fence = ?";
        let Some(row) = seller.session.read(read, &[token])? else {
            return Ok(Outcome::Refused);
        };
        let stock = row[0];
        if stock == 0 {
            return Ok(Outcome::SoldOut);
        }
        work();
        let update = "UPDATE inventory_example_products SET stock = ? WHERE id = 1 AND fence = ?";
        update_and_order(seller, (update, &[stock - 1, token]), Outcome::Refused)
    })
}

/// Does the same, and asks in the transaction of the write for the lock, which is in the same database.
///
/// No table needs a column for that. From the question to the commit, the next owner waits.
pub(super) fn checked_lock(seller: &mut Seller, work: &mut dyn FnMut()) -> Result<Outcome> {
    under_lock(seller, |seller, guard| {
        let stock = seller.stock(READ, &[])?;
        if stock == 0 {
            return Ok(Outcome::SoldOut);
        }
        work();
        seller.session.begin()?;
        if !seller.session.holds(guard)? {
            seller.session.run("ROLLBACK")?;
            return Ok(Outcome::Refused);
        }
        finish(seller, (WRITE, &[stock - 1]), Outcome::Refused)
    })
}

fn under_lock(
    seller: &mut Seller,
    sell: impl FnOnce(&mut Seller, &LockGuard) -> Result<Outcome>,
) -> Result<Outcome> {
    let lock = seller.locks.lock("inventory:1").ttl(seller.ttl);
    let lock = lock.renew(seller.renew).wait(Wait::Forever);
    let guard = seller.runtime.block_on(lock.acquire())?;
    let outcome = sell(seller, &guard);
    // The work has ended. If the lock was lost, there is nothing to release.
    let _ = seller.runtime.block_on(guard.release());
    outcome
}
