//! Stores the charges. Each is written in a transaction that its caller, or the lock layer, commits.

use std::num::NonZeroU32;

use rusqlite::{Connection, Row, params};
use serde::Serialize;

use super::{Db, DbError};

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Charge {
    charge: i64,
    user: String,
    cents: i64,
}

impl Charge {
    /// Charges a customer in the open transaction of a connection.
    pub(crate) fn take(
        tx: &mut Connection,
        user: &str,
        cents: NonZeroU32,
    ) -> Result<Self, DbError> {
        let mut insert = tx.prepare(
            "INSERT INTO charges (user, cents) VALUES (?1, ?2) RETURNING id, user, cents",
        )?;
        Ok(insert.query_row(params![user, cents.get()], charge)?)
    }
}

impl Db {
    /// Returns the newest charges first.
    pub(crate) async fn charges(&self, at_most: u32) -> Result<Vec<Charge>, DbError> {
        let newest = "SELECT id, user, cents FROM charges ORDER BY id DESC LIMIT ?1";
        self.all(newest, [at_most], charge).await
    }
}

fn charge(row: &Row<'_>) -> rusqlite::Result<Charge> {
    Ok(Charge {
        charge: row.get(0)?,
        user: row.get(1)?,
        cents: row.get(2)?,
    })
}
