//! Bodies that end the transaction of the kit, or go on behind a failed statement.

use std::marker::PhantomData;
use std::ops::DerefMut;

use lock_core::once::{Database, Dialect, Tx};
use lock_core::{Error, idempotent};
use lock_tests::needs;
use serde::{Deserialize, Serialize};

use super::suite::{Fixture, effect};
use super::{postgres, sqlite};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Failed {
    Twice,
    Refused(String),
}

#[idempotent(
    key = "registers:<message>",
    remember = "1h",
    errors = |error| *error == Failed::Twice,
    on_error = |error| Err(Failed::Refused(error.to_string())),
    tx = tx,
)]
async fn registers<F: Fixture>(tx: &mut Tx<F::Db>, message: u64) -> Result<u64, Failed> {
    let inserted = F::execute(tx, "INSERT INTO effects VALUES ('one')").await;
    inserted.map_err(|_| Failed::Twice)?;
    Ok(message)
}

/// PostgreSQL keeps nothing of such a transaction, and SQLite undoes the statement only.
async fn an_error_that_counts_as_final_is_returned_behind_a_failed_statement<F: Fixture>() {
    let fixture = F::start().await;
    let keeps = fixture.db().dialect() == Dialect::Sqlite;
    fixture.sql("INSERT INTO effects VALUES ('one')").await;
    for _ in 0..2 {
        let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
        let refused = registers::<F>(&mut tx, 7).await;
        assert_eq!(refused, Err(Failed::Twice));
        let committed = tx.commit().await;
        match committed {
            Ok(()) => assert!(keeps),
            Err(error) => assert!(!keeps && error.is_invalid(), "{error}"),
        }
    }
    assert_eq!(fixture.records().await, u64::from(keeps));
}

#[tokio::test]
async fn an_error_that_counts_as_final_is_returned_behind_a_failed_statement_of_sqlite() {
    an_error_that_counts_as_final_is_returned_behind_a_failed_statement::<sqlite::Fresh>().await;
}

#[tokio::test]
async fn an_error_that_counts_as_final_is_returned_behind_a_failed_statement_of_postgres() {
    needs!(postgres);
    an_error_that_counts_as_final_is_returned_behind_a_failed_statement::<postgres::Fresh>().await;
}

#[idempotent(key = "commits:<message>", remember = "1h", tx = tx)]
async fn commits(tx: &mut Tx<postgres::Postgres>, message: u64) -> Result<u64, Error> {
    effect::<postgres::Fresh>(tx).await;
    postgres::Fresh::execute(tx, "COMMIT")
        .await
        .expect("an open transaction");
    Err(Error::invalid(format!(
        "message {message} fails behind its COMMIT"
    )))
}

/// To give the claim back would let the effect happen once more.
#[tokio::test]
async fn a_body_that_commits_by_itself_and_fails_does_not_run_again() {
    needs!(postgres);
    let fixture = postgres::Fresh::start().await;
    let mut codes = Vec::new();
    for _ in 0..2 {
        let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
        let failed = commits(&mut tx, 7).await.expect_err("behind its COMMIT");
        codes.push(failed.code());
        tx.rollback().await.expect("an answer");
    }
    assert_eq!(codes, ["lock_invalid", "lock_done"]);
    assert_eq!(fixture.effects().await, 1);
}

/// Says whether a type gives its target away by `&mut`.
struct Probe<T: ?Sized>(PhantomData<T>);

trait Otherwise {
    fn is_mutable() -> bool {
        false
    }
}

impl<T: ?Sized> Otherwise for Probe<T> {}

impl<T: ?Sized + DerefMut> Probe<T> {
    fn is_mutable() -> bool {
        true
    }
}

/// `tokio_postgres::Client::transaction` takes `&mut`. Its BEGIN is ignored inside a transaction, and its end is that of the kit's.
#[test]
fn with_deadpool_no_body_can_begin_a_transaction_inside_that_of_the_kit() {
    type Connection = <postgres::Postgres as Database>::Connection;
    assert!(!Probe::<Connection>::is_mutable());
    assert!(Probe::<Box<Connection>>::is_mutable());
}
