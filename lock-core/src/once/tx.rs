//! A transaction that can claim operations.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::claim::{Claim, Claimed, Found};
use super::database::{Database, Dialect, Row, Value};
use super::failure::{failure, unknown};
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
///     let mut tx = Tx::begin(db).await?;
///     match tx.claim(&claim).await? {
///         Claimed::Granted => {
///             // … the work, on `*tx`
///             tx.complete(&claim, Some(b"receipt")).await?;
///             tx.commit().await?;
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
        let bytes = operation.to_bytes();
        let values = [
            Value::Bytes(&bytes),
            Value::Bytes(claim.run()),
            Value::Int(claim.life_ms()),
            Value::Int(claim.advisory_lock()),
        ];
        let values = match self.dialect {
            Dialect::Postgres => &values[..],
            Dialect::Sqlite => &values[..3],
        };
        // It counts as claimed before it is: if this future is dropped, the claim may be granted nevertheless.
        self.claimed.push((operation, false));
        let granted = self.query(|all| all.claim, values).await?.is_some();
        if granted {
            return Ok(Claimed::Granted);
        }
        self.claimed.pop();
        // In READ COMMITTED, this statement sees what the first one has waited for.
        let row = self.query(|all| all.peek, &[Value::Bytes(&bytes)]).await?;
        Ok(row.map_or(Claimed::Busy, |row| Claimed::Recorded(Found::new(row))))
    }

    /// Writes the record of an operation that this transaction has claimed. `None`: the operation is done, and nothing else is
    /// remembered.
    ///
    /// # Errors
    ///
    /// * [`Unavailable`](crate::ErrorKind::Unavailable): the database did not answer, or an earlier statement of this transaction has
    ///   failed.
    /// * [`Invalid`](crate::ErrorKind::Invalid): the claim is gone, because the transaction was rolled back or committed by a
    ///   statement in between. Nothing may be answered: the effect may be lost.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, [`commit`](Self::commit) fails.
    pub async fn complete(&mut self, claim: &Claim, record: Option<&[u8]>) -> Result<(), Error> {
        let operation = claim.operation().to_bytes();
        let mut values = vec![Value::Bytes(&operation), Value::Bytes(claim.run())];
        values.extend(record.map(Value::Bytes));
        let row = match record {
            Some(_) => self.query(|all| all.complete, &values).await?,
            None => {
                self.query(|all| all.complete_without_record, &values)
                    .await?
            }
        };
        self.end(claim, row.as_ref(), true)
    }

    /// Gives a claim back: the transaction may be committed, and nothing is remembered.
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, [`commit`](Self::commit) fails.
    pub async fn withdraw(&mut self, claim: &Claim) -> Result<(), Error> {
        let operation = claim.operation().to_bytes();
        let values = [Value::Bytes(&operation), Value::Bytes(claim.run())];
        let row = self.query(|all| all.withdraw, &values).await?;
        self.end(claim, row.as_ref(), false)
    }

    /// Commits.
    ///
    /// # Errors
    ///
    /// * [`Invalid`](crate::ErrorKind::Invalid): a claim is neither completed nor withdrawn. The transaction is rolled back.
    /// * An error of which [`is_outcome_unknown`](Error::is_outcome_unknown) is true: COMMIT was not answered, or failed. Do not take the
    ///   work for failed, and do not acknowledge a message: [`Claim::settle`] finds out.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, it is unknown whether the transaction was committed.
    pub async fn commit(mut self) -> Result<(), Error> {
        if self.claimed.iter().any(|(_, done)| !done) {
            self.roll_back_quietly().await;
            return Err(Error::invalid(
                "a claim of this transaction is neither completed nor withdrawn, because its work was dropped; it was rolled back",
            ));
        }
        match self.tx.take() {
            Some(tx) => D::commit(tx).await.map_err(unknown::<D>),
            None => Ok(()),
        }
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
        match self.tx.take() {
            Some(tx) => {
                let rolled_back = D::rollback(tx).await;
                rolled_back.map_err(|error| failure::<D>(self.dialect, error))
            }
            None => Ok(()),
        }
    }

    /// Rolls back, where an error changes nothing: the database does it when the connection ends.
    pub(super) async fn roll_back_quietly(self) {
        if let Err(error) = self.rollback().await {
            tracing::debug!(%error, "a rollback was not answered");
        }
    }

    /// Runs one of the kit's statements.
    pub(super) async fn query(
        &mut self,
        statement: impl FnOnce(&'static Statements) -> &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, Error> {
        let statement = statement(self.dialect.statements());
        let answer = D::query(self.open(), statement, values).await;
        answer.map_err(|error| failure::<D>(self.dialect, error))
    }

    /// Notes that a claim is completed or withdrawn. Without a row, it is gone.
    fn end(&mut self, claim: &Claim, row: Option<&Row>, done: bool) -> Result<(), Error> {
        if row.is_none() {
            return Err(Error::invalid(
                "the claim of this run is gone, because a statement has rolled the transaction back or committed it",
            ));
        }
        let operation = claim.operation();
        self.claimed.retain(|(other, _)| *other != operation);
        if done {
            self.claimed.push((operation, true));
        }
        Ok(())
    }

    fn open(&mut self) -> &mut D::Tx {
        self.tx.as_mut().expect("only `self` by value takes it")
    }
}

impl<D: Database> Deref for Tx<D> {
    type Target = D::Connection;

    fn deref(&self) -> &D::Connection {
        D::connection_ref(self.tx.as_ref().expect("only `self` by value takes it"))
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
