//! The database of the suite, and what only diesel does.

use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::{
    AnsiTransactionManager, AsyncConnection, AsyncPgConnection, SimpleAsyncConnection,
    TransactionManager,
};
use lock_core::once::{self, Database, Tx};
use lock_tests::{SqlServer, wait};

use crate::adapter::Db;
use crate::once::suite::{Fixture, claim, done, effect};

/// A PostgreSQL of its own.
pub(crate) struct FreshPostgres {
    // The connections end before the server.
    db: Db,
    server: SqlServer,
}

impl Fixture for FreshPostgres {
    type Db = Db;

    async fn start() -> Self {
        let server = SqlServer::postgres();
        let fresh = Self {
            db: pool(&server, 10),
            server,
        };
        once::create_table(&fresh.db).await.expect("a new table");
        fresh.sql("CREATE TABLE effects (name text UNIQUE)").await;
        fresh
    }

    fn db(&self) -> Db {
        self.db.clone()
    }

    fn other(&self) -> Db {
        pool(&self.server, 10)
    }

    async fn execute(connection: &mut AsyncPgConnection, sql: &'static str) -> Result<(), String> {
        let done = connection.batch_execute(sql).await;
        done.map_err(|error| error.to_string())
    }
}

fn pool(server: &SqlServer, size: usize) -> Db {
    let manager = AsyncDieselConnectionManager::new(server.url());
    let pool = Pool::builder(manager).max_size(size).build();
    Db(pool.expect("a valid pool"))
}

/// PostgreSQL answers a COMMIT of a failed transaction with success, so the kit's own statement must notice.
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

/// The only connection of a pool is free again after each end of a transaction.
#[tokio::test]
async fn the_pool_never_has_an_open_transaction() {
    lock_tests::needs!(postgres);
    let fixture = FreshPostgres::start().await;
    let one = pool(&fixture.server, 1);
    let mut tx = Tx::begin(&one).await.expect("a transaction");
    tx.claim(&claim("k")).await.expect("an answer");
    effect::<FreshPostgres>(&mut tx).await;
    drop(tx);
    assert_eq!(one.0.status().size, 0, "a dropped connection is closed");
    let mut tx = Tx::begin(&one).await.expect("a transaction");
    effect::<FreshPostgres>(&mut tx).await;
    tx.rollback().await.expect("an answer");
    assert_eq!(one.0.status().size, 1, "a rolled back connection is kept");
    done::<FreshPostgres>(&one, &claim("k"), None)
        .await
        .expect("granted");
    assert_eq!(one.0.status().size, 1, "a committed connection is kept");
    assert_eq!(fixture.effects().await, 1);
}

/// A transaction of diesel inside that of the kit is a savepoint, and ends by itself.
#[tokio::test]
async fn a_nested_transaction_is_a_savepoint() {
    lock_tests::needs!(postgres);
    let fixture = FreshPostgres::start().await;
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    let own = claim("k");
    tx.claim(&own).await.expect("an answer");
    for fails in [false, true] {
        let nested = tx.transaction::<(), diesel::result::Error, _>(async |connection| {
            connection
                .batch_execute("INSERT INTO effects VALUES (gen_random_uuid()::text)")
                .await?;
            match fails {
                true => Err(diesel::result::Error::RollbackTransaction),
                false => Ok(()),
            }
        });
        assert_eq!(nested.await.is_err(), fails);
        assert_eq!(fixture.effects().await, 0, "nothing is committed yet");
    }
    tx.complete(&own, None).await.expect("an answer");
    tx.commit().await.expect("a commit");
    assert_eq!(fixture.effects().await, 1);
}

