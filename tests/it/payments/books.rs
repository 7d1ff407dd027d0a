//! The database of the payments, as a test reads it: without the service, which may be stopped.

use std::time::Duration;

use lock_tests::SqlServer;
use rusqlite::Connection;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use super::service::Payment;

pub(crate) enum Books {
    Sqlite(TempDir),
    Postgres(SqlServer),
}

impl Books {
    pub(crate) fn sqlite() -> Books {
        Books::Sqlite(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn postgres() -> Books {
        Books::Postgres(SqlServer::postgres())
    }

    /// Returns the variable that names the database to a process.
    pub(crate) fn variable(&self) -> (&'static str, String) {
        match self {
            Books::Sqlite(folder) => ("PAYMENTS_DB", file(folder)),
            Books::Postgres(server) => ("DATABASE_URL", server.url().to_owned()),
        }
    }

    /// Returns the payments of a route, in the order of their ids.
    pub(crate) async fn payments(&self, path: &str) -> Vec<Payment> {
        let table = path.trim_start_matches('/').replace('/', "_");
        let all = format!("SELECT id, amount, process FROM {table} ORDER BY id");
        match self {
            Books::Sqlite(folder) => in_sqlite(folder, &all).expect("a list of payments"),
            Books::Postgres(server) => {
                let rows = client(server.url()).await.query(&all, &[]).await;
                let rows = rows.expect("a list of payments");
                let payments = rows
                    .iter()
                    .map(|row| Payment::new(row.get(0), row.get(1), row.get(2)));
                payments.collect()
            }
        }
    }

    /// Runs a statement on PostgreSQL.
    pub(crate) async fn execute(&self, statement: &str) {
        let Books::Postgres(server) = self else {
            panic!("only a PostgreSQL is told: {statement}");
        };
        let done = client(server.url()).await.batch_execute(statement).await;
        done.expect(statement);
    }
}

fn file(folder: &TempDir) -> String {
    folder.path().join("payments.sqlite").display().to_string()
}

fn in_sqlite(folder: &TempDir, all: &str) -> rusqlite::Result<Vec<Payment>> {
    let connection = Connection::open(file(folder))?;
    connection.busy_timeout(Duration::from_secs(5))?;
    let mut statement = connection.prepare(all)?;
    let rows = statement.query_map([], |row| {
        Ok(Payment::new(row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    rows.collect()
}

async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a server");
    tokio::spawn(connection);
    client
}
