//! SQLite, in a folder of its own.

use std::time::Duration;

use lock_core::once;
use rusqlite::Connection;
use tempfile::TempDir;

#[path = "../../../examples/sqlite.rs"]
mod adapter;

pub(crate) use adapter::Sqlite;

use super::suite::Fixture;

/// A file with the table, and a table of effects.
pub(crate) struct Fresh {
    db: Sqlite,
    folder: TempDir,
}

impl Fixture for Fresh {
    type Db = Sqlite;

    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let db = open(&folder);
        once::create_table(&db).await.expect("a new table");
        let fresh = Self { db, folder };
        fresh.sql("CREATE TABLE effects (name TEXT UNIQUE)").await;
        fresh
    }

    fn db(&self) -> Sqlite {
        self.db.clone()
    }

    fn other(&self) -> Sqlite {
        open(&self.folder)
    }

    async fn execute(connection: &mut Connection, sql: &'static str) -> Result<(), String> {
        connection.execute_batch(sql).map_err(|e| e.to_string())
    }
}

fn open(folder: &TempDir) -> Sqlite {
    let file = Connection::open(folder.path().join("db")).expect("the file");
    let wal = file.pragma_update(None, "journal_mode", "WAL");
    wal.expect("readers beside a writer");
    let waits = file.busy_timeout(Duration::from_secs(5));
    waits.expect("patience for other writers");
    Sqlite::new(file)
}
