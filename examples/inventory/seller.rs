//! One process of the shop: its connection, its manager of locks, and its orders.

use std::time::Duration;

use lock_core::{LockManager, Renew};
use tokio::runtime::Handle;

use crate::Result;
use crate::db::{Session, Written};

pub(crate) const READ: &str = "SELECT stock FROM inventory_example_products WHERE id = 1";
pub(crate) const WRITE: &str = "UPDATE inventory_example_products SET stock = ? WHERE id = 1";

pub(crate) struct Seller {
    pub(crate) session: Box<dyn Session>,
    pub(crate) locks_rows: bool,
    pub(crate) locks: LockManager,
    pub(crate) runtime: Handle,
    pub(crate) ttl: Duration,
    pub(crate) renew: Renew,
    /// The number of this seller.
    pub(crate) number: i64,
    /// The number of its last attempt to write an order.
    pub(crate) attempts: i64,
}

impl Seller {
    pub(crate) fn stock(&mut self, read: &str, values: &[i64]) -> Result<i64> {
        let row = self.session.read(read, values)?;
        Ok(row.ok_or("no product")?[0])
    }

    pub(crate) fn order(&mut self, piece: Option<i64>) -> Result<Written> {
        self.attempts += 1;
        let (seller, number) = (self.number, self.attempts);
        match piece {
            Some(piece) => {
                let insert =
                    "INSERT INTO inventory_example_orders (seller, number, piece) VALUES (?, ?, ?)";
                self.session.write(insert, &[seller, number, piece])
            }
            None => {
                let insert = "INSERT INTO inventory_example_orders (seller, number) VALUES (?, ?)";
                self.session.write(insert, &[seller, number])
            }
        }
    }

    pub(crate) fn orders(&mut self) -> Result<i64> {
        let count = "SELECT count(*) FROM inventory_example_orders";
        let row = self.session.read(count, &[])?;
        Ok(row.ok_or("no count")?[0])
    }
}
