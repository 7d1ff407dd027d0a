//! An operation as a closure, in a transaction of its own.

use std::error::Error as StdError;
use std::fmt::Display;
use std::time::Duration;

use super::claim::{Claimed, Settled};
use super::database::{Database, Dialect};
use super::remembered::new_claim;
use super::tx::Tx;
use crate::base::error::Error;
use crate::base::from_error::FromLockError;
use crate::base::key::LockKey;
use crate::remembered::{self, Fingerprint, FingerprintBuilder, Remember};

/// How long the result of [`run`] is remembered, and which values make another call of it.
#[derive(Debug)]
#[must_use = "it does nothing until it is given to `once::run`"]
pub struct Memory {
    lifetime: Duration,
    values: Option<FingerprintBuilder>,
}

impl Memory {
    /// Remembers a result for so long, counted from the begin of the transaction: a minute at least and 3 650 days at most.
    ///
    /// It must be longer than a caller goes on to repeat. If the work has taken longer, the time counts from its end.
    pub fn lasting(lifetime: Duration) -> Self {
        Self {
            lifetime,
            values: None,
        }
    }

    /// Makes a call with another value than the first one fail with [`Reused`](crate::ErrorKind::Reused), and not return the
    /// result of the first one.
    ///
    /// Give it each argument that is not in the key, in one call for each.
    pub fn fingerprint(mut self, value: impl Display) -> Self {
        let values = self.values.get_or_insert_default();
        values.value("fingerprint", &value);
        self
    }

    fn of<R: Remember>(self) -> remembered::Memory<R> {
        let fingerprint = match self.values {
            Some(values) => values.finish(),
            None => Fingerprint::NONE,
        };
        R::memory("once::run", self.lifetime, fingerprint)
    }
}

/// Does an operation once, and returns its result to each later call with the key.
///
/// It begins a transaction, claims the operation, runs `body`, writes the result beside the claim, and commits. An `Err` of the body
/// rolls everything back, and the next call runs. No lock is taken.
///
/// `T` is kept by serde, as JSON. The key has the bounds of a lock's key; [`OperationId::of_function`](crate::OperationId::of_function) names the
/// operation for [`forget`](super::forget). A function with
/// [`#[idempotent(tx = …)]`](macro@crate::idempotent) and the same key is the same operation.
///
/// # Errors
///
/// The error of the body, or one of these, by `From<lock_core::Error>`:
///
/// * `Busy`: another transaction has claimed the operation and is open; or it is done and its result is not kept.
/// * `Reused`: an earlier call had another [fingerprint](Memory::fingerprint).
/// * `Unreadable`: the operation is done, and its result is no `T` any more. It does not run again.
/// * `Invalid`: the key or the lifetime is out of bounds, or the body has rolled the transaction back itself. (If it has committed
///   it, no error tells. Its effect stays, also behind an `Err`, and the operation counts as done.)
/// * `Unavailable`, `Misconfigured`: the database did not answer, or refuses. Nothing is committed, unless
///   [`is_outcome_unknown`](Error::is_outcome_unknown): then nothing tells yet, and the same call again finds out.
///
/// # Cancel safety
///
/// If the future is dropped, the transaction is rolled back, or its COMMIT was on its way. The next call finds out.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "macros")] mod example {
/// use std::time::Duration;
/// use lock_core::once::{self, Database, Memory};
/// use lock_core::{Error, lock_key};
///
/// async fn charge<D: Database>(db: &D, order: u64, cents: u64) -> Result<String, Error> {
///     let day = Duration::from_secs(24 * 3_600);
///     let memory = Memory::lasting(day).fingerprint(cents);
///     once::run(db, lock_key!("charge:<order>"), memory, async |tx| {
///         let connection = &mut **tx; // INSERT INTO charges …
///         # let _ = connection;
///         Ok(format!("receipt {order}"))
///     })
///     .await
/// }
/// # }
/// ```
pub async fn run<D, R, F>(db: &D, key: impl Into<LockKey>, memory: Memory, body: F) -> R
where
    D: Database,
    R: Remember + FromLockError,
    F: AsyncFnOnce(&mut Tx<D>) -> R,
{
    let done = attempt(db, &key.into(), &memory.of(), body).await;
    done.unwrap_or_else(R::from_lock_error)
}

