//! Records: the answer of an owner to those who come after it.

use std::sync::Arc;
use std::time::Duration;

use crate::api::handle::LockHandle;
use crate::api::manager::LockManager;
use crate::base::error::Error;
use crate::base::key::LockKey;
use crate::base::record::{Record, RecordOutcome};
use crate::engine::inquiry::error_of;
use crate::store::{Failure, Forgotten, Operation, Outcome, Release};

impl LockHandle {
    /// Leaves `record` in the key when this ownership ends.
    ///
    /// Every end of the ownership counts: a release, a drop, and the background's release. The store replaces the
    /// token of the lock by the record in one step, and only where the token still stands. From then on, each acquire
    /// of the key is refused with [`Busy`](crate::ErrorKind::Busy), and
    /// [`Error::record`](crate::Error::record) returns the record, until `lifetime` has passed or
    /// [`LockManager::forget`] is called. Callers that wait for the lock get this refusal at once.
    ///
    /// A lost lock leaves its record too if the store has given the key to no other owner. A later call replaces the
    /// record, and a record takes the place of a cooldown. Once the ownership has ended, the call has no effect.
    ///
    /// If the store has no memory for the record, the key stays taken for one more ttl, and is free after that.
    ///
    /// # Errors
    ///
    /// `Invalid` if the record is larger than [`MAX_RECORD`](crate::middleware::MAX_RECORD), or if `lifetime` is zero
    /// or longer than the manager's [`max_ttl`](crate::ManagerBuilder::max_ttl), for a lock of several keys, for a reader
    /// or a permit, and for a [`Tick`](crate::Tick) or a [`Leadership`](crate::Leadership).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use std::time::Duration;
    ///
    /// let guard = locks.lock("pay:42").acquire().await?;
    /// guard.remember("receipt 7", Duration::from_secs(3_600))?;
    /// guard.release().await?;
    ///
    /// let refused = locks.lock("pay:42").acquire().await.unwrap_err();
    /// assert_eq!(refused.record(), Some(&b"receipt 7"[..]));
    /// # Ok(()) }
    /// ```
    pub fn remember(&self, record: impl Into<Vec<u8>>, lifetime: Duration) -> Result<(), Error> {
        if !self.lease.followers().is_empty() {
            return Err(Error::invalid(
                "a lock of several keys leaves no record, because a record is the answer of one key; lock one key for it",
            ));
        }
        if self.is_shared() {
            return Err(Error::invalid(
                "a reader or a permit leaves no record, because other owners have the key beside it",
            ));
        }
        self.lease.role().check_record()?;
        let record = Record::checked(record.into(), lifetime, self.engine.max_ttl)?;
        self.lease.set_record(Some(record));
        Ok(())
    }

    /// Drops the record that [`remember`](Self::remember) has set, so that the lock is released without one.
    pub fn forget_record(&self) {
        self.lease.set_record(None);
    }

    /// Returns the store's answer to the record of this lock, or `None` if it has no record.
    ///
    /// Ask when the lock has ended, for example after
    /// [`release_within`](crate::LockGuard::release_within). The method does no I/O.
    #[must_use]
    pub fn record_outcome(&self) -> Option<RecordOutcome> {
        self.lease.record().map(|record| record.outcome())
    }
}

impl LockManager {
    /// Deletes the record or the cooldown of a key, so that the key is free.
    ///
    /// A lock that is held is never touched.
    ///
    /// If the connection breaks, the request is sent again, and the answer is that to the second one: `Nothing` or `Held`,
    /// although the first one has deleted the record.
    ///
    /// The request that stores a record may be sent twice, because its first connection is slow. If the first request arrives
    /// after this call, it stores the record again, for its lifetime.
    ///
    /// Over several servers, a server that is far behind may get the record of a release after this call, if another server
    /// failed during that release, or was slow.
    ///
    /// # Errors
    ///
    /// * `Unavailable`: the store gave no answer. The record may be deleted or not.
    /// * `Misconfigured`: the store refuses the request for good.
    /// * `Invalid`: the key is out of bounds.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the record may be deleted or not. Callers that wait for the key may then wait for up
    /// to 30 s.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use lock_core::middleware::Forgotten;
    /// use std::time::Duration;
    ///
    /// let guard = locks.lock("pay:42").acquire().await?;
    /// assert_eq!(locks.forget("pay:42").await?, Forgotten::Held);
    /// guard.remember("receipt 7", Duration::from_secs(3_600))?;
    /// guard.release().await?;
    /// assert_eq!(locks.forget("pay:42").await?, Forgotten::Yes);
    /// assert_eq!(locks.forget("pay:42").await?, Forgotten::Nothing);
    /// # Ok(()) }
    /// ```
    pub async fn forget(&self, key: impl Into<LockKey>) -> Result<Forgotten, Error> {
        let key = key.into().into_result()?;
        let engine = self.engine();
        let order = Operation::Forget(Arc::clone(&key));
        let forgotten = match engine.answer_to(order).await {
            Ok(Outcome::Forgotten(forgotten, _)) => forgotten,
            Ok(_) => return Err(error_of(Failure::not_understood(), &key)),
            Err(failure) => return Err(error_of(failure, &key)),
        };
        if forgotten == Forgotten::Yes {
            // The free key goes to the first waiter. If that fails, the waiters ask by themselves.
            let _ = engine
                .answer_to(Operation::Leave(Release {
                    token: engine
                        .tokens
                        .fresh_at(engine.tokens.manager(), engine.now()),
                    ttl: engine.defaults.0,
                    fence: None,
                    in_background: false,
                    key,
                }))
                .await;
        }
        Ok(forgotten)
    }
}
