//! Maps the rows of the tables to types.

use rusqlite::Row;
use serde::Serialize;

/// One of the two lanes. Each has shelves and orders of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Plain,
    Locked,
}

#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(crate) sku: String,
    pub(crate) cents: i64,
    pub(crate) stock: i64,
    pub(crate) fence: i64,
}

/// A sale to write: the order, and the stock that the writer expects after it.
#[derive(Clone, Debug)]
pub(crate) struct Sale {
    pub(crate) lane: Lane,
    pub(crate) sku: String,
    pub(crate) user: String,
    pub(crate) quantity: i64,
    pub(crate) cents: i64,
    pub(crate) stock_left: i64,
    pub(crate) fence: i64,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Order {
    id: i64,
    lane: String,
    sku: String,
    user: String,
    quantity: i64,
    cents: i64,
    pub(crate) fencing_token: i64,
    created_at: String,
}

/// One shelf: the stock by its column, and the number sold according to the orders.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Shelf {
    pub(crate) lane: String,
    pub(crate) sku: String,
    name: String,
    cents: i64,
    pub(crate) initial: i64,
    pub(crate) stock: i64,
    pub(crate) sold: i64,
    pub(crate) orders: i64,
    /// The number sold beyond the initial stock. Any other number than 0 leaves a customer
    /// without a mug.
    pub(crate) oversold: i64,
}

/// The report of one day.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Night {
    /// The end of the tick in which it was written, in ms of Unix time.
    ends: i64,
    orders: i64,
    cents: i64,
    /// The port of the process that has written it.
    port: u16,
}

impl Lane {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Locked => "locked",
        }
    }
}

pub(super) fn night(row: &Row<'_>) -> rusqlite::Result<Night> {
    Ok(Night {
        ends: row.get(0)?,
        orders: row.get(1)?,
        cents: row.get(2)?,
        port: row.get(3)?,
    })
}

pub(super) fn product(row: &Row<'_>) -> rusqlite::Result<Product> {
    Ok(Product {
        sku: row.get(0)?,
        cents: row.get(1)?,
        stock: row.get(2)?,
        fence: row.get(3)?,
    })
}

pub(super) fn order(row: &Row<'_>) -> rusqlite::Result<Order> {
    Ok(Order {
        id: row.get(0)?,
        lane: row.get(1)?,
        sku: row.get(2)?,
        user: row.get(3)?,
        quantity: row.get(4)?,
        cents: row.get(5)?,
        fencing_token: row.get(6)?,
        created_at: row.get(7)?,
    })
}

pub(super) fn shelf(row: &Row<'_>) -> rusqlite::Result<Shelf> {
    let (initial, sold): (i64, i64) = (row.get(4)?, row.get(6)?);
    Ok(Shelf {
        lane: row.get(0)?,
        sku: row.get(1)?,
        name: row.get(2)?,
        cents: row.get(3)?,
        initial,
        stock: row.get(5)?,
        sold,
        orders: row.get(7)?,
        oversold: (sold - initial).max(0),
    })
}
