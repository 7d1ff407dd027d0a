//! The databases, each with a table of effects.

use std::fmt::Debug;

use deadpool_postgres::Config;
use lock_core::once::Database;
use lock_tests::SqlServer;
use rusqlite::Connection;
use tempfile::TempDir;
use tokio_postgres::NoTls;

use crate::machine;

#[path = "../../../examples/sqlite.rs"]
mod adapter;

use adapter::Sqlite;

lock_core::once_deadpool!(
    /// A pool of connections.
    pub(super) struct Postgres
);

const TABLE: &str = "CREATE TABLE IF NOT EXISTS effects (amount bigint NOT NULL)";
const INSERT: &str = "INSERT INTO effects VALUES (1)";

/// A database in which a handler writes one row.
pub(super) trait Bench: Database<Error: Debug> {
    fn insert(connection: &mut Self::Connection) -> impl Future<Output = ()> + Send;
}

impl Bench for Sqlite {
    async fn insert(connection: &mut Connection) {
        connection.execute(INSERT, []).expect("a row");
    }
}

impl Bench for Postgres {
    async fn insert(connection: &mut Self::Connection) {
        let insert = connection.prepare_cached(INSERT).await.expect("a table");
        connection.execute(&insert, &[]).await.expect("a row");
    }
}

/// Makes a SQLite file in a folder.
pub(super) fn sqlite(folder: &TempDir, synchronous: &str) -> Sqlite {
    let file = Connection::open(folder.path().join(synchronous)).expect("a file");
    let settings =
        format!("PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; {TABLE}");
    file.execute_batch(&settings).expect("valid settings");
    Sqlite::new(file)
}

/// Starts a PostgreSQL that waits for the disk, on the core of the server.
pub(super) fn postgres([client, server]: [usize; 2]) -> SqlServer {
    machine::pin_this(server);
    let postgres = SqlServer::postgres_with(&["fsync=on"]);
    machine::pin_this(client);
    postgres
}

pub(super) async fn pool(server: &SqlServer, synchronous_commit: &str) -> Postgres {
    let mut config = Config::new();
    config.url = Some(server.url().to_owned());
    config.options = Some(format!("-c synchronous_commit={synchronous_commit}"));
    let pool = config.create_pool(None, NoTls).expect("a valid URL");
    let client = pool.get().await.expect("a connection");
    client.batch_execute(TABLE).await.expect("a table");
    Postgres(pool)
}
