//! A look at a held lock, without owning it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::active::{ActiveLease, Turn};
use crate::base::acks::Acks;
use crate::base::error::Error;
use crate::base::fence::FencingToken;
use crate::base::options::checked_cooldown;
use crate::engine::Engine;
use crate::engine::loss_watch::LossWatch;
use crate::engine::reentry::{Entry, LockScope};
use crate::lease::Loss;

/// A look at a held lock, without owning it: what a body gets, and what may be cloned and sent
/// anywhere. After the lock was released or lost it says so.
#[derive(Clone)]
pub struct LockHandle {
    pub(crate) engine: Arc<Engine>,
    pub(crate) lease: Arc<ActiveLease>,
    /// Whose turn it is inside the body that has entered the lock; `None`: the owner's handle.
    turn: Option<Turn>,
}

impl LockHandle {
    /// The number that a resource can check: see [`FencingToken`].
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.lease
            .fence()
            .expect("a handle is made when the lock is granted, with its fencing token")
    }

    /// How long the lock stays valid if it is never renewed again; zero once it is lost or released.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.lease.remaining()
    }

    /// How long ago the lock was granted, by the manager's clock; also after it was released or lost.
    #[must_use]
    pub fn held_for(&self) -> Duration {
        self.lease.held_for()
    }

    /// Whether the lock is held at this very moment. Reads the clock: after the process was stopped
    /// for longer than the ttl, the first call says `false`.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.engine.is_valid(&self.lease)
    }

    /// How many servers hold the lock, of how many, by their last word: over several (`redlock://…`)
    /// it says how many of them may still forget it; on one it is 1 of 1. None of them, once it is
    /// lost or released. No I/O.
    #[must_use]
    pub fn acks(&self) -> Acks {
        let acks = self.engine.store.acks(self.lease.token);
        if self.is_valid() {
            acks
        } else {
            Acks::new(0, acks.of())
        }
    }

    /// Resolves when the lock is lost; never, if it is released first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// # async fn next_page() {}
    /// let guard = locks.lock("import").acquire().await?;
    /// tokio::select! {
    ///     () = next_page() => {}
    ///     () = guard.lost() => return Ok(()), // somebody else imports now
    /// }
    /// guard.release().await
    /// # }
    /// ```
    pub async fn lost(&self) {
        let mut watch = LossWatch::new(&self.engine, &self.lease);
        poll_fn(|context| match watch.poll_lost(context) {
            Some(_) => Poll::Ready(()),
            None => Poll::Pending,
        })
        .await;
    }

    /// The key, as it was asked for.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.lease.key
    }

    /// Keeps the key taken for `cooldown` after the release, so that the click that comes after a
    /// fast answer is refused too. The longest of several calls counts; a day at most. Unlike the
    /// request's `cooldown`, which is for work that succeeded, this one counts however the lock is
    /// given back, a dropped guard included.
    ///
    /// A cooldown beyond the manager's [`max_ttl`](crate::ManagerBuilder::max_ttl), which a request
    /// would refuse, comes too late to be refused here: it is cut to that, with a warning in the log.
    pub fn cooldown(&self, cooldown: Duration) {
        let max_ttl = self.engine.max_ttl;
        if let Err(error) = checked_cooldown(cooldown, max_ttl) {
            tracing::warn!(%error, "a cooldown was cut to the longest that the store can keep");
        }
        self.lease.set_cooldown(cooldown.min(max_ttl));
    }

    /// Runs `future` inside this lock: in it, a `#[distributed_lock]` function, a
    /// [`run`](crate::LockRequest::run) or `run_with` that asks the same manager for the same key
    /// enters the lock, instead of waiting for it in vain. What it gets is this very lock, with its
    /// fencing token.
    ///
    /// The bodies of those, and the handlers of the layer, run inside their lock already. This is
    /// for work under a [`LockGuard`](crate::LockGuard), and for tasks: a spawned task is not inside by itself.
    ///
    /// * One body at a time: those that enter from two branches of a `join!`, or from two tasks,
    ///   exclude each other as strangers do, and [`wait`](crate::LockRequest::wait) says for how
    ///   long.
    /// * [`acquire`](crate::LockRequest::acquire) never enters.
    /// * Once the lock is lost, nobody enters (`Lost`). Once it was given back, those inside are an
    ///   ordinary caller. If it is given back while a body that entered from another task still
    ///   runs, that happens when the body has ended.
    ///
    /// # Cancel safety
    ///
    /// As safe as `future` itself.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "macros")] mod example {
    /// # use lock_core::{distributed_lock, Error, LockHandle, LockManager};
    /// #[distributed_lock(key = "account:<id>", ttl = "10s", wait = "1s")]
    /// async fn book(id: u64, cents: i64) -> Result<(), Error> { Ok(()) }
    ///
    /// #[distributed_lock(key = "account:<id>", ttl = "10s", guard = lock)]
    /// async fn settle(id: u64) -> Result<(), Error> {
    ///     book(id, 250).await?; // enters
    ///     let lock = lock.clone();
    ///     let fee = tokio::spawn(async move { lock.scope(book(id, -3)).await }); // so does this
    ///     fee.await.expect("no panic")
    /// }
    /// # #[tokio::main(flavor = "current_thread")] pub async fn main() -> Result<(), Error> {
    /// # let locks = LockManager::in_memory();
    /// # locks.install()?;
    /// # settle(7).await
    /// # } }
    /// # #[cfg(feature = "macros")] fn main() { example::main().unwrap() }
    /// # #[cfg(not(feature = "macros"))] fn main() {}
    /// ```
    pub fn scope<F: Future>(&self, future: F) -> LockScope<F> {
        LockScope::new(future, &self.engine, &self.lease, self.turn.as_ref())
    }

    pub(crate) fn is_of(&self, engine: &Arc<Engine>) -> bool {
        Arc::ptr_eq(&self.engine, engine)
    }

    pub(crate) fn of_owner(engine: Arc<Engine>, lease: Arc<ActiveLease>) -> Self {
        Self {
            engine,
            lease,
            turn: None,
        }
    }

    /// That of a body inside the lock.
    pub(crate) fn inside(entry: &Entry) -> Self {
        Self {
            engine: Arc::clone(&entry.engine),
            lease: Arc::clone(&entry.lease),
            turn: Some(Arc::clone(&entry.turn)),
        }
    }

    /// Whether the lock is lost; the task is woken when it gets lost.
    pub(crate) fn poll_lost(
        &self,
        waker_id: &mut Option<u32>,
        context: &Context<'_>,
    ) -> Option<Loss> {
        self.engine.poll_lost(&self.lease, waker_id, context)
    }

    pub(crate) fn forget_waker(&self, waker_id: Option<u32>) {
        self.lease.forget_waker(waker_id);
    }

    pub(crate) fn loss_error(&self, loss: Loss) -> Error {
        self.lease.loss_error(loss)
    }
}

impl fmt::Debug for LockHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockHandle")
            .field("fencing_token", &self.lease.fence())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