/// Does an operation as [`run`] does, and repeats it while the database reports a conflict of transactions.
///
/// A serialization failure (SQLSTATE 40001) and a deadlock (40P01) roll a transaction back, and the same statements can succeed in
/// another one. The body may run `attempts` times, and the effects of one run at most are committed. It must have no other effects.
///
/// The error of the driver is found in the [sources](StdError::source) of `E`, so `E` must lead to it, as with `#[from]` of
/// thiserror.
///
/// # Errors
///
/// As [`run`]. After the last attempt, its error.
///
/// # Cancel safety
///
/// As [`run`].
pub async fn retry<D, T, E, F>(
    attempts: u32,
    db: &D,
    key: impl Into<LockKey>,
    memory: Memory,
    mut body: F,
) -> Result<T, E>
where
    D: Database,
    E: StdError + From<Error> + 'static,
    Result<T, E>: Remember,
    F: AsyncFnMut(&mut Tx<D>) -> Result<T, E>,
{
    let (key, memory) = (key.into(), memory.of());
    let mut left = attempts;
    loop {
        left = left.saturating_sub(1);
        let done = attempt(db, &key, &memory, &mut body).await;
        match done.unwrap_or_else(|error| Err(error.into())) {
            Err(error) if left > 0 && is_conflict::<D>(db.dialect(), &error) => {}
            result => return result,
        }
    }
}

async fn attempt<D, R, F>(
    db: &D,
    key: &LockKey,
    memory: &remembered::Memory<R>,
    body: F,
) -> Result<R, Error>
where
    D: Database,
    F: AsyncFnOnce(&mut Tx<D>) -> R,
{
    let key = key.clone().into_result()?;
    let done = async {
        let claim = new_claim(&key, memory)?;
        let (mut tx, claimed) = Tx::begin_and_claim(db, &claim).await?;
        match claimed {
            Claimed::Granted => {}
            Claimed::Recorded(found) => {
                tx.roll_back_quietly().await;
                return memory.read(&found.record.unwrap_or_default());
            }
            Claimed::Busy => {
                tx.roll_back_quietly().await;
                return Err(Error::claimed());
            }
        }
        // On the heap, so that the future of the call stays small.
        let result = Box::pin(body(&mut tx)).await;
        let Some(record) = memory.record_of(&result) else {
            tx.roll_back_quietly().await;
            return Ok(result);
        };
        let record = (!record.is_empty()).then_some(&*record);
        match tx.complete_and_commit(&claim, record).await {
            Ok(()) => Ok(result),
            Err(error) if !error.is_outcome_unknown() => Err(error),
            Err(unknown) => match claim.settle(db).await {
                Ok(Settled::Committed) => Ok(result),
                Ok(Settled::Recorded(found)) => memory.read(&found.record.unwrap_or_default()),
                Ok(Settled::RolledBack) => Err(Error::rolled_back().with_source(unknown)),
                Ok(Settled::Open) | Err(_) => Err(unknown),
            },
        }
    };
    done.await.map_err(|error| error.with_key(&key))
}

/// Returns whether the same statements can succeed in another transaction.
fn is_conflict<D: Database>(dialect: Dialect, error: &(dyn StdError + 'static)) -> bool {
    let mut sources = std::iter::successors(Some(error), |error| (*error).source());
    let Some(code) = sources.find_map(|error| D::code(error)) else {
        return false;
    };
    match dialect {
        Dialect::Postgres => matches!(&*code, "40001" | "40P01"),
        // SQLITE_BUSY, with its extended codes.
        Dialect::Sqlite => code.parse::<u32>().is_ok_and(|code| code & 0xff == 5),
    }
}
