//! Going on as a reader under a lock.

use std::sync::Arc;
use std::time::Duration;

use crate::api::guard::LockGuard;
use crate::base::error::Error;
use crate::engine::acquired::{Acquired, Collected};

impl LockGuard {
    /// Goes on as a [reader](crate::LockRequest::read), so that other readers may enter.
    ///
    /// No other owner comes between: the store replaces the lock by the reader's share in one step. The guard that is
    /// returned has the same key, ttl and [fencing token](crate::LockHandle::fencing_token). Handles to the lock of
    /// before say that it is not held any more. A cooldown and a record do not travel, and `max_hold` counts anew.
    ///
    /// There is no way back: to become a writer again, release the reader and acquire the lock. Two readers that both
    /// waited for the other one to leave would wait for ever.
    ///
    /// # Errors
    ///
    /// * `Lost`: the lock was lost before.
    /// * `Unavailable`, `Misconfigured`: the store did not confirm it. The background gives the lock back.
    /// * `Invalid`: the lock is a reader's or a permit already; it has several keys; a call that has
    ///   [entered](crate::LockHandle::scope) it still runs, or it is [kept](crate::LockHandle::keep); or the locks are on several servers (`redlock://`). The lock
    ///   is released.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the background gives the lock back.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// let writer = locks.lock("catalogue").acquire().await?;
    /// let fence = writer.fencing_token(); // … write …
    /// let reader = writer.downgrade().await?;
    /// assert_eq!(reader.fencing_token(), fence);
    /// let other = locks.lock("catalogue").read().acquire().await?; // … and read beside others
    /// # drop((reader, other)); Ok(()) }
    /// ```
    pub async fn downgrade(self) -> Result<LockGuard, Error> {
        let engine = Arc::clone(&self.engine);
        let share = engine.downgrade(&self.lease).await;
        let share = share.map_err(|error| error.with_key(&self.lease.key))?;
        let acquired = Acquired::FromSwap(Collected::of(&engine, &share));
        let reader = LockGuard::new(&engine, acquired, Duration::ZERO);
        engine.let_in_readers(&reader.lease).await;
        Ok(reader)
    }
}
