//! Keeping the lock of a request for work that its handler does not wait for.

use std::fmt;
use std::iter::successors;
use std::ops::Deref;

use lock_core::{Error, KeptLock};

use super::LockContext;

/// The lock of a request that is not released while this value lives.
///
/// [`LockContext::keep`] makes it. It dereferences to the context, so the work can ask
/// [`is_valid`](LockContext::is_valid) and [`fencing_token`](LockContext::fencing_token) between two steps. It can be
/// dropped on any thread.
#[must_use = "the lock is kept only until this value is dropped; move it into the work"]
pub struct KeptContext {
    context: LockContext,
    /// The locks of the innermost layer first, and of each layer the fallback's last.
    locks: Vec<KeptLock>,
}

impl LockContext {
    /// Keeps the lock until the returned value is dropped, even if the request ends before.
    ///
    /// It is for work that the handler does not wait for, on a blocking thread or in a task: the handler may answer 202,
    /// be dropped by a timeout, or panic. Duplicates are refused with 409 until the work has ended. The cooldown of the
    /// response begins then, and the answer for replays is stored then.
    /// [`LockHandle::keep`](lock_core::LockHandle::keep) has the rules. Behind several lock layers, the locks of all of
    /// them are kept. At shutdown, [`LockManager::drain`](lock_core::LockManager::drain) waits for the work, and
    /// [`LockLayer::in_flight`](crate::LockLayer::in_flight) does not.
    ///
    /// If the request [has no lock](Self::is_locked), the value keeps nothing.
    ///
    /// # Errors
    ///
    /// `Lost`: the lock was lost, or the request or [`release_now`](Self::release_now) has released it before. Do not
    /// begin the work.
    ///
    /// # Examples
    ///
    /// ```
    /// use http::StatusCode;
    /// use lock_tower::LockContext;
    ///
    /// # fn make_report(fence: Option<lock_core::FencingToken>) {}
    /// async fn order_report(lock: LockContext) -> Result<StatusCode, lock_core::Error> {
    ///     let kept = lock.keep()?;
    ///     std::thread::spawn(move || {
    ///         make_report(kept.fencing_token());
    ///         drop(kept); // the lock is released from here on
    ///     });
    ///     Ok(StatusCode::ACCEPTED)
    /// }
    /// # let _ = order_report;
    /// ```
    pub fn keep(&self) -> Result<KeptContext, Error> {
        let mut locks = Vec::new();
        let innermost = self.lock.as_deref().or(self.outer.as_deref());
        for shared in successors(innermost, |shared| shared.outer()) {
            shared.keep_locks(&mut locks)?;
        }
        Ok(KeptContext {
            context: self.clone(),
            locks,
        })
    }
}

impl Deref for KeptContext {
    type Target = LockContext;

    fn deref(&self) -> &LockContext {
        &self.context
    }
}

impl fmt::Debug for KeptContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptContext")
            .field("locks", &self.locks)
            .finish_non_exhaustive()
    }
}