/// diesel would release the savepoint only, and the kit would take that for the commit.
#[tokio::test]
async fn an_open_savepoint_lets_nothing_be_committed() {
    lock_tests::needs!(postgres);
    let fixture = FreshPostgres::start().await;
    let one = pool(&fixture.server, 1);
    for commits in [true, false] {
        let mut tx = Tx::begin(&one).await.expect("a transaction");
        let own = claim("k");
        tx.claim(&own).await.expect("an answer");
        effect::<FreshPostgres>(&mut tx).await;
        AnsiTransactionManager::begin_transaction(&mut *tx)
            .await
            .expect("a savepoint");
        tx.complete(&own, None).await.expect("an answer");
        let ended = match commits {
            true => tx.commit().await,
            false => tx.rollback().await,
        };
        ended.expect_err("an open savepoint");
        assert_eq!(one.0.status().size, 0, "its connection is closed");
        // Until the server notices that, the transaction has the claim.
        wait::eventually("the server has ended the transaction", async || {
            let claims = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
            fixture.server.value(claims) == "0"
        })
        .await;
    }
    done::<FreshPostgres>(&one, &claim("k"), None)
        .await
        .expect("granted");
    assert_eq!(fixture.effects().await, 1);
}

/// A database that says no is told apart from one that says nothing.
#[tokio::test]
async fn wrong_settings_are_misconfigured() {
    lock_tests::needs!(postgres);
    let fixture = FreshPostgres::start().await;
    fixture.sql("CREATE ROLE guest").await;
    for (setting, advice) in [
        ("SET LOCAL ROLE guest", "lacks a right"),
        ("SET TRANSACTION READ ONLY", "read-only"),
        ("DROP TABLE lockkit_once", "create_table"),
    ] {
        let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
        FreshPostgres::execute(&mut tx, setting)
            .await
            .expect("a right");
        let error = tx.claim(&claim("k")).await.expect_err(setting);
        assert!(error.is_misconfigured(), "{setting}: {error}");
        assert!(error.to_string().contains(advice), "{setting}: {error}");
    }
    let nowhere = AsyncDieselConnectionManager::new("postgres://127.0.0.1:1/none");
    let nowhere = Db(Pool::builder(nowhere).build().expect("a valid pool"));
    let error = once::check(&nowhere).await.expect_err("no server");
    assert!(error.is_unavailable(), "{error}");
}

/// Conflicts have their code as errors of the application.
#[tokio::test]
async fn a_deadlock_has_its_code() {
    lock_tests::needs!(postgres);
    let fixture = FreshPostgres::start().await;
    fixture.sql("INSERT INTO effects VALUES ('a'), ('b')").await;
    let begin = "BEGIN; SET LOCAL deadlock_timeout = '10 ms'";
    let (mut left, mut right) = (
        fixture.db().begin(begin).await.expect("a transaction"),
        fixture.db().begin(begin).await.expect("a transaction"),
    );
    let (left, right) = (Db::connection(&mut left), Db::connection(&mut right));
    let a = "SELECT FROM effects WHERE name = 'a' FOR UPDATE";
    let b = "SELECT FROM effects WHERE name = 'b' FOR UPDATE";
    left.batch_execute(a).await.expect("a lock");
    right.batch_execute(b).await.expect("a lock");
    let (left, right) = tokio::join!(left.batch_execute(b), right.batch_execute(a));
    let error = left.and(right).expect_err("a deadlock");
    assert_eq!(Db::code(&error).as_deref(), Some("40P01"), "{error}");
}

#[tokio::test]
async fn a_serialization_failure_has_its_code() {
    lock_tests::needs!(postgres);
    let fixture = FreshPostgres::start().await;
    fixture.sql("INSERT INTO effects VALUES ('a')").await;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ";
    let mut late = fixture.db().begin(begin).await.expect("a transaction");
    let late = Db::connection(&mut late);
    late.batch_execute("SELECT FROM effects")
        .await
        .expect("a snapshot");
    fixture.sql("DELETE FROM effects").await;
    let error = late.batch_execute("DELETE FROM effects").await;
    let error = error.expect_err("an older snapshot");
    assert_eq!(Db::code(&error).as_deref(), Some("40001"), "{error}");
    let other = diesel::result::Error::NotFound;
    assert_eq!(Db::code(&other), None);
}
