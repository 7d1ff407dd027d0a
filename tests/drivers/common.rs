//! The databases of the suite, by whichever sqlx the package has.

use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::task::Poll;

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
    let db = one_connection(&fixture);
    for _ in 0..3 {
        let mut tx = Tx::begin(&db).await.expect("a usable connection");
        let own = claim("k");
        assert_eq!(tx.claim(&own).await.expect("an answer"), Claimed::Granted);
        rolled_back_by_sqlite(&mut tx).await;
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

/// sqlx would give such a connection to the pool as one with an open transaction.
#[tokio::test]
async fn the_connection_is_usable_after_a_transaction_that_sqlite_has_ended_is_dropped() {
    let fixture = FreshSqlite::start().await;
    let db = one_connection(&fixture);
    for end in ["completed", "committed", "dropped", "dropped in its commit"] {
        let mut tx = Tx::begin(&db).await.expect(end);
        let own = claim(end);
        assert_eq!(tx.claim(&own).await.expect(end), Claimed::Granted);
        match end {
            "completed" => {
                rolled_back_by_sqlite(&mut tx).await;
                let completed = tx.complete_and_commit(&own, None).await;
                assert!(completed.expect_err(end).is_invalid());
            }
            "committed" => {
                tx.complete(&own, None).await.expect("its own");
                rolled_back_by_sqlite(&mut tx).await;
                let committed = tx.commit().await;
                assert!(committed.expect_err(end).is_outcome_unknown());
            }
            "dropped" => rolled_back_by_sqlite(&mut tx).await,
            _ => {
                tx.complete(&own, None).await.expect("its own");
                let mut commit = pin!(tx.commit());
                let _ = poll_fn(|context| Poll::Ready(commit.as_mut().poll(context))).await;
            }
        }
    }
    done::<FreshSqlite>(&db, &claim("k"), None)
        .await
        .expect("granted");
    let mut plain = db.0.begin().await.expect("a usable connection");
    plain
        .execute("INSERT INTO effects VALUES ('plain')")
        .await
        .expect("a row");
    plain.commit().await.expect("an answer");
    drop(db);
    assert_eq!(fixture.effects().await, 2);
}

/// Returns a pool in which each transaction has the connection of the last one.
fn one_connection(fixture: &FreshSqlite) -> Sqlite {
    let one = PoolOptions::new().max_connections(1);
    let options = SqliteConnectOptions::new().filename(fixture.folder.path().join("db"));
    Sqlite(one.connect_lazy_with(options))
}

/// Fails a statement in such a way that SQLite rolls the whole transaction back.
async fn rolled_back_by_sqlite(tx: &mut Tx<Sqlite>) {
    let twice =
        "INSERT INTO effects VALUES ('twice'); INSERT OR ROLLBACK INTO effects VALUES ('twice')";
    let failed = FreshSqlite::execute(tx, twice).await;
    failed.expect_err("a unique column");
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
