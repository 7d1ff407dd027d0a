//! The payments, in SQLite.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Result, Row, params};
use serde::Serialize;

use crate::wal::switch_to_wal;

/// The time that a connection waits for a transaction of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The two tables differ in one word: `UNIQUE`.
const SCHEMA: &str = "
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS payments
    (id INTEGER PRIMARY KEY, operation TEXT NOT NULL UNIQUE, amount INTEGER NOT NULL, process INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS unguarded_payments
    (id INTEGER PRIMARY KEY, operation TEXT NOT NULL, amount INTEGER NOT NULL, process INTEGER NOT NULL);";

#[derive(Clone, Copy)]
pub(crate) enum Table {
    /// Has the operation as a unique column.
    Payments,
    Unguarded,
}

impl Table {
    fn name(self) -> &'static str {
        match self {
            Table::Payments => "payments",
            Table::Unguarded => "unguarded_payments",
        }
    }
}

#[derive(Serialize)]
pub(crate) struct Payment {
    id: i64,
    operation: String,
    amount: u32,
    /// The process that took the payment.
    process: u32,
}

impl Payment {
    fn read(row: &Row<'_>) -> Result<Payment> {
        Ok(Payment {
            id: row.get(0)?,
            operation: row.get(1)?,
            amount: row.get(2)?,
            process: row.get(3)?,
        })
    }
}

/// One connection, because SQLite has one writer at a time.
#[derive(Clone)]
pub(crate) struct Db(Arc<Mutex<Connection>>);

impl Db {
    /// Opens the file, or a database in memory.
    pub(crate) fn open(path: Option<PathBuf>) -> Result<Db> {
        let connection = match path {
            Some(path) => Connection::open(path)?,
            None => Connection::open_in_memory()?,
        };
        connection.busy_timeout(BUSY_TIMEOUT)?;
        switch_to_wal(&connection)?;
        connection.execute_batch(SCHEMA)?;
        Ok(Db(Arc::new(Mutex::new(connection))))
    }

    /// Takes a payment once per operation where the table has the operation as a unique column.
    pub(crate) async fn pay(
        &self,
        table: Table,
        operation: String,
        amount: u32,
    ) -> Result<Payment> {
        self.run(move |connection| {
            let name = table.name();
            let insert = format!(
                "INSERT INTO {name} (operation, amount, process) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING"
            );
            connection.execute(&insert, params![operation, amount, std::process::id()])?;
            let newest = format!("SELECT * FROM {name} WHERE operation = ?1 ORDER BY id DESC");
            connection.query_row(&newest, [operation], Payment::read)
        })
        .await
    }

    pub(crate) async fn list(&self, table: Table) -> Result<Vec<Payment>> {
        self.run(move |connection| {
            let all = format!("SELECT * FROM {} ORDER BY id", table.name());
            let mut statement = connection.prepare(&all)?;
            let rows = statement.query_map([], Payment::read)?;
            rows.collect()
        })
        .await
    }

    /// Runs `work` off the async threads.
    async fn run<T, W>(&self, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let db = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || {
            work(&db.lock().unwrap_or_else(PoisonError::into_inner))
        });
        done.await.expect("a statement does not panic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_opening_of_a_new_file_waits_for_another_process_that_writes_to_it() {
        let name = format!("payments-{}.sqlite", std::process::id());
        let path = std::env::temp_dir().join(name);
        let other = Connection::open(&path).expect("the file");
        other
            .execute_batch("BEGIN IMMEDIATE; CREATE TABLE of_another (id INTEGER)")
            .expect("the write lock");
        let opening = {
            let path = path.clone();
            std::thread::spawn(|| Db::open(Some(path)).map(drop))
        };
        std::thread::sleep(Duration::from_millis(100));
        other.execute_batch("COMMIT").expect("a commit");
        let opened = opening.join();
        drop(std::fs::remove_file(&path));
        opened.expect("no panic").expect("a database");
    }
}
