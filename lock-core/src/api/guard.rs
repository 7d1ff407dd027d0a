//! The guard that owns a held lock.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tracing::{Instrument, Span};

use crate::api::handle::LockHandle;
use crate::base::error::Error;
use crate::base::options::cooldown_millis;
use crate::base::telemetry;
use crate::engine::Engine;
use crate::engine::acquired::Acquired;
use crate::engine::ending::Ended;
use crate::engine::reentry::Level;

/// Owns a held lock until the guard is released or dropped.
///
/// The keeper renews the lock until then, unless the request switched that off. Dropping a guard
/// never blocks, does no I/O and cannot panic, inside a runtime or outside, because the background
/// sends the release. [`release`](LockGuard::release) waits for the store's answer. Work on another
/// thread can [keep](LockHandle::keep) the lock beyond its guard.
#[doc(alias = "owner")]
#[doc(alias = "MutexGuard")]
#[must_use = "the lock is released as soon as the guard is dropped; bind it to a name, not to `_`"]
pub struct LockGuard {
    handle: LockHandle,
    /// The request's cooldown, which a release applies and a drop does not.
    ///
    /// A cooldown is for work that was done. A release says so, and a drop does not.
    cooldown_millis: u32,
    /// The span `lock.hold`, if it is enabled. It is boxed, because a process may hold very many
    /// guards.
    span: Option<Box<Span>>,
    ended: bool,
}

impl LockGuard {
    pub(crate) fn new(engine: &Arc<Engine>, acquired: Acquired, cooldown: Duration) -> Self {
        let span = tracing::debug_span!(
            "lock.hold",
            held_ms = tracing::field::Empty,
            outcome = tracing::field::Empty
        );
        engine.keeper.guard_made();
        let lease = Arc::clone(acquired.lease());
        acquired.settle();
        telemetry::owner_begins();
        Self {
            handle: LockHandle {
                engine: Arc::clone(engine),
                lease,
                turn: None,
                taken: Weak::<()>::new(),
            },
            cooldown_millis: cooldown_millis(cooldown),
            span: (!span.is_disabled()).then(|| Box::new(span)),
            ended: false,
        }
    }

    /// Returns a handle that may outlive the guard.
    #[must_use]
    pub fn handle(&self) -> LockHandle {
        self.handle.clone()
    }

    /// Returns the reentry level of a body under this lock.
    pub(crate) fn level(&self) -> Arc<Level> {
        Level::open(&self.handle.engine, &self.handle.lease, None)
    }

    /// Drops the request's cooldown, because the work failed.
    pub(crate) fn forget_cooldown(&mut self) {
        self.cooldown_millis = 0;
    }

    /// Enters the span `lock.hold`, if it is enabled.
    pub(crate) fn enter_span(&self) -> Option<tracing::span::Entered<'_>> {
        self.span.as_ref().map(|span| span.enter())
    }

    /// Applies the request's cooldown, because the work is done.
    fn work_is_done(&self) {
        let cooldown = Duration::from_millis(u64::from(self.cooldown_millis));
        for lease in self.handle.lease.members() {
            lease.set_cooldown(cooldown);
        }
    }

    /// Releases the lock and waits for the store's answer.
    ///
    /// The work is done when this method is called. So log its error, and do not fail the request.
    ///
    /// While a [`KeptLock`](crate::KeptLock) exists, or a call that has [entered](LockHandle::scope) the lock runs, the
    /// method returns at once. The background then releases the lock behind the last of them.
    ///
    /// # Errors
    ///
    /// * `Lost`: the lock was lost before this call. Another owner may have worked at the same
    ///   time.
    /// * `Unavailable`: the store did not answer. The release continues in the background, and the
    ///   key expires after its ttl at the latest.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing, because the release continues in the background. A future that is neither
    /// polled nor dropped may leave the key taken until its ttl is over.
    #[doc(alias = "unlock")]
    pub async fn release(self) -> Result<(), Error> {
        let lease = Arc::clone(&self.handle.lease);
        let patience = self.handle.engine.operation_timeout;
        let released = self.release_within(patience).await;
        released.unwrap_or_else(|| {
            Err(Error::unavailable(
                "the release was not confirmed; it continues in the background, and the key expires after its ttl",
            )
            .with_key(&lease.key))
        })
    }

    /// Releases the lock, and waits at most `timeout` for the store's answer.
    ///
    /// It returns `None` if the store has not answered by then. The release goes on in the background.
    /// [`release`](Self::release) waits longer.
    ///
    /// # Errors
    ///
    /// * `Lost`: the lock was lost before this call; another owner may have worked at the same time.
    /// * `Misconfigured`: the store refuses the release; the background repeats it until the ttl is over.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing, because the release goes on in the background.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use std::time::Duration;
    ///
    /// let guard = locks.lock("order:42").acquire().await?;
    /// let released = guard.release_within(Duration::from_millis(250)).await;
    /// assert!(matches!(released, Some(Ok(()))));
    /// # Ok(()) }
    /// ```
    pub async fn release_within(self, timeout: Duration) -> Option<Result<(), Error>> {
        let span = tracing::debug_span!("lock.release", outcome = tracing::field::Empty);
        if span.is_disabled() {
            return self.give_back(timeout).await;
        }
        // The future is boxed, so that it costs nothing while the span is disabled.
        let released = Box::pin(self.give_back(timeout).instrument(span.clone())).await;
        let outcome = match &released {
            Some(Ok(())) => "released",
            Some(Err(error)) => error.code(),
            None => "unconfirmed",
        };
        span.record("outcome", outcome);
        released
    }

    /// Releases the lock without waiting for the store.
    ///
    /// The release is sent, and repeated if needed, in the background. Unlike a drop, this method
    /// means that the work is done, so the request's `cooldown` applies.
    pub fn release_in_background(mut self) {
        self.work_is_done();
        let ended = self.end();
        self.handle.engine.tell_deferred(ended);
    }

    async fn give_back(mut self, patience: Duration) -> Option<Result<(), Error>> {
        self.work_is_done();
        let ended = self.end();
        let LockHandle { engine, lease, .. } = &self.handle;
        engine.tell_now(lease, ended, patience).await
    }

    /// Ends the ownership in this process; the caller tells the store.
    fn end(&mut self) -> (Ended, Vec<Ended>) {
        self.ended = true;
        telemetry::owner_ends(|| self.handle.lease.held_for());
        let ended = self.handle.engine.end(&self.handle.lease);
        if let Some(span) = &self.span {
            let held_for = self.handle.lease.held_for();
            span.record("held_ms", held_for.as_secs_f64() * 1e3);
            let lost = matches!(ended.0, Ended::Lost(..));
            span.record("outcome", if lost { "lost" } else { "released" });
        }
        ended
    }
}

impl Deref for LockGuard {
    type Target = LockHandle;

    fn deref(&self) -> &LockHandle {
        &self.handle
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if !self.ended {
            let ended = self.end();
            self.handle.engine.tell_later(ended);
        }
        // This comes last, because `drain` waits for it. By now, an awaited release that was
        // dropped is a cleanup, and an answered release is done.
        self.handle.engine.keeper.guard_ended();
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("handle", &self.handle)
            .finish()
    }
}
