//! The table, its check, and the end of records.

use super::claim::{Claim, Claimed, peek};
use super::database::{Database, Value};
use super::statements::SWEPT_AT_ONCE;
use super::tx::Tx;
use crate::base::error::{Error, ErrorKind};
use crate::base::machine;
use crate::base::operation::OperationId;

/// Creates the table `lockkit_once` and its index, unless they exist.
///
/// Two processes may do so at once. The user of the database needs the right to create a table. A service that has migrations
/// can run [`SCHEMA_POSTGRES`](super::SCHEMA_POSTGRES) or [`SCHEMA_SQLITE`](super::SCHEMA_SQLITE) there, and only [`check`] at
/// startup.
///
/// # Errors
///
/// [`Unavailable`](ErrorKind::Unavailable) or [`Misconfigured`](ErrorKind::Misconfigured): the database did not answer, refuses, or
/// has a table of that name with other columns.
///
/// # Cancel safety
///
/// If the future is dropped, the table exists or does not.
pub async fn create_table<D: Database>(db: &D) -> Result<(), Error> {
    let statements = db.dialect().statements();
    let mut tx = Tx::begin(db).await?;
    if let Some(lock) = statements.schema_lock {
        tx.execute(|_| lock, &[]).await?;
    }
    for statement in statements.schema.split_inclusive(';') {
        if !statement.trim().is_empty() {
            tx.execute(|_| statement, &[]).await?;
        }
    }
    tx.commit().await?;
    check(db).await
}

/// Checks that the database can be written to, has the table, and grants its user all rights.
///
/// It runs every statement that a request needs, in a transaction that is rolled back.
///
/// # Errors
///
/// [`Misconfigured`](ErrorKind::Misconfigured): the table, a column, its unique index or a right is missing, the database is a
/// replica, the table is `UNLOGGED`, or `default_transaction_deferrable` is on. The message says which and what to do.
/// [`Unavailable`](ErrorKind::Unavailable): the database did not answer.
///
/// # Cancel safety
///
/// Dropping the future leaves nothing behind.
pub async fn check<D: Database>(db: &D) -> Result<(), Error> {
    let mut random = [0; 16];
    machine::fill(&mut random);
    let key = format!("{:032x}", u128::from_be_bytes(random));
    let claim = Claim::probe(OperationId::new("check", [key.as_str()]));
    let mut tx = Tx::begin(db).await?;
    if tx.claim(&claim).await? != Claimed::Granted {
        return Err(Error::new(
            ErrorKind::Misconfigured,
            "the database refuses a claim that no other run can have; check the triggers and policies of `lockkit_once`",
        ));
    }
    tx.complete(&claim, Some(&[])).await?;
    tx.complete(&claim, None).await?;
    tx.withdraw(&claim).await?;
    if let Some(advice) = tx.advice().await? {
        return Err(Error::new(ErrorKind::Misconfigured, advice));
    }
    tx.rollback().await
}

/// Deletes the records whose life is over, a thousand in one transaction, and returns their number.
///
/// A claim takes over such a record by itself, so a late sweep costs space only. Several processes may sweep at once.
///
/// # Errors
///
/// [`Unavailable`](ErrorKind::Unavailable) or [`Misconfigured`](ErrorKind::Misconfigured): the database did not answer, or refuses. What
/// was deleted before stays deleted.
///
/// # Cancel safety
///
/// If the future is dropped, the transaction under way is rolled back, or committed.
pub async fn sweep<D: Database>(db: &D) -> Result<u64, Error> {
    let mut all = 0;
    loop {
        let mut tx = Tx::begin(db).await?;
        let most = [Value::Int(SWEPT_AT_ONCE)];
        let rows = tx.execute(|all| all.sweep, &most).await?;
        tx.commit().await?;
        all += rows;
        if rows < SWEPT_AT_ONCE.unsigned_abs() {
            return Ok(all);
        }
    }
}

/// Deletes the record of an operation, so that it can run again, and returns whether there was one.
///
/// A run that is under way is not disturbed: its claim is not visible yet, and only the record that is visible now is deleted.
///
/// # Errors
///
/// [`Unavailable`](ErrorKind::Unavailable) or [`Misconfigured`](ErrorKind::Misconfigured): the database did not answer, or refuses.
///
/// # Cancel safety
///
/// If the future is dropped, the record is deleted or not.
pub async fn forget<D: Database>(db: &D, operation: OperationId) -> Result<bool, Error> {
    let Some(found) = peek(db, operation).await? else {
        return Ok(false);
    };
    let mut tx = Tx::begin(db).await?;
    let operation = operation.to_bytes();
    let values = [Value::Bytes(&operation), Value::Bytes(found.run())];
    let rows = tx.execute(|all| all.withdraw, &values).await?;
    tx.commit().await?;
    Ok(rows > 0)
}
