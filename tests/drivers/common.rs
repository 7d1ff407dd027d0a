//! The databases of the suite, by whichever sqlx the package has.

use std::path::PathBuf;

use lock_core::once::{self, Claimed, Tx};
use lock_tests::SqlServer;
use sqlx::Executor;
use sqlx::pool::PoolOptions;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use tempfile::TempDir;

use crate::once::suite::{Fixture, claim, done};

lock_core::once_sqlx!(pub(crate) struct Postgres(sqlx::Postgres));
lock_core::once_sqlx!(pub(crate) struct Sqlite(sqlx::Sqlite));

/// A PostgreSQL of its own.
pub(crate) struct FreshPostgres {
    // The connections end before the server.
    db: Postgres,
    server: SqlServer,
}

/// A file of SQLite.
pub(crate) struct FreshSqlite {
    db: Sqlite,
    folder: TempDir,
}

impl Fixture for FreshPostgres {
    type Db = Postgres;

    async fn start() -> Self {
        let server = SqlServer::postgres();
        let fresh = Self {
            db: postgres(&server),
            server,
        };
        once::create_table(&fresh.db).await.expect("a new table");
        fresh.sql("CREATE TABLE effects (name text UNIQUE)").await;
        fresh
    }

    fn db(&self) -> Postgres {
        self.db.clone()
    }

    fn other(&self) -> Postgres {
        postgres(&self.server)
    }

    async fn execute(connection: &mut PgConnection, sql: &'static str) -> Result<(), String> {
        let done = connection.execute(sql).await;
        done.map(drop).map_err(|error| error.to_string())
    }
}

impl Fixture for FreshSqlite {
    type Db = Sqlite;

    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let fresh = Self {
            db: sqlite(folder.path().join("db")),
            folder,
        };
        once::create_table(&fresh.db).await.expect("a new table");
        fresh.sql("CREATE TABLE effects (name TEXT UNIQUE)").await;
        fresh
    }

    fn db(&self) -> Sqlite {
        self.db.clone()
    }

    fn other(&self) -> Sqlite {
        sqlite(self.folder.path().join("db"))
    }

    async fn execute(connection: &mut SqliteConnection, sql: &'static str) -> Result<(), String> {
        let done = connection.execute(sql).await;
        done.map(drop).map_err(|error| error.to_string())
    }
}

fn postgres(server: &SqlServer) -> Postgres {
    let options: PgConnectOptions = server.url().parse().expect("a valid URL");
    Postgres(PoolOptions::new().connect_lazy_with(options))
}

fn sqlite(file: PathBuf) -> Sqlite {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    Sqlite(PoolOptions::new().connect_lazy_with(options))
}

/// sqlx answers a COMMIT of a failed transaction with `Ok`, so the kit's own statement must notice.
#[tokio::test]
async fn a_failed_transaction_cannot_complete() {
    lock_tests::needs!(postgres);
    let fixture = FreshPostgres::start().await;
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    let own = claim("k");
    tx.claim(&own).await.expect("an answer");
    FreshPostgres::execute(&mut tx, "SELECT 1 / 0")
        .await
        .expect_err("a division by zero");
    assert!(tx.complete(&own, None).await.is_err());
    assert!(tx.commit().await.is_err());
}

/// sqlx does not see that SQLite has rolled back by itself.
#[tokio::test]
async fn the_connection_is_usable_after_sqlite_has_rolled_back_unseen() {
    let fixture = FreshSqlite::start().await;
    let one = PoolOptions::new().max_connections(1);
    let options = SqliteConnectOptions::new().filename(fixture.folder.path().join("db"));
    let db = Sqlite(one.connect_lazy_with(options));
    for _ in 0..3 {
        let mut tx = Tx::begin(&db).await.expect("a usable connection");
        let own = claim("k");
        assert_eq!(tx.claim(&own).await.expect("an answer"), Claimed::Granted);
        let twice = "INSERT INTO effects VALUES ('twice'); INSERT OR ROLLBACK INTO effects VALUES ('twice')";
        FreshSqlite::execute(&mut tx, twice)
            .await
            .expect_err("a unique column");
        assert!(
            tx.complete(&own, None)
                .await
                .expect_err("the claim is gone")
                .is_invalid()
        );
        tx.rollback().await.expect("an answer");
    }
    done::<FreshSqlite>(&db, &claim("k"), None)
        .await
        .expect("granted");
    assert_eq!(fixture.effects().await, 1);
}

/// A database that says no is told apart from one that says nothing.
#[tokio::test]
async fn a_missing_table_is_misconfigured() {
    let fixture = FreshSqlite::start().await;
    fixture.sql("DROP TABLE lockkit_once").await;
    let error = once::check(&fixture.db()).await.expect_err("no table");
    assert!(error.is_misconfigured(), "{error}");
    lock_tests::needs!(postgres);
    let fixture = FreshPostgres::start().await;
    fixture.sql("DROP TABLE lockkit_once").await;
    let error = once::check(&fixture.db()).await.expect_err("no table");
    assert!(error.is_misconfigured(), "{error}");
}
