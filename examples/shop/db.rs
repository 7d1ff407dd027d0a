//! Stores products, stock and orders in SQLite. [`WRITE_BACK`] is the statement that checks the
//! fence.

mod cards;
mod charges;
mod prices;
mod rows;

use std::fmt;
use std::path::PathBuf;

use rusqlite::{
    Connection, OptionalExtension, Params, Row, Transaction, TransactionBehavior, params,
};

use crate::pool::Pool;

pub(crate) use self::cards::{Card, Movement};
pub(crate) use self::charges::Charge;
pub(crate) use self::rows::{Lane, Night, Order, Product, Sale, Shelf};
use self::rows::{night, order, product, shelf};

/// Writes back a stock that was read before.
///
/// The fence is the only protection against a writer that was paused. The paused writer has a lower
/// token than the newer owner has stored, so the statement changes no row.
const WRITE_BACK: &str =
    "UPDATE products SET stock = ?1, fence = ?2 WHERE lane = ?3 AND sku = ?4 AND fence <= ?2";

/// Makes a value of a row.
type ReadRow<T> = fn(&Row<'_>) -> rusqlite::Result<T>;

#[derive(Clone)]
pub(crate) struct Db {
    pool: Pool,
}

#[derive(Debug)]
pub(crate) enum DbError {
    /// A newer owner has written since, because this writer has lost its lock.
    StaleFence {
        given: i64,
        stored: i64,
    },
    UnknownSku,
    Sqlite(rusqlite::Error),
    Closed,
}

impl Db {
    /// Opens the file, and creates missing tables, their first stock, and a column that an older build did not have.
    pub(crate) async fn open(path: PathBuf) -> Result<Self, DbError> {
        let pool = Pool::new(path);
        pool.run(|c| in_transaction(c, create_missing)).await?;
        Ok(Self { pool })
    }

    pub(crate) async fn product(&self, lane: Lane, sku: &str) -> Result<Option<Product>, DbError> {
        let sku = sku.to_owned();
        self.pool
            .run(move |c| {
                let mut find = c.prepare(
                    "SELECT sku, cents, stock, fence FROM products WHERE lane = ?1 AND sku = ?2",
                )?;
                Ok(find
                    .query_row(params![lane.as_str(), sku], product)
                    .optional()?)
            })
            .await
    }

    /// Writes both the stock and the order, or neither.
    pub(crate) async fn sell(&self, sale: Sale) -> Result<Order, DbError> {
        self.pool
            .run(move |c| {
                in_transaction(c, |tx| {
                    write_back(tx, sale.lane, &sale.sku, sale.stock_left, sale.fence)?;
                    let mut insert = tx.prepare(
                        "INSERT INTO orders (lane, sku, user, quantity, cents, fence)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                         RETURNING id, lane, sku, user, quantity, cents, fence, created_at",
                    )?;
                    let values = params![
                        sale.lane.as_str(),
                        sale.sku,
                        sale.user,
                        sale.quantity,
                        sale.cents,
                        sale.fence
                    ];
                    Ok(insert.query_row(values, order)?)
                })
            })
            .await
    }

    /// Fills a shelf again and deletes its orders. The fence stays, because it must never fall.
    pub(crate) async fn restock(
        &self,
        lane: Lane,
        sku: &str,
        fence: Option<i64>,
    ) -> Result<(), DbError> {
        let sku = sku.to_owned();
        self.pool
            .run(move |c| {
                in_transaction(c, |tx| {
                    let (initial, stored): (i64, i64) = tx
                        .query_row(
                            "SELECT initial, fence FROM products WHERE lane = ?1 AND sku = ?2",
                            params![lane.as_str(), sku],
                            |row| Ok((row.get(0)?, row.get(1)?)),
                        )
                        .optional()?
                        .ok_or(DbError::UnknownSku)?;
                    write_back(tx, lane, &sku, initial, fence.unwrap_or(stored))?;
                    tx.execute(
                        "DELETE FROM orders WHERE lane = ?1 AND sku = ?2",
                        params![lane.as_str(), sku],
                    )?;
                    Ok(())
                })
            })
            .await
    }

    pub(crate) async fn shelves(&self) -> Result<Vec<Shelf>, DbError> {
        let all = "SELECT p.lane, p.sku, p.name, p.cents, p.initial, p.stock,
                          coalesce(sum(o.quantity), 0), count(o.id)
                   FROM products p LEFT JOIN orders o ON o.lane = p.lane AND o.sku = p.sku
                   GROUP BY p.lane, p.sku ORDER BY p.sku DESC, p.lane DESC";
        self.all(all, (), shelf).await
    }

    /// Writes the report of a day: the orders with the kit since the last report.
    pub(crate) async fn report(&self, ends: i64, port: u16) -> Result<(), DbError> {
        self.pool
            .run(move |c| {
                c.execute(
                    "INSERT INTO nights (ends, orders, cents, last_order, port)
                     SELECT ?1, count(id), coalesce(sum(cents), 0), coalesce(max(id), before), ?2
                     FROM (SELECT coalesce(max(last_order), 0) AS before FROM nights)
                     LEFT JOIN orders ON lane = 'locked' AND id > before",
                    params![ends, port],
                )?;
                // A day of the shop is short, and the page shows the last ones.
                c.execute("DELETE FROM nights WHERE ends NOT IN (SELECT ends FROM nights ORDER BY ends DESC LIMIT 100)", [])?;
                Ok(())
            })
            .await
    }

    /// Returns the newest reports first.
    pub(crate) async fn nights(&self, at_most: u32) -> Result<Vec<Night>, DbError> {
        let newest = "SELECT ends, orders, cents, port FROM nights ORDER BY ends DESC LIMIT ?1";
        self.all(newest, [at_most], night).await
    }

    /// Returns the newest orders first.
    pub(crate) async fn orders(&self, at_most: u32) -> Result<Vec<Order>, DbError> {
        let newest = "SELECT id, lane, sku, user, quantity, cents, fence, created_at
                      FROM orders ORDER BY id DESC LIMIT ?1";
        self.all(newest, [at_most], order).await
    }

    /// Returns all rows of a query.
    async fn all<T, P>(
        &self,
        query: &'static str,
        values: P,
        row: ReadRow<T>,
    ) -> Result<Vec<T>, DbError>
    where
        T: Send + 'static,
        P: Params + Send + 'static,
    {
        self.pool
            .run(move |c| {
                let mut query = c.prepare(query)?;
                let rows = query.query_map(values, row)?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
            .await
    }
}

fn create_missing(tx: &Transaction<'_>) -> Result<(), DbError> {
    tx.execute_batch(include_str!("schema.sql"))?;
    // SQLite has no `ADD COLUMN IF NOT EXISTS`.
    let has_fence: bool = tx.query_row(
        "SELECT count(*) FROM pragma_table_info('products') WHERE name = 'price_fence'",
        [],
        |row| row.get(0),
    )?;
    if !has_fence {
        tx.execute_batch("ALTER TABLE products ADD COLUMN price_fence INTEGER NOT NULL DEFAULT 0")?;
    }
    Ok(())
}

/// Runs `work` in a transaction.
///
/// IMMEDIATE takes the write lock at once. SQLite can refuse a transaction that reads first and asks
/// for the lock later, and `busy_timeout` does not help then.
fn in_transaction<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, DbError>,
) -> Result<T, DbError> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let out = work(&tx)?;
    tx.commit()?;
    Ok(out)
}

fn write_back(
    tx: &Transaction<'_>,
    lane: Lane,
    sku: &str,
    stock: i64,
    fence: i64,
) -> Result<(), DbError> {
    let written = tx
        .prepare(WRITE_BACK)?
        .execute(params![stock, fence, lane.as_str(), sku])?;
    if written == 1 {
        return Ok(());
    }
    let stored: Option<i64> = tx
        .query_row(
            "SELECT fence FROM products WHERE lane = ?1 AND sku = ?2",
            params![lane.as_str(), sku],
            |row| row.get(0),
        )
        .optional()?;
    Err(
        stored.map_or(DbError::UnknownSku, |stored| DbError::StaleFence {
            given: fence,
            stored,
        }),
    )
}

impl From<rusqlite::Error> for DbError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl fmt::Display for DbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StaleFence { given, stored } => {
                write!(
                    f,
                    "a newer owner has written with fencing token {stored}, which is above {given}"
                )
            }
            Self::UnknownSku => f.write_str("no such product"),
            Self::Sqlite(error) => write!(f, "the database failed: {error}"),
            Self::Closed => f.write_str("the thread of the database has ended"),
        }
    }
}

impl std::error::Error for DbError {}

#[cfg(test)]
mod guide_tests;
#[cfg(test)]
mod tests;
