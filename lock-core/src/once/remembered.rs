//! Runs the body of an `#[idempotent]` function inside the transaction of its caller.
//!
//! The claim is made in that transaction, and the result is its record. So effect and result are committed together, by the
//! caller, and no lock is taken.

use std::time::Duration;

use super::claim::{Claim, Claimed};
use super::database::Database;
use super::tx::Tx;
use crate::base::clock::{Clock, Moment};
use crate::base::error::Error;
use crate::base::key::LockKey;
use crate::base::machine;
use crate::base::operation::OperationId;
use crate::base::options::Wait;
use crate::remembered::Memory;

/// The longest life of a record.
pub const REMEMBERED_FOREVER: Duration = super::claim::LONGEST;

/// The pauses between two claims of a call that waits.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A [`Tx`], with a compile error of its own for other types.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a transaction of `lock_core::once`",
    label = "`tx` names a parameter of type `&mut Tx<Db>`"
)]
pub trait Transaction {
    /// The database of the transaction.
    type Database: Database;

    /// Returns the transaction.
    fn transaction(&mut self) -> &mut Tx<Self::Database>;
}

impl<D: Database> Transaction for Tx<D> {
    type Database = D;

    fn transaction(&mut self) -> &mut Self {
        self
    }
}

/// Claims the key, runs the body and completes the claim with its result, or returns the result of an earlier call.
///
/// If the future is dropped after the claim, the transaction cannot be committed.
///
/// `transaction` is [`Transaction::transaction`]. It is a value, because the compiler would report a missing bound three times.
///
/// # Errors
///
/// * `Busy`: another transaction has claimed the key and is open at the end of the wait; or the work is done, and its result is
///   not kept.
/// * `Reused`, `Unreadable`: as `Memory::read`.
/// * `Invalid`: the key or the life is out of bounds, the call is inside its own run, or a statement of the body has ended the
///   transaction.
/// * `Unavailable`, `Misconfigured`: the database did not answer, or refuses.
pub async fn remembered_in<T, D, R, B>(
    tx: &mut T,
    transaction: fn(&mut T) -> &mut Tx<D>,
    key: LockKey,
    wait: Wait,
    memory: Memory<R>,
    body: B,
) -> Result<R, Error>
where
    D: Database,
    B: AsyncFnOnce(&mut T) -> R,
{
    let key = key.into_result()?;
    let claim = new_claim(&key, &memory).map_err(|error| error.with_key(&key))?;
    let claimed = claimed(transaction(tx), &claim, wait, &memory).await;
    if let Some(result) = claimed.map_err(|error| error.with_key(&key))? {
        return Ok(result);
    }
    // On the heap, so that the future of the call stays small.
    let result = Box::pin(body(&mut *tx)).await;
    let tx = transaction(tx);
    let ended = match memory.record_of(&result) {
        Some(record) => {
            let record = (!record.is_empty()).then_some(&*record);
            tx.complete(&claim, record).await
        }
        None => tx.withdraw(&claim).await,
    };
    if let Err(error) = ended {
        if memory.is_value(&result) {
            return Err(error.with_key(&key));
        }
        // The caller gets the error of the body. The claim stays open, so the transaction cannot be committed.
        tracing::debug!(%error, "a claim was not ended, so its transaction can only be rolled back");
    }
    Ok(result)
}

pub(super) fn new_claim<R>(key: &str, memory: &Memory<R>) -> Result<Claim, Error> {
    memory.check()?;
    Claim::new(OperationId::of_function(key), memory.lifetime)
}

/// Claims the operation, and returns `None` if the claim is granted, and otherwise the result of an earlier call.
async fn claimed<D: Database, R>(
    tx: &mut Tx<D>,
    claim: &Claim,
    wait: Wait,
    memory: &Memory<R>,
) -> Result<Option<R>, Error> {
    let now = || Clock::System.now();
    let give_up = match wait {
        Wait::None => Moment::default(),
        Wait::For(span) => now() + span,
        Wait::Forever => Moment::FAR,
    };
    let mut pause = FIRST_PAUSE;
    loop {
        match tx.claim(claim).await? {
            Claimed::Granted => return Ok(None),
            Claimed::Recorded(found) => {
                let record = found.record.unwrap_or_default();
                return memory.read(&record).map(Some);
            }
            Claimed::Busy => {}
        }
        let left = give_up.since(now());
        if left.is_zero() {
            return Err(Error::claimed());
        }
        machine::sleep(pause.min(left)).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}
