//! Stores the prices. A product costs the same in both lanes, and each row checks the fence.

use rusqlite::{OptionalExtension, params};

use super::{Db, DbError, in_transaction};

impl Db {
    /// Writes one price. Its fence is a column of its own, because another lock protects the stock.
    pub(crate) async fn set_price(
        &self,
        sku: String,
        cents: i64,
        fence: i64,
    ) -> Result<(), DbError> {
        self.pool
            .run(move |c| {
                in_transaction(c, |tx| {
                    let written = tx.execute(
                        "UPDATE products SET cents = ?1, price_fence = ?2
                         WHERE sku = ?3 AND price_fence <= ?2",
                        params![cents, fence, sku],
                    )?;
                    if written > 0 {
                        return Ok(());
                    }
                    let stored =
                        "SELECT max(price_fence) FROM products WHERE sku = ?1 GROUP BY sku";
                    let stored = tx.query_row(stored, [&sku], |row| row.get(0)).optional()?;
                    Err(
                        stored.map_or(DbError::UnknownSku, |stored| DbError::StaleFence {
                            given: fence,
                            stored,
                        }),
                    )
                })
            })
            .await
    }
}
