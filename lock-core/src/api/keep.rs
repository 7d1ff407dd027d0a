//! Keeping a held lock for work that outlives its guard or its body.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::api::handle::LockHandle;
use crate::base::error::Error;
use crate::lease::Phase;

impl LockHandle {
    /// Keeps the lock until the returned value is dropped, for work that outlives the guard or the body.
    ///
    /// A body is dropped with its future: by a client that disconnects, a timeout, a `select!`. Work that it has started
    /// on another thread (`spawn_blocking`) or in another task goes on, and needs the lock to its end. So move the value
    /// into that work. The [guide](https://docs.rs/lock-core/latest/lock_core/guide/blocking/) shows when.
    ///
    /// While a value exists:
    ///
    /// * The keeper renews the lock, no waiter of any process gets it, and no further nested call enters where a nested
    ///   call has kept it. A request that switched renewals off keeps them off.
    /// * Each end of the guard or the body is put off: a release, a drop, an error, a panic.
    ///   [`release`](crate::LockGuard::release) returns at once and does not wait for the work. When the last value is
    ///   dropped, the background ends the lock as its owner has chosen. A cooldown begins then, and a
    ///   [record](Self::remember) is left then.
    /// * [`drain`](crate::LockManager::drain) waits, and [`held`](crate::LockManager::held) lists the lock.
    /// * A [`ticket`](Self::ticket) and a [`downgrade`](crate::LockGuard::downgrade) are `Invalid`.
    ///
    /// A kept lock can still be **lost**: its key was deleted, an operator freed it, [`max_hold`] is over, or no renewal
    /// succeeded for a ttl. A thread cannot be stopped from outside. So long work checks [`is_valid`](Self::is_valid)
    /// between its steps, and the resource checks the [`fencing_token`](Self::fencing_token). The key of a lost lock is
    /// not given back under the work, but it is not renewed either, so it runs out.
    ///
    /// [`max_hold`]: crate::LockRequest::max_hold
    ///
    /// # Errors
    ///
    /// `Lost`: the lock was lost, released or passed on before, or the nested call of this handle has ended. Do not begin
    /// the work.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// # fn write(_: u64) {}
    /// let guard = locks.lock("stock:4711").acquire().await?;
    /// let kept = guard.keep()?;
    /// let work = tokio::task::spawn_blocking(move || {
    ///     write(kept.fencing_token().into());
    ///     // `kept` is dropped here, after the work.
    /// });
    /// drop(guard); // The lock stays held until the thread is done.
    /// work.await?;
    /// # locks.drain(std::time::Duration::from_secs(5)).await;
    /// # Ok(()) }
    /// ```
    pub fn keep(&self) -> Result<KeptLock, Error> {
        let ended = || {
            let error = Error::lost(
                "the lock has ended, so it cannot be kept; call `keep` before its guard or body ends, and do not begin the work",
            );
            error.with_key(&self.lease.key)
        };
        let turn = match &self.turn {
            Some(_) => Some(self.taken.upgrade().ok_or_else(ended)?),
            None => None,
        };
        let engine = &self.engine;
        engine.phase(&self.lease);
        // Counted first, so that `drain` misses no work whose owner ends at this moment.
        engine.keeper.guard_made();
        let refused = match self.lease.keep() {
            Phase::Held => {
                return Ok(KeptLock {
                    lock: self.clone(),
                    _turn: turn,
                });
            }
            Phase::Lost(loss) => self.lease.loss_error(loss),
            Phase::Asking | Phase::Closed => ended(),
        };
        engine.keeper.guard_ended();
        Err(refused)
    }
}

/// Keeps a lock until it is dropped; returned by [`LockHandle::keep`].
///
/// It is a [`LockHandle`]: `fencing_token`, `is_valid`, `lost` and the other methods are those of the lock, and `keep`
/// makes another value. A drop never blocks, does no I/O and cannot panic, on a thread of a runtime or on another one.
///
/// A closure takes only the values that it names. `move || write()` does not take the lock along, and neither does
/// `let _ = kept;` in it. `let _kept = kept;` does, and so does each call of one of its methods.
#[must_use = "the lock is kept as long as this value exists; move it into the work, bound to a name and not to `_`"]
pub struct KeptLock {
    lock: LockHandle,
    /// The turn of the nested body that called `keep`. It ends behind the drop, as a field.
    _turn: Option<Arc<dyn Send + Sync>>,
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
        if self.lock.lease.let_go() {
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
