//! One SQLite file for all sellers.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension, params_from_iter};

use super::{Session, Written};
use crate::Result;
use crate::wal::switch_to_wal;

/// The time that a seller waits for the transaction of another one. A frozen owner may take long.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Sqlite(Connection);

impl Sqlite {
    pub(super) fn open(folder: &Path) -> Result<Sqlite> {
        let connection = Connection::open(folder.join("inventory.sqlite"))?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        switch_to_wal(&connection)?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        Ok(Sqlite(connection))
    }
}

impl Session for Sqlite {
    fn run(&mut self, statement: &str) -> Result<()> {
        Ok(self.0.execute_batch(statement)?)
    }

    fn write(&mut self, statement: &str, values: &[i64]) -> Result<Written> {
        let done = self.0.execute(statement, params_from_iter(values));
        match done {
            Ok(rows) => Ok(Written::Rows(rows as u64)),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                Ok(Written::Refused)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn read(&mut self, statement: &str, values: &[i64]) -> Result<Option<Vec<i64>>> {
        let mut statement = self.0.prepare(statement)?;
        let columns = statement.column_count();
        let row = statement.query_row(params_from_iter(values), |row| {
            (0..columns).map(|column| row.get(column)).collect()
        });
        Ok(row.optional()?)
    }

    /// IMMEDIATE takes the lock of the writer at once. It is the equivalent of `FOR UPDATE`, for the whole file.
    fn begin(&mut self) -> Result<()> {
        self.run("BEGIN IMMEDIATE")
    }
}
