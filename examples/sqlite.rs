//! SQLite by rusqlite as a database in which effects and records are committed together.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

use lock_core::once::{Database, Dialect, Row, Value};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension, params_from_iter};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::spawn_blocking;

/// One connection to a file. SQLite has one writer at a time, so a pool of several would wait inside SQLite.
#[derive(Clone, Debug)]
pub(crate) struct Sqlite(Arc<Mutex<Connection>>);

/// The connection inside a transaction. If it is dropped, the transaction is rolled back.
#[derive(Debug)]
pub(crate) struct Transaction(OwnedMutexGuard<Connection>);

impl Sqlite {
    /// Takes a connection, which must have a `busy_timeout`, because other processes write, too.
    pub(crate) fn new(connection: Connection) -> Self {
        Self(Arc::new(Mutex::new(connection)))
    }

    /// Waits until no transaction of this process is open.
    pub(crate) async fn locked(&self) -> OwnedMutexGuard<Connection> {
        Arc::clone(&self.0).lock_owned().await
    }
}

impl Database for Sqlite {
    type Tx = Transaction;
    type Connection = Connection;
    type Error = rusqlite::Error;

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn begin(&self, statement: &'static str) -> rusqlite::Result<Transaction> {
        let tx = Transaction(self.locked().await);
        blocking(move || {
            tx.0.execute_batch(statement)?;
            Ok(tx)
        })
        .await
    }

    async fn read(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> rusqlite::Result<Option<Row>> {
        let connection = self.locked().await;
        let values = owned(values);
        blocking(move || one(&connection, statement, &values)).await
    }

    async fn query(
        tx: &mut Transaction,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> rusqlite::Result<Option<Row>> {
        one(&tx.0, statement, &owned(values))
    }

    async fn execute(
        tx: &mut Transaction,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> rusqlite::Result<u64> {
        // This statement does not wait. `begin` waits for other writers, and `commit` waits for the disk.
        let mut statement = tx.0.prepare_cached(statement)?;
        let rows = statement.execute(params_from_iter(owned(values)))?;
        Ok(rows as u64)
    }

    fn connection(tx: &mut Transaction) -> &mut Connection {
        &mut tx.0
    }

    fn connection_ref(tx: &Transaction) -> &Connection {
        &tx.0
    }

    async fn commit(tx: Transaction) -> rusqlite::Result<()> {
        blocking(move || tx.0.execute_batch("COMMIT")).await
    }

    async fn rollback(tx: Transaction) -> rusqlite::Result<()> {
        drop(tx);
        Ok(())
    }

    fn code<'a>(error: &'a (dyn Error + 'static)) -> Option<Cow<'a, str>> {
        let error: &rusqlite::Error = error.downcast_ref()?;
        let code = error.sqlite_error()?.extended_code;
        Some(code.to_string().into())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // SQLite may have rolled it back by itself.
        if !self.0.is_autocommit() {
            let _ = self.0.execute_batch("ROLLBACK");
        }
    }
}

/// Runs work that waits for other writers, or for the disk, on a thread that may wait.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> rusqlite::Result<T> + Send + 'static,
) -> rusqlite::Result<T> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

fn one(
    connection: &Connection,
    statement: &str,
    values: &[ToSqlOutput<'static>],
) -> rusqlite::Result<Option<Row>> {
    let mut statement = connection.prepare_cached(statement)?;
    let row = statement.query_row(params_from_iter(values), |row| {
        Ok(Row::new(row.get(0)?, row.get(1)?))
    });
    row.optional()
}

fn owned(values: &[Value<'_>]) -> Vec<ToSqlOutput<'static>> {
    let values = values.iter().map(|value| match *value {
        Value::Bytes(bytes) => bytes.to_vec().into(),
        Value::Int(number) => number.into(),
    });
    values.collect()
}
