//! A database with a fault before and after each of its operations.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use lock_core::once::{CommitError, Database, Dialect, Row, Value};

use crate::store::{Payment, Store, Table};

#[path = "../it/dice.rs"]
#[expect(dead_code, reason = "a pause needs one method")]
mod dice;

/// The steps of the process so far.
static STEPS: AtomicU64 = AtomicU64::new(0);
static ABORT_AT: LazyLock<Option<u64>> = LazyLock::new(|| number("ABORT_AT"));
static PAUSE_MS: LazyLock<u64> = LazyLock::new(|| number("PAUSE_MS").unwrap_or(0));
static DICE: LazyLock<Mutex<dice::Dice>> =
    LazyLock::new(|| Mutex::new(dice::Dice::of(&[std::process::id().into()])));

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().expect(variable))
}

/// A store of payments with a step before and after each operation in it.
#[derive(Clone)]
pub(crate) struct Faulty<S>(pub(crate) S);

async fn between_steps<T>(operation: impl Future<Output = T>) -> T {
    step().await;
    let result = operation.await;
    step().await;
    result
}

async fn step() {
    let step = STEPS.fetch_add(1, Ordering::Relaxed) + 1;
    if *ABORT_AT == Some(step) {
        std::process::abort();
    }
    if *PAUSE_MS > 0 {
        let pause = {
            let mut dice = DICE.lock().unwrap_or_else(PoisonError::into_inner);
            Duration::from_millis(dice.between(0, *PAUSE_MS))
        };
        tokio::time::sleep(pause).await;
    }
}

/// The adapter of PostgreSQL sends two statements at once, so a process cannot end between them. That of SQLite has the steps of
/// both.
impl<S: Store> Database for Faulty<S> {
    type Tx = S::Tx;
    type Connection = S::Connection;
    type Error = S::Error;

    fn dialect(&self) -> Dialect {
        self.0.dialect()
    }

    async fn begin(&self, statement: &'static str) -> Result<Self::Tx, S::Error> {
        between_steps(self.0.begin(statement)).await
    }

    async fn begin_and_execute(
        &self,
        begin: &'static str,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<(Self::Tx, u64), S::Error> {
        if self.dialect() == Dialect::Postgres {
            return between_steps(self.0.begin_and_execute(begin, statement, values)).await;
        }
        let mut tx = self.begin(begin).await?;
        let rows = Self::execute(&mut tx, statement, values).await?;
        Ok((tx, rows))
    }

    async fn read(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, S::Error> {
        between_steps(self.0.read(statement, values)).await
    }

    async fn query(
        tx: &mut Self::Tx,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, S::Error> {
        between_steps(S::query(tx, statement, values)).await
    }

    async fn execute(
        tx: &mut Self::Tx,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<u64, S::Error> {
        between_steps(S::execute(tx, statement, values)).await
    }

    fn connection(tx: &mut Self::Tx) -> &mut S::Connection {
        S::connection(tx)
    }

    fn connection_ref(tx: &Self::Tx) -> &S::Connection {
        S::connection_ref(tx)
    }

    async fn commit(tx: Self::Tx) -> Result<(), S::Error> {
        between_steps(S::commit(tx)).await
    }

    /// The kit calls it for PostgreSQL only.
    async fn execute_and_commit(
        tx: Self::Tx,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<(), CommitError<S::Error>> {
        between_steps(S::execute_and_commit(tx, statement, values)).await
    }

    async fn rollback(tx: Self::Tx) -> Result<(), S::Error> {
        between_steps(S::rollback(tx)).await
    }

    fn code<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<Cow<'a, str>> {
        S::code(error)
    }
}

impl<S: Store> Store for Faulty<S> {
    async fn pay(
        connection: &mut S::Connection,
        table: Table,
        operation: String,
        amount: u32,
    ) -> Result<Payment, S::Error> {
        between_steps(S::pay(connection, table, operation, amount)).await
    }

    async fn list(&self, table: Table) -> Result<Vec<Payment>, S::Error> {
        self.0.list(table).await
    }
}
