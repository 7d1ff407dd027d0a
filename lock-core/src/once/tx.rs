//! A transaction that can claim operations.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::claim::{Claim, Claimed, Found};
use super::database::{CommitError, Database, Dialect, Value};
use super::failure::{failure, gone, unknown};
use super::statements::Statements;
use crate::base::error::Error;
use crate::base::operation::OperationId;

/// A transaction of your database, in which operations are claimed and completed.
///
/// It dereferences to the [connection](Database::Connection). With sqlx, `&mut **tx` is the connection for a query.
///
/// Dropping it rolls it back.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use lock_core::once::{Claim, Claimed, Database, Tx};
/// use lock_core::{Error, OperationId};
///
/// async fn charge<D: Database>(db: &D, order: &str) -> Result<Option<Vec<u8>>, Error> {
///     let day = Duration::from_secs(24 * 3_600);
///     let claim = Claim::new(OperationId::new("charge", [order]), day)?;
///     let (mut tx, claimed) = Tx::begin_and_claim(db, &claim).await?;
///     match claimed {
///         Claimed::Granted => {
///             let connection = &mut *tx; // the work
///             # let _ = connection;
///             tx.complete_and_commit(&claim, Some(b"receipt")).await?;
///             Ok(Some(b"receipt".to_vec()))
///         }
///         Claimed::Recorded(found) => Ok(found.record), // it was done before
///         _ => Err(Error::invalid("it is under way")),
///     }
/// }
/// ```
pub struct Tx<D: Database> {
    /// `None` only while it ends.
    tx: Option<D::Tx>,
    dialect: Dialect,
    /// The operations that this transaction has claimed, and whether they are completed.
    claimed: Vec<(OperationId, bool)>,
}

const OPEN: &str = "only its end takes the transaction";

