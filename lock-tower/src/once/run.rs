//! One run of an operation: its claim, its commit, and the resolution of a commit whose answer is lost.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lock_core::once::{Claim, Claimed, Database, Settled, Tx};
use lock_core::{Error, ErrorKind, Wait};
use tokio::time::sleep;

use super::pauses::Pauses;
use super::refusal::Refusal;
use super::slot::{AtEnd, Entered, Slot};
use crate::lock::{BoxFuture, Kept, SharedLock};

/// What a layer gives to the run of a request.
pub(crate) struct Terms {
    /// The name of the layer, for the log.
    pub(crate) layer: &'static str,
    /// `None`: the request has no key, so its transaction is a plain one.
    pub(crate) claim: Option<Claim>,
    /// `None`: the request runs without a lock.
    pub(crate) lock: Option<Arc<SharedLock>>,
    /// How long the run waits for another one.
    pub(crate) wait: Wait,
}

/// One run, and the slot of its transaction. Guards and handles of the handler share it.
pub(super) struct Run<D: Database> {
    database: D,
    terms: Terms,
    keeps_errors: AtomicBool,
    slot: Slot<D>,
}

/// A run as the layer sees it, which does not know the type of the database.
pub(crate) trait AnyRun: Send + Sync {
    /// Closes the slot, because the handler has answered.
    fn close(&self) -> AtEnd;

    /// Closes the slot if it is open, and drops the transaction, which rolls it back.
    fn abandon(&self);

    /// Rolls back. An error changes nothing, because the database rolls back when the connection ends.
    fn roll_back(self: Arc<Self>) -> BoxFuture<()>;

    /// Completes the claim and commits. `None`: nothing is remembered of the operation.
    ///
    /// If the handler has begun no transaction, and there is something to remember, it is recorded alone.
    fn commit(self: Arc<Self>, kept: Option<Kept>) -> BoxFuture<Result<(), Refusal>>;
}

impl<D: Database> Run<D> {
    pub(super) fn new(database: D, terms: Terms) -> Self {
        Self {
            database,
            terms,
            keeps_errors: AtomicBool::new(false),
            slot: Slot::new(),
        }
    }

