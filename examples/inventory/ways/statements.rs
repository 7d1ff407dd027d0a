//! The ways that need nothing but the database. The first one is the mistake.

use super::{Outcome, finish, update_and_order};
use crate::Result;
use crate::db::Written;
use crate::seller::{READ, Seller, WRITE};

/// Reads the stock and writes a smaller one. Two sellers can read the same stock.
pub(super) fn read_then_write(seller: &mut Seller, work: &mut dyn FnMut()) -> Result<Outcome> {
    let stock = seller.stock(READ, &[])?;
    if stock == 0 {
        return Ok(Outcome::SoldOut);
    }
    work();
    update_and_order(seller, (WRITE, &[stock - 1]), Outcome::Refused)
}

/// Lets the database read, check and write in one statement.
pub(super) fn atomic_update(seller: &mut Seller, work: &mut dyn FnMut()) -> Result<Outcome> {
    // This way has no read before its write, so the work comes first and may be in vain.
    work();
    let update =
        "UPDATE inventory_example_products SET stock = stock - 1 WHERE id = 1 AND stock > 0";
    update_and_order(seller, (update, &[]), Outcome::SoldOut)
}

/// Writes only if no other seller has written since the read.
pub(super) fn version_column(seller: &mut Seller, work: &mut dyn FnMut()) -> Result<Outcome> {
    let read = "SELECT stock, version FROM inventory_example_products WHERE id = 1";
    let row = seller.session.read(read, &[])?.ok_or("no product")?;
    let (stock, version) = (row[0], row[1]);
    if stock == 0 {
        return Ok(Outcome::SoldOut);
    }
    work();
    let update =
        "UPDATE inventory_example_products SET stock = ?, version = ? WHERE id = 1 AND version = ?";
    let values = [stock - 1, version + 1, version];
    update_and_order(seller, (update, &values), Outcome::Refused)
}

/// Gives each piece of the stock a number, which only one order can have. The stock itself stays.
pub(super) fn unique_index(seller: &mut Seller, work: &mut dyn FnMut()) -> Result<Outcome> {
    let read = "SELECT stock, (SELECT coalesce(max(piece), 0) FROM inventory_example_orders)
        FROM inventory_example_products WHERE id = 1";
    let row = seller.session.read(read, &[])?.ok_or("no product")?;
    let (pieces, sold) = (row[0], row[1]);
    if sold == pieces {
        return Ok(Outcome::SoldOut);
    }
    work();
    Ok(match seller.order(Some(sold + 1))? {
        Written::Rows(_) => Outcome::Sold,
        Written::Refused => Outcome::Refused,
    })
}

/// Locks the row in the database from the read to the commit. In SQLite, `begin` locks the whole file.
pub(super) fn for_update(seller: &mut Seller, work: &mut dyn FnMut()) -> Result<Outcome> {
    seller.session.begin()?;
    let read = if seller.locks_rows {
        "SELECT stock FROM inventory_example_products WHERE id = 1 FOR UPDATE"
    } else {
        READ
    };
    let stock = seller.stock(read, &[])?;
    if stock == 0 {
        seller.session.run("ROLLBACK")?;
        return Ok(Outcome::SoldOut);
    }
    work();
    finish(seller, (WRITE, &[stock - 1]), Outcome::Refused)
}
