//! Bodies that end the transaction of the kit, or go on behind a failed statement.

use lock_core::idempotent;
use lock_core::once::{Database as _, Dialect, Tx};
use lock_tests::needs;
use serde::{Deserialize, Serialize};

use super::suite::Fixture;
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
