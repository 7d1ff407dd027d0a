//! SQLite, in a folder of its own.

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
        let db = Sqlite::open(&folder.path().join("db")).expect("a new file");
        once::create_table(&db).await.expect("a new table");
        let fresh = Self { db, folder };
        fresh.sql("CREATE TABLE effects (name TEXT UNIQUE)").await;
        fresh
    }

    fn db(&self) -> Sqlite {
        self.db.clone()
    }

    fn other(&self) -> Sqlite {
        Sqlite::open(&self.folder.path().join("db")).expect("the file")
    }

    async fn execute(connection: &mut Connection, sql: &'static str) -> Result<(), String> {
        connection.execute_batch(sql).map_err(|e| e.to_string())
    }
}
