//! Keeping a held lock for work that outlives its guard or its body.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use crate::api::handle::LockHandle;

impl LockHandle {
    /// Keeps the lock until the returned value is dropped, for work that outlives the guard or the body.
    ///
    /// A body is dropped with its future: by a client that disconnects, a timeout, a `select!`. Work that it has started
    /// on another thread (`spawn_blocking`) or in another task goes on, and needs the lock to its end. So move the value
    /// into that work. The [guide](https://docs.rs/lock-core/latest/lock_core/guide/blocking/) shows when.
    ///
    /// * While a value exists, the keeper renews the lock, no waiter of any process gets it, and
    ///   [`drain`](crate::LockManager::drain) waits. A request that switched renewals off keeps them off.
    /// * Guard and body may end before, in any way. The lock's end is then put off until the last value is dropped, and
    ///   the background sends the release. Cooldown, record and the like begin at that time.
    /// * [`release`](crate::LockGuard::release) waits for the last value, and with it a `run` or a `#[distributed_lock]`
    ///   function whose body has ended. With `release = background` they do not wait.
    /// * A lost lock (`max_hold` included) is kept by no value, and no thread can be stopped from outside. Long work checks
    ///   [`is_valid`](Self::is_valid) between its steps, and a resource checks the [`fencing_token`](Self::fencing_token).
    /// * A [`ticket`](Self::ticket) and a [`downgrade`](crate::LockGuard::downgrade) are `Invalid` while a value exists.
    ///
    /// After the end of the lock the value has no effect, and its `is_valid` returns `false`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// # fn write(_: u64) {}
    /// let guard = locks.lock("stock:4711").acquire().await?;
    /// let kept = guard.keep();
    /// let work = tokio::task::spawn_blocking(move || {
    ///     write(kept.fencing_token().get());
    ///     // `kept` is dropped here, after the work.
    /// });
    /// drop(guard); // The lock stays held until the thread is done.
    /// work.await?;
    /// # locks.drain(std::time::Duration::from_secs(5)).await;
    /// # Ok(()) }
    /// ```
    pub fn keep(&self) -> KeptLock {
        let engine = &self.engine;
        engine.keeper.guard_made();
        KeptLock {
            counts: self.lease.keep(),
            turn: self.taken.upgrade(),
            lock: self.clone(),
        }
    }
}

/// Keeps a lock until it is dropped; returned by [`LockHandle::keep`].
///
/// It is a [`LockHandle`]: `fencing_token`, `is_valid`, `lost` and the other methods are those of the lock. Each clone
/// keeps the lock too. A drop never blocks, does no I/O and cannot panic, on a thread of a runtime or on another one.
///
/// A closure takes only the values that it names. `move || write()` does not take the lock along, and neither does
/// `let _ = kept;` in it. `let _kept = kept;` does, and so does each call of one of its methods.
#[must_use = "the lock is kept as long as this value exists; move it into the work, bound to a name and not to `_`"]
pub struct KeptLock {
    lock: LockHandle,
    /// Whether the lease counts this value. It does not after its end.
    counts: bool,
    /// The turn of the nested body that called `keep`, so that no other one enters before the work has ended.
    turn: Option<Arc<OwnedSemaphorePermit>>,
}

impl Clone for KeptLock {
    fn clone(&self) -> Self {
        let mut clone = self.lock.keep();
        // The nested body may have ended, and its handle then finds no turn.
        clone.turn.clone_from(&self.turn);
        clone
    }
}

impl Deref for KeptLock {
    type Target = LockHandle;

    fn deref(&self) -> &LockHandle {
        &self.lock
    }
}

impl Drop for KeptLock {
    fn drop(&mut self) {
        let engine = &self.lock.engine;
        if self.counts && self.lock.lease.let_go() {
            engine.end_in_background(&self.lock.lease);
        }
        engine.keeper.guard_ended();
    }
}

impl fmt::Debug for KeptLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptLock")
            .field("lock", &self.lock)
            .finish_non_exhaustive()
    }
}
