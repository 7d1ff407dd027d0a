//! What the kit needs of a database.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::future::Future;

/// A pool of connections to the database in which effects and records are committed.
///
/// [`once_sqlx!`](crate::once_sqlx) and [`once_deadpool!`](crate::once_deadpool) implement it. Implement it by hand for
/// another driver. The kit writes all statements, and an implementation passes them on:
///
/// * Statements have at most four parameters, `$1` to `$4` in PostgreSQL and `?1` to `?4` in SQLite.
/// * A query returns one row at most, of two columns of bytes, of which the second can be NULL.
/// * A PostgreSQL pool must be of the primary server. Poolers in transaction mode are fine, and those in statement mode have no
///   transactions.
///
/// New methods will have defaults.
///
/// # Cancel safety
///
/// The kit drops the future of a method when its own caller is dropped. Then the transaction of that method must be rolled back,
/// as if it were dropped, unless its COMMIT was sent.
pub trait Database: Clone + Send + Sync + 'static {
    /// A transaction that owns its connection. If it is dropped, the database must roll it back, at once or when the
    /// connection closes, and no later user of the pool may get the connection with the open transaction.
    type Tx: Send + 'static;
    /// What your code works with inside a transaction.
    type Connection: Send + ?Sized + 'static;
    /// The error of the driver.
    type Error: StdError + Send + Sync + 'static;

    /// Returns the SQL that the database speaks.
    fn dialect(&self) -> Dialect;

    /// Takes a connection and begins a transaction on it with this statement.
    ///
    /// # Errors
    ///
    /// The pool gives no connection, or the database refuses the statement.
    fn begin(
        &self,
        statement: &'static str,
    ) -> impl Future<Output = Result<Self::Tx, Self::Error>> + Send;

    /// Takes a connection, begins a transaction on it with the first statement, and [executes](Self::execute) the second one in it.
    ///
    /// Default: [`begin`](Self::begin), and then [`execute`](Self::execute). A driver that sends a statement before the answer to the
    /// last one has come saves a trip. The second statement of the kit changes nothing where the first one has failed.
    ///
    /// # Errors
    ///
    /// The pool gives no connection, or the database refuses a statement. The transaction is rolled back, as if it were dropped.
    fn begin_and_execute(
        &self,
        begin: &'static str,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<(Self::Tx, u64), Self::Error>> + Send {
        async move {
            let mut tx = self.begin(begin).await?;
            let rows = Self::execute(&mut tx, statement, values).await?;
            Ok((tx, rows))
        }
    }

    /// Runs one query outside of a transaction.
    ///
    /// # Errors
    ///
    /// The pool gives no connection, or the statement fails.
    fn read(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Option<Row>, Self::Error>> + Send;

    /// Runs one query inside a transaction.
    ///
    /// # Errors
    ///
    /// The statement fails.
    fn query(
        tx: &mut Self::Tx,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Option<Row>, Self::Error>> + Send;

    /// Runs one statement inside a transaction, and returns the number of rows that it has inserted, updated or deleted. After
    /// another statement, any number will do.
    ///
    /// # Errors
    ///
    /// The statement fails.
    fn execute(
        tx: &mut Self::Tx,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// Returns what the user's code sees of a transaction.
    fn connection(tx: &mut Self::Tx) -> &mut Self::Connection;

    /// Returns the same for reading.
    fn connection_ref(tx: &Self::Tx) -> &Self::Connection;

    /// Commits a transaction.
    ///
    /// # Errors
    ///
    /// Whether the transaction was committed is unknown to the kit after every error, and it finds out by itself.
    fn commit(tx: Self::Tx) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Runs one statement, and commits if it has not failed.
    ///
    /// Default: [`execute`](Self::execute), and then [`commit`](Self::commit) or [`rollback`](Self::rollback). A driver of PostgreSQL
    /// saves a trip if it sends COMMIT before it has the answer to the statement: PostgreSQL rolls back at COMMIT if the statement has
    /// failed. The kit does not call this method for SQLite, because SQLite would commit.
    ///
    /// # Errors
    ///
    /// [`NotCommitted`](CommitError::NotCommitted) only where the database has told so, as by an error of the statement.
    fn execute_and_commit(
        mut tx: Self::Tx,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<(), CommitError<Self::Error>>> + Send {
        async move {
            if let Err(error) = Self::execute(&mut tx, statement, values).await {
                // Its own error changes nothing: the database rolls back when the connection ends.
                let _ = Self::rollback(tx).await;
                return Err(CommitError::NotCommitted(error));
            }
            Self::commit(tx).await.map_err(CommitError::Unknown)
        }
    }

    /// Rolls a transaction back. After an error, the connection must not return to the pool with the transaction open.
    ///
    /// # Errors
    ///
    /// The database gave no answer.
    fn rollback(tx: Self::Tx) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Returns the code by which the database names an error of its driver: the SQLSTATE of PostgreSQL, such as `42P01`, or
    /// the number of SQLite, such as `8`. `None`: the error is no error of the driver, or has no code, as that of a connection.
    ///
    /// The kit tells wrong settings and conflicts from an outage by it, and writes it into the log. It asks with a
    /// [`Self::Error`], and with each source of an error of the application. Default: `None`.
    fn code<'a>(error: &'a (dyn StdError + 'static)) -> Option<Cow<'a, str>> {
        let _ = error;
        None
    }
}

/// Why a transaction was not committed by [`Database::execute_and_commit`], as far as it is known.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an implementation makes it, and there is no third outcome"
)]
pub enum CommitError<E> {
    /// It was rolled back, because the statement has failed.
    NotCommitted(E),
    /// COMMIT was not answered, or failed.
    Unknown(E),
}

/// The SQL that a database speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// PostgreSQL 9.5 or later, and databases that speak its protocol and SQL.
    Postgres,
    /// SQLite 3.35 or later.
    Sqlite,
}

/// A parameter of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an implementation must bind each kind, and a new kind is a breaking change for it"
)]
pub enum Value<'a> {
    /// `bytea` in PostgreSQL, and `BLOB` in SQLite.
    Bytes(&'a [u8]),
    /// `bigint` in PostgreSQL, and `INTEGER` in SQLite.
    Int(i64),
}

/// The row that a query returns.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The first column.
    pub run: Vec<u8>,
    /// The second column.
    pub record: Option<Vec<u8>>,
}

impl Row {
    /// Makes a row of its two columns.
    #[must_use]
    pub fn new(run: Vec<u8>, record: Option<Vec<u8>>) -> Self {
        Self { run, record }
    }
}

/// Shows no bytes, because a record can hold personal data.
impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Row")
            .field("record", &self.record.as_ref().map(Vec::len))
            .finish_non_exhaustive()
    }
}
