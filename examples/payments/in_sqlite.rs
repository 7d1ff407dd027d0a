//! The payments in SQLite.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use lock_core::once;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use crate::sqlite::{Sqlite, blocking};
use crate::store::{Payment, Store, Table};

#[path = "../wal.rs"]
mod wal;

/// The time that a connection waits for a transaction of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens the file, or a database in memory.
pub(crate) async fn open(file: Option<PathBuf>) -> std::result::Result<Sqlite, Box<dyn Error>> {
    let db = Sqlite::new(connect(file)?);
    once::create_table(&db).await?;
    Ok(db)
}

fn connect(file: Option<PathBuf>) -> Result<Connection> {
    let connection = match file {
        Some(file) => Connection::open(file)?,
        None => Connection::open_in_memory()?,
    };
    connection.busy_timeout(BUSY_TIMEOUT)?;
    wal::switch_to_wal(&connection)?;
    connection.execute_batch(&Table::create_all("INTEGER PRIMARY KEY"))?;
    Ok(connection)
}

impl Store for Sqlite {
    async fn pay(
        connection: &mut Connection,
        table: Table,
        operation: String,
        amount: u32,
    ) -> Result<Payment> {
        let process = std::process::id();
        let values = params![operation, amount, process];
        let paid = connection.query_row(&table.insert(), values, read);
        match paid.optional()? {
            Some(payment) => Ok(payment),
            None => connection.query_row(&table.earlier(), [operation], read),
        }
    }

    async fn list(&self, table: Table) -> Result<Vec<Payment>> {
        let connection = self.locked().await;
        blocking(move || {
            let mut statement = connection.prepare(&table.all())?;
            let rows = statement.query_map([], read)?;
            rows.collect()
        })
        .await
    }
}

fn read(row: &Row<'_>) -> Result<Payment> {
    Ok(Payment {
        id: row.get(0)?,
        operation: row.get(1)?,
        amount: row.get(2)?,
        process: row.get(3)?,
    })
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
            std::thread::spawn(|| connect(Some(path)).map(drop))
        };
        std::thread::sleep(Duration::from_millis(100));
        other.execute_batch("COMMIT").expect("a commit");
        let opened = opening.join();
        drop(std::fs::remove_file(&path));
        opened.expect("no panic").expect("a database");
    }
}