impl<D: Database> Tx<D> {
    /// Begins a transaction.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Misconfigured`](crate::ErrorKind::Misconfigured): the pool gives no
    /// connection, or the database refuses.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn begin(db: &D) -> Result<Self, Error> {
        let dialect = db.dialect();
        let begun = db.begin(dialect.statements().begin).await;
        Ok(Self {
            tx: Some(begun.map_err(|error| failure::<D>(dialect, error))?),
            dialect,
            claimed: Vec::new(),
        })
    }

    /// Begins a transaction and claims an operation in it, in one trip to the server if the driver can do that.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin) and [`claim`](Self::claim).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn begin_and_claim(db: &D, claim: &Claim) -> Result<(Self, Claimed), Error> {
        let dialect = db.dialect();
        let statements = dialect.statements();
        let bytes = claim.operation().to_bytes();
        let values = claim_values(&bytes, claim);
        let begun = db.begin_and_execute(
            statements.begin,
            statements.claim,
            &values[..statements.claim_values],
        );
        let (tx, rows) = begun.await.map_err(|error| failure::<D>(dialect, error))?;
        let mut tx = Self {
            tx: Some(tx),
            dialect,
            claimed: vec![(claim.operation(), false)],
        };
        let claimed = tx.claimed(claim, rows).await?;
        Ok((tx, claimed))
    }

    /// Claims an operation for this transaction.
    ///
    /// A claim is granted to one open transaction at most, and to none while a record lives. It ends with the transaction. A granted
    /// claim must be [completed](Self::complete) or [withdrawn](Self::withdraw) before [`commit`](Self::commit).
    ///
    /// # Errors
    ///
    /// * [`Invalid`](crate::ErrorKind::Invalid): this transaction has claimed the operation already and works on it, so it would wait
    ///   for itself.
    /// * [`Unavailable`](crate::ErrorKind::Unavailable) or [`Misconfigured`](crate::ErrorKind::Misconfigured): the database did not
    ///   answer, or refuses.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the claim may be granted all the same, and [`commit`](Self::commit) fails.
    pub async fn claim(&mut self, claim: &Claim) -> Result<Claimed, Error> {
        let operation = claim.operation();
        if self.claimed.contains(&(operation, false)) {
            return Err(Error::invalid(
                "this transaction works on the operation already, so it would wait for its own result",
            ));
        }
        // It counts as claimed before it is: if this future is dropped, the claim may be granted nevertheless.
        self.claimed.push((operation, false));
        let bytes = operation.to_bytes();
        let values = &claim_values(&bytes, claim)[..self.dialect.statements().claim_values];
        let rows = self.execute(|all| all.claim, values).await?;
        self.claimed(claim, rows).await
    }

    /// Interprets the number of rows that the claim's statement has changed.
    async fn claimed(&mut self, claim: &Claim, rows: u64) -> Result<Claimed, Error> {
        if rows > 0 {
            return Ok(Claimed::Granted);
        }
        self.claimed.pop();
        // In READ COMMITTED, this statement sees what the first one has waited for.
        let bytes = claim.operation().to_bytes();
        let peek = self.dialect.statements().peek;
        let row = D::query(self.open(), peek, &[Value::Bytes(&bytes)]).await;
        let row = row.map_err(|error| failure::<D>(self.dialect, error))?;
        Ok(row.map_or(Claimed::Busy, |row| Claimed::Recorded(Found::new(row))))
    }

    /// Writes the record of an operation that this transaction has claimed. `None`: the operation is done, and nothing else is
    /// remembered.
    ///
    /// # Errors
    ///
    /// * [`Unavailable`](crate::ErrorKind::Unavailable): the database did not answer, or an earlier statement of this transaction has
    ///   failed.
    /// * [`Invalid`](crate::ErrorKind::Invalid): the claim is gone, because the transaction was rolled back by a statement in between.
    ///   Nothing may be answered: the effect may be lost. In PostgreSQL, the transaction has failed with it. If it was committed in
    ///   between, the record is written behind its effect, and no error tells.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, [`commit`](Self::commit) fails.
    pub async fn complete(&mut self, claim: &Claim, record: Option<&[u8]>) -> Result<(), Error> {
        let operation = claim.operation().to_bytes();
        let (statement, values) = completion(self.dialect, &operation, claim, record);
        let rows = self.execute(|_| statement, &values).await?;
        let is_gone = self.dialect == Dialect::Sqlite && rows == 0;
        self.end(claim, is_gone, true)
    }

    /// Writes the record of an operation that this transaction has claimed, and commits, in one trip to the server if the driver can
    /// do that.
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete) and [`commit`](Self::commit). The transaction is rolled back, unless
    /// [`is_outcome_unknown`](Error::is_outcome_unknown) is true.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, it is unknown whether the transaction was committed.
    pub async fn complete_and_commit(
        mut self,
        claim: &Claim,
        record: Option<&[u8]>,
    ) -> Result<(), Error> {
        if self.dialect == Dialect::Sqlite {
            self.complete(claim, record).await?;
            return self.commit().await;
        }
        let operation = claim.operation();
        self.claimed
            .retain(|claimed| *claimed != (operation, false));
        let operation = operation.to_bytes();
        let (statement, values) = completion(self.dialect, &operation, claim, record);
        self.end_with(Some(statement), &values).await
    }

    /// Gives a claim back: the transaction may be committed, and nothing is remembered.
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete), and in PostgreSQL also if the transaction was committed in between. The claim then stays.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, [`commit`](Self::commit) fails.
    pub async fn withdraw(&mut self, claim: &Claim) -> Result<(), Error> {
        let operation = claim.operation().to_bytes();
        let values = [Value::Bytes(&operation), Value::Bytes(claim.run())];
        let rows = self.execute(|all| all.withdraw, &values).await?;
        self.end(claim, rows == 0, false)
    }

    /// Commits, if no statement of the transaction has failed. To ask for that costs one statement in PostgreSQL.
    ///
    /// # Errors
    ///
    /// * [`Invalid`](crate::ErrorKind::Invalid): a claim is neither completed nor withdrawn. The transaction is rolled back.
    /// * [`Unavailable`](crate::ErrorKind::Unavailable): an earlier statement of this transaction has failed, and PostgreSQL rolls it back.
    /// * An error of which [`is_outcome_unknown`](Error::is_outcome_unknown) is true: COMMIT was not answered, or failed. Do not take the
    ///   work for failed, and do not acknowledge a message: [`Claim::settle`] finds out.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, it is unknown whether the transaction was committed.
    pub async fn commit(self) -> Result<(), Error> {
        let sound = self.dialect.statements().sound;
        self.end_with(sound, &[]).await
    }

    /// Rolls back.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](crate::ErrorKind::Unavailable): the database did not answer. It rolls the transaction back when it notices that
    /// the connection has ended.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the transaction is rolled back as if it were dropped.
    pub async fn rollback(mut self) -> Result<(), Error> {
        let tx = self.tx.take().expect(OPEN);
        let rolled_back = D::rollback(tx).await;
        rolled_back.map_err(|error| failure::<D>(self.dialect, error))
    }

    /// Rolls back, where an error changes nothing: the database does it when the connection ends.
    pub(super) async fn roll_back_quietly(self) {
        if let Err(error) = self.rollback().await {
            tracing::debug!(%error, "a rollback was not answered");
        }
    }

    /// Runs the last statement of the transaction, and commits if it has not failed.
    async fn end_with(
        mut self,
        statement: Option<&'static str>,
        values: &[Value<'_>],
    ) -> Result<(), Error> {
        if self.claimed.iter().any(|(_, done)| !done) {
            self.roll_back_quietly().await;
            return Err(Error::invalid(
                "a claim of this transaction is neither completed nor withdrawn, because its work was dropped or a statement \
                 has failed; it was rolled back",
            ));
        }
        let tx = self.tx.take().expect(OPEN);
        let committed = match statement {
            Some(statement) => D::execute_and_commit(tx, statement, values).await,
            None => D::commit(tx).await.map_err(CommitError::Unknown),
        };
        committed.map_err(|error| match error {
            CommitError::NotCommitted(error) => failure::<D>(self.dialect, error),
            CommitError::Unknown(error) => unknown::<D>(error),
        })
    }

    /// Runs one of the kit's statements, and returns the number of rows that it has changed.
    pub(super) async fn execute(
        &mut self,
        statement: impl FnOnce(&'static Statements) -> &'static str,
        values: &[Value<'_>],
    ) -> Result<u64, Error> {
        let statement = statement(self.dialect.statements());
        let rows = D::execute(self.open(), statement, values).await;
        rows.map_err(|error| failure::<D>(self.dialect, error))
    }

    /// Returns what to do about a setting that breaks the promise.
    pub(super) async fn advice(&mut self) -> Result<Option<String>, Error> {
        let Some(advice) = self.dialect.statements().advice else {
            return Ok(None);
        };
        let row = D::query(self.open(), advice, &[]).await;
        let row = row.map_err(|error| failure::<D>(self.dialect, error))?;
        Ok(row.map(|row| String::from_utf8_lossy(&row.run).into_owned()))
    }

    /// Notes that a claim is completed or withdrawn, unless it is gone.
    fn end(&mut self, claim: &Claim, is_gone: bool, done: bool) -> Result<(), Error> {
        if is_gone {
            return Err(gone());
        }
        let operation = claim.operation();
        self.claimed.retain(|(other, _)| *other != operation);
        if done {
            self.claimed.push((operation, true));
        }
        Ok(())
    }

    fn open(&mut self) -> &mut D::Tx {
        self.tx.as_mut().expect(OPEN)
    }
}

/// Returns the values of the claim's statement. That of SQLite takes the first three.
fn claim_values<'a>(operation: &'a [u8], claim: &'a Claim) -> [Value<'a>; 4] {
    [
        Value::Bytes(operation),
        Value::Bytes(claim.run()),
        Value::Int(claim.life_ms()),
        Value::Int(claim.advisory_lock()),
    ]
}

/// Returns the statement that completes a claim, and its values.
fn completion<'a>(
    dialect: Dialect,
    operation: &'a [u8],
    claim: &'a Claim,
    record: Option<&'a [u8]>,
) -> (&'static str, Vec<Value<'a>>) {
    let statements = dialect.statements();
    let [operation, run, life, _] = claim_values(operation, claim);
    let mut values = vec![operation, run, life];
    values.extend(record.map(Value::Bytes));
    match record {
        Some(_) => (statements.complete, values),
        None => (statements.complete_without_record, values),
    }
}

impl<D: Database> Deref for Tx<D> {
    type Target = D::Connection;

    fn deref(&self) -> &D::Connection {
        D::connection_ref(self.tx.as_ref().expect(OPEN))
    }
}

impl<D: Database> DerefMut for Tx<D> {
    fn deref_mut(&mut self) -> &mut D::Connection {
        D::connection(self.open())
    }
}

impl<D: Database> fmt::Debug for Tx<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx")
            .field("claimed", &self.claimed.len())
            .finish_non_exhaustive()
    }
}
