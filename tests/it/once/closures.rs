//! `once::run` and `once::retry`.

use std::error::Error as StdError;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lock_core::once::{self, Database, Dialect, Memory, Row, Tx, Value};
use lock_core::{Error, ErrorKind, lock_key};
use lock_tests::needs;
use tokio::task::JoinSet;

use super::suite::{Fixture, effect};
use super::{postgres, sqlite};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// An error of an application, which leads to that of the driver.
#[derive(Debug)]
enum Failed {
    Kit(Error),
    Driver(tokio_postgres::Error),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the work failed")
    }
}

impl StdError for Failed {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(match self {
            Self::Kit(error) => error,
            Self::Driver(error) => error,
        })
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Kit(error)
    }
}

/// Charges an order, and returns the number of the run.
async fn charge<F: Fixture>(db: F::Db, cents: u64) -> Result<u32, Error> {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let order = 7;
    let memory = Memory::lasting(DAY).fingerprint(cents);
    once::run(&db, lock_key!("charge:<order>"), memory, async |tx| {
        effect::<F>(tx).await;
        Ok(RUNS.fetch_add(1, Ordering::Relaxed))
    })
    .await
}

async fn tasks_have_one_effect<F: Fixture>() {
    let fixture = F::start().await;
    let mut tasks = JoinSet::new();
    for number in 0..20 {
        let db = if number % 2 == 0 {
            fixture.db()
        } else {
            fixture.other()
        };
        tasks.spawn(async move {
            loop {
                match charge::<F>(db.clone(), 100).await {
                    Err(error) if error.is_busy() => {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    result => return result.expect("a result"),
                }
            }
        });
    }
    let results = tasks.join_all().await;
    assert!(
        results.iter().all(|result| *result == results[0]),
        "{results:?}"
    );
    assert_eq!(fixture.effects().await, 1);

    let reused = charge::<F>(fixture.db(), 200)
        .await
        .expect_err("other cents");
    assert_eq!(reused.kind(), ErrorKind::Reused);
    assert_eq!(reused.key(), Some("charge:7"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_tasks_have_one_effect_and_one_result() {
    tasks_have_one_effect::<sqlite::Fresh>().await;
    needs!(postgres);
    tasks_have_one_effect::<postgres::Fresh>().await;
}

#[tokio::test]
async fn an_error_rolls_back_and_the_next_call_runs() {
    let fixture = sqlite::Fresh::start().await;
    let db = fixture.db();
    for fails in [true, true, false, true] {
        let result: Result<u8, Error> = once::run(&db, "k", Memory::lasting(DAY), async |tx| {
            effect::<sqlite::Fresh>(tx).await;
            match fails {
                true => Err(Error::invalid("on purpose")),
                false => Ok(3),
            }
        })
        .await;
        assert_eq!(result.is_ok(), fixture.effects().await == 1);
    }
    assert_eq!(fixture.effects().await, 1);
}

#[tokio::test]
async fn a_lifetime_that_is_too_short_is_invalid() {
    let fixture = sqlite::Fresh::start().await;
    let memory = Memory::lasting(Duration::from_secs(1));
    let result: Result<(), Error> = once::run(&fixture.db(), "k", memory, async |_| Ok(())).await;
    assert!(result.expect_err("a minute at least").is_invalid());
}

/// A database whose COMMIT arrives, or does not, and is never answered.
#[derive(Clone)]
struct Unanswered {
    db: sqlite::Sqlite,
    arrives: bool,
}

impl Database for Unanswered {
    type Tx = (<sqlite::Sqlite as Database>::Tx, bool);
    type Connection = <sqlite::Sqlite as Database>::Connection;
    type Error = <sqlite::Sqlite as Database>::Error;

    fn dialect(&self) -> Dialect {
        self.db.dialect()
    }

    async fn begin(&self, statement: &'static str) -> Result<Self::Tx, Self::Error> {
        Ok((self.db.begin(statement).await?, self.arrives))
    }

    async fn read(
        &self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, Self::Error> {
        self.db.read(sql, values).await
    }

    async fn query(
        tx: &mut Self::Tx,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, Self::Error> {
        sqlite::Sqlite::query(&mut tx.0, sql, values).await
    }

    async fn execute(
        tx: &mut Self::Tx,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<u64, Self::Error> {
        sqlite::Sqlite::execute(&mut tx.0, sql, values).await
    }

    fn connection(tx: &mut Self::Tx) -> &mut Self::Connection {
        sqlite::Sqlite::connection(&mut tx.0)
    }

    fn connection_ref(tx: &Self::Tx) -> &Self::Connection {
        sqlite::Sqlite::connection_ref(&tx.0)
    }

    async fn commit((tx, arrives): Self::Tx) -> Result<(), Self::Error> {
        if arrives {
            sqlite::Sqlite::commit(tx).await?;
        } else {
            sqlite::Sqlite::rollback(tx).await?;
        }
        Err(rusqlite::Error::InvalidQuery)
    }

    async fn rollback(tx: Self::Tx) -> Result<(), Self::Error> {
        sqlite::Sqlite::rollback(tx.0).await
    }
}

#[tokio::test]
async fn a_commit_that_is_not_answered_is_settled() {
    for arrives in [true, false] {
        let fixture = sqlite::Fresh::start().await;
        let db = Unanswered {
            db: fixture.db(),
            arrives,
        };
        let result: Result<u8, Error> = once::run(&db, "k", Memory::lasting(DAY), async |tx| {
            sqlite::Fresh::execute(tx, "INSERT INTO effects VALUES ('1')")
                .await
                .expect("an effect");
            Ok(5)
        })
        .await;
        match result {
            Ok(value) => assert!(arrives && value == 5),
            Err(error) => assert!(
                !arrives && error.is_unavailable() && !error.is_outcome_unknown(),
                "{error}"
            ),
        }
        assert_eq!(fixture.effects().await, u64::from(arrives));
    }
}

/// Two transactions that read what the other one writes, so that one of them must fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_of_transactions_is_retried() {
    needs!(postgres);
    let fixture = postgres::Fresh::start().await;
    fixture
        .sql("ALTER ROLE locks SET default_transaction_isolation = 'serializable'")
        .await;
    let db = fixture.other();
    let runs = AtomicU32::new(0);
    let key = "k";
    let result: Result<u64, Failed> =
        once::retry(3, &db, key, Memory::lasting(DAY), async |tx: &mut Tx<_>| {
            let rows = tx
                .query("SELECT name FROM effects", &[])
                .await
                .map_err(Failed::Driver)?;
            if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                // Another transaction writes what this one has read, and reads what this one writes.
                let other = db.0.get().await.expect("a connection");
                let writes =
                    "BEGIN; SELECT name FROM effects; INSERT INTO effects VALUES ('other'); COMMIT";
                other.batch_execute(writes).await.expect("no conflict yet");
            }
            tx.execute("INSERT INTO effects VALUES ('own')", &[])
                .await
                .map_err(Failed::Driver)?;
            Ok(rows.len() as u64)
        })
        .await;
    assert_eq!(result.expect("the second run has no conflict"), 1);
    assert_eq!(runs.into_inner(), 2);
    assert_eq!(fixture.effects().await, 2);
}
