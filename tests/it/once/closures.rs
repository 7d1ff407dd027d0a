//! `once::run` and `once::retry`.

use std::error::Error as StdError;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lock_core::once::{self, Memory, Tx};
use lock_core::{Error, ErrorKind, lock_key};
use lock_tests::needs;

use super::layer::staged::{OnCommit, Staged};
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

#[tokio::test]
async fn another_call_with_the_key_is_reused() {
    let fixture = sqlite::Fresh::start().await;
    let db = fixture.db();
    let charge = async |cents: u64| {
        let (order, memory) = (7, Memory::lasting(DAY).fingerprint(cents));
        let charged: Result<u64, Error> =
            once::run(&db, lock_key!("charge:<order>"), memory, async |tx| {
                effect::<sqlite::Fresh>(tx).await;
                Ok(cents)
            })
            .await;
        charged
    };
    for _ in 0..2 {
        assert_eq!(charge(100).await.expect("one effect"), 100);
    }
    let reused = charge(200).await.expect_err("other cents");
    assert_eq!(reused.kind(), ErrorKind::Reused);
    assert_eq!(reused.key(), Some("charge:7"));
    assert_eq!(fixture.effects().await, 1);
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

#[tokio::test]
async fn a_commit_that_is_not_answered_is_settled() {
    for arrives in [true, false] {
        let fixture = sqlite::Fresh::start().await;
        let db = Staged::new(fixture.db());
        db.on_commit(match arrives {
            true => OnCommit::IsNotAnswered,
            false => OnCommit::IsNotSent,
        });
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
