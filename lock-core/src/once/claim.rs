//! The claim of one run on its operation.

use std::time::Duration;

use super::database::{Database, Row, Value};
use super::failure::failure;
use super::tx::Tx;
use crate::base::clock::{Clock, Moment};
use crate::base::error::Error;
use crate::base::machine;
use crate::base::operation::OperationId;

/// The shortest and the longest life of a record.
const SHORTEST: Duration = Duration::from_secs(60);
pub(super) const LONGEST: Duration = Duration::from_secs(3_650 * 24 * 3_600);

/// One run of an operation, which claims it.
///
/// Two runs of an operation have different claims. A copy is the same claim.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    operation: OperationId,
    run: [u8; 16],
    life_ms: i64,
    made: Moment,
}

/// The answer to [`Tx::claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Claimed {
    /// The claim is granted: this run may do the work.
    Granted,
    /// The operation is done.
    Recorded(Found),
    /// A transaction that is open has claimed the operation. It may yet be rolled back.
    Busy,
}

/// What an earlier run has left.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The record; `None`: the operation is done, and nothing else is known of it.
    pub record: Option<Vec<u8>>,
    run: Vec<u8>,
}

/// What became of a transaction whose COMMIT was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settled {
    /// It was committed.
    Committed,
    /// It was rolled back, and another run has done the operation.
    Recorded(Found),
    /// It was rolled back, and the operation is not done.
    RolledBack,
    /// It may still be committed, or the life of its record is over, and nothing tells any more.
    Open,
}

impl Claim {
    /// Makes the claim of a new run. Its record lives for `life`, counted from the claim, or from the completion if the work has
    /// taken longer than that.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid): the life is shorter than a minute or longer than 3 650 days.
    pub fn new(operation: OperationId, life: Duration) -> Result<Self, Error> {
        if life < SHORTEST || life > LONGEST {
            return Err(Error::invalid(format!(
                "a record's life of {life:?} is out of bounds; use a minute at least and 3 650 days at most"
            )));
        }
        let mut claim = Self::probe(operation);
        claim.life_ms = i64::try_from(life.as_millis()).unwrap_or(i64::MAX);
        Ok(claim)
    }

    /// Makes a claim that is not going to be committed.
    pub(super) fn probe(operation: OperationId) -> Self {
        let mut run = [0; 16];
        machine::fill(&mut run);
        Self {
            operation,
            run,
            life_ms: 0,
            made: Clock::System.now(),
        }
    }

    /// Returns the operation.
    #[must_use]
    pub fn operation(&self) -> OperationId {
        self.operation
    }

    /// Finds out what became of this run's transaction, whose COMMIT was not answered.
    ///
    /// It claims the operation once more, on another connection, and gives this claim back. A transaction that is still
    /// open refuses the claim, so that a granted claim proves that the transaction was rolled back. To read would prove nothing:
    /// a COMMIT that is on its way may arrive after the reading.
    ///
    /// Call it before the life of the record is over. After a life since [`new`](Self::new), a granted claim proves nothing, and the
    /// answer is [`Open`](Settled::Open). A transaction whose record was [forgotten](super::forget) counts as rolled back.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Misconfigured`](crate::ErrorKind::Misconfigured): the database did
    /// not answer, or refuses the claim. The outcome stays unknown.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn settle<D: Database>(&self, db: &D) -> Result<Settled, Error> {
        let (tx, claimed) = Tx::begin_and_claim(db, &Self::probe(self.operation)).await?;
        tx.roll_back_quietly().await;
        Ok(self.settled(claimed, Clock::System.now().since(self.made)))
    }

    /// Interprets the answer to the probe of a claim that was made so long ago.
    fn settled(&self, claimed: Claimed, age: Duration) -> Settled {
        let is_over = age >= Duration::from_millis(self.life_ms.unsigned_abs());
        match claimed {
            // The run may have left a record, whose life is over.
            Claimed::Granted if is_over => Settled::Open,
            Claimed::Granted => Settled::RolledBack,
            Claimed::Busy => Settled::Open,
            Claimed::Recorded(found) if found.is_of(self) => Settled::Committed,
            Claimed::Recorded(found) => Settled::Recorded(found),
        }
    }

    pub(super) fn run(&self) -> &[u8; 16] {
        &self.run
    }

    pub(super) fn life_ms(&self) -> i64 {
        self.life_ms
    }

    /// Returns the number of the advisory lock of the operation.
    ///
    /// Two operations with one number, or an application that uses the number, refuse a claim now and then, and never let
    /// two pass.
    pub(super) fn advisory_lock(&self) -> i64 {
        let bytes = self.operation.to_bytes();
        i64::from_be_bytes(std::array::from_fn(|index| bytes[index])) ^ 0x6c6f_636b_6b69_7401
    }
}

impl Found {
    pub(super) fn new(row: Row) -> Self {
        Self {
            record: row.record,
            run: row.run,
        }
    }

    pub(super) fn run(&self) -> &[u8] {
        &self.run
    }

    /// Returns whether this run has left it.
    #[must_use]
    pub fn is_of(&self, claim: &Claim) -> bool {
        self.run == claim.run
    }
}

/// Reads the record of an operation, outside of a transaction.
///
/// `None` proves nothing: a run may be under way. Only [`Tx::claim`] tells.
///
/// # Errors
///
/// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Misconfigured`](crate::ErrorKind::Misconfigured): the database did not
/// answer, or refuses to.
///
/// # Cancel safety
///
/// Dropping the future leaves nothing behind.
pub async fn peek<D: Database>(db: &D, operation: OperationId) -> Result<Option<Found>, Error> {
    let dialect = db.dialect();
    let operation = operation.to_bytes();
    let row = db
        .read(dialect.statements().peek, &[Value::Bytes(&operation)])
        .await
        .map_err(|error| failure::<D>(dialect, error))?;
    Ok(row.map(Found::new))
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim")
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}

/// Shows no bytes, because a record can hold personal data.
impl std::fmt::Debug for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Found")
            .field("record", &self.record.as_ref().map(Vec::len))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_life_of_a_record_a_granted_claim_proves_nothing() {
        let minute = Duration::from_secs(60);
        let claim = Claim::new(OperationId::new("charge", ["7"]), minute).unwrap();
        let settled = |age| claim.settled(Claimed::Granted, age);
        assert_eq!(
            settled(minute - Duration::from_nanos(1)),
            Settled::RolledBack
        );
        assert_eq!(settled(minute), Settled::Open);
    }
}