    pub(super) fn layer(&self) -> &'static str {
        self.terms.layer
    }

    pub(super) fn has_key(&self) -> bool {
        self.terms.claim.is_some()
    }

    pub(super) fn keep_errors(&self) {
        self.keeps_errors.store(true, Ordering::Relaxed);
    }

    pub(super) fn put_back(&self, tx: Tx<D>) {
        self.slot.put_back(tx);
    }

    /// Lends the transaction to the handler, and begins it at the first call.
    pub(super) async fn begin(&self) -> Result<Tx<D>, Refusal> {
        let beginning = match self.slot.enter()? {
            Entered::Again(tx) => return Ok(tx),
            Entered::First(beginning) => beginning,
        };
        // Another request may have begun, and the claim would only refuse it after its effects outside of the database.
        let begun = match &self.terms.lock {
            Some(lock) if lock.is_lost() => Err(Refusal::NotDone),
            _ => self.claimed().await,
        };
        beginning.end(begun)
    }

    /// Begins a transaction and claims the operation in it. While another run has claimed it, it waits.
    async fn claimed(&self) -> Result<Tx<D>, Refusal> {
        let mut pauses = Pauses::of(self.terms.wait);
        loop {
            let Some(claim) = &self.terms.claim else {
                let begun = Tx::begin(&self.database).await;
                return begun.map_err(|error| self.failed(error));
            };
            let begun = Tx::begin_and_claim(&self.database, claim).await;
            let (tx, claimed) = begun.map_err(|error| self.failed(error))?;
            let refusal = match claimed {
                Claimed::Granted => return Ok(tx),
                Claimed::Recorded(found) => Refusal::Found(found),
                _ => Refusal::Busy,
            };
            // A run that waits holds no connection.
            roll_back(tx).await;
            match (refusal, pauses.next()) {
                (Refusal::Busy, Some(pause)) => sleep(pause).await,
                (refusal, _) => return Err(refusal),
            }
        }
    }

    async fn commit(&self, tx: Tx<D>, kept: Option<Kept>) -> Result<(), Refusal> {
        let committed = match (&self.terms.claim, &kept) {
            (Some(claim), Some(Kept::Answer(record, _))) => {
                tx.complete_and_commit(claim, Some(record)).await
            }
            (Some(claim), Some(Kept::Done(_))) => tx.complete_and_commit(claim, None).await,
            (Some(claim), None) => withdraw_and_commit(tx, claim).await,
            (None, _) => tx.commit().await,
        };
        match committed {
            Ok(()) => Ok(()),
            Err(error) if error.is_outcome_unknown() => self.settle(kept.is_some()).await,
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Finds out what became of a COMMIT that was not answered.
    async fn settle(&self, leaves_record: bool) -> Result<(), Refusal> {
        // Without a record, a granted claim says only that the transaction has ended.
        let (Some(claim), true) = (&self.terms.claim, leaves_record) else {
            return Err(Refusal::Unknown);
        };
        let settled = claim.settle(&self.database).await;
        let (became, answer) = match settled {
            Ok(Settled::Committed) => ("committed", Ok(())),
            Ok(Settled::Recorded(found)) => ("rolled back", Err(Refusal::Found(found))),
            Ok(Settled::RolledBack) => ("rolled back", Err(Refusal::NotDone)),
            Ok(_) => ("open", Err(Refusal::Unknown)),
            Err(error) => {
                self.log(&error);
                ("unknown", Err(Refusal::Unknown))
            }
        };
        tracing::warn!(
            layer = self.terms.layer,
            became,
            "a COMMIT was not answered, so a claim has found out what became of it"
        );
        answer
    }

    fn failed(&self, error: Error) -> Refusal {
        self.log(&error);
        Refusal::Failed(error)
    }

    fn log(&self, error: &Error) {
        log_failure(self.terms.layer, error);
    }
}

impl<D: Database> AnyRun for Run<D> {
    fn close(&self) -> AtEnd {
        self.slot.close(self.keeps_errors.load(Ordering::Relaxed))
    }

    fn abandon(&self) {
        drop(self.slot.take());
    }

    fn roll_back(self: Arc<Self>) -> BoxFuture<()> {
        Box::pin(async move {
            if let Some(tx) = self.slot.take() {
                roll_back(tx).await;
            }
        })
    }

    fn commit(self: Arc<Self>, kept: Option<Kept>) -> BoxFuture<Result<(), Refusal>> {
        Box::pin(async move {
            let tx = match (self.slot.take(), self.has_key() && kept.is_some()) {
                (Some(tx), _) => tx,
                (None, true) => self.claimed().await?,
                (None, false) => return Ok(()),
            };
            Run::commit(&self, tx, kept).await
        })
    }
}

async fn withdraw_and_commit<D: Database>(mut tx: Tx<D>, claim: &Claim) -> Result<(), Error> {
    if let Err(error) = tx.withdraw(claim).await {
        roll_back(tx).await;
        return Err(error);
    }
    tx.commit().await
}

async fn roll_back<D: Database>(tx: Tx<D>) {
    if let Err(error) = tx.rollback().await {
        tracing::debug!(%error, "a rollback was not answered");
    }
}

/// Writes an error of the database into the log, with that of the driver.
pub(crate) fn log_failure(layer: &'static str, error: &Error) {
    let code = error.code();
    let driver = error.source().map(tracing::field::display);
    match error.kind() {
        ErrorKind::Unavailable => tracing::warn!(
            layer,
            code,
            %error,
            driver,
            "the database of a lock layer has not carried out the transaction of a request"
        ),
        _ => tracing::error!(
            layer,
            code,
            %error,
            driver,
            "the database of a lock layer refuses the transaction of a request"
        ),
    }
}
