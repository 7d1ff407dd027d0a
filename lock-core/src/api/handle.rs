//! A non-owning handle to a held lock.

use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use crate::active::{ActiveLease, Turn};
use crate::base::acks::Acks;
use crate::base::fence::FencingToken;
use crate::base::options::checked_cooldown;
use crate::engine::Engine;
use crate::engine::loss_watch::LossWatch;
use crate::engine::reentry::{Entry, LockScope};

/// A non-owning handle to a held lock.
///
/// A body gets such a handle. It can be cloned and sent to other tasks. After the lock was released
/// or lost, the handle reports that. A handle does not keep the lock; [`keep`](Self::keep) does.
#[derive(Clone)]
pub struct LockHandle {
    pub(crate) engine: Arc<Engine>,
    pub(crate) lease: Arc<ActiveLease>,
    /// Admits one nested body at a time; `None` for the owner's handle.
    pub(super) turn: Option<Turn>,
    /// The turn that the nested body has taken, for as long as it runs. Its type is hidden, because clippy would take a
    /// handle for a guard and advise its users to drop it early.
    pub(super) taken: Weak<dyn Send + Sync>,
}

impl LockHandle {
    /// Returns the number that a resource can check: see [`FencingToken`].
    #[must_use]
    #[doc(alias = "token")]
    pub fn fencing_token(&self) -> FencingToken {
        self.lease
            .fence()
            .expect("a lock that was granted has a fencing token")
    }

    /// Returns how long the lock stays valid without another renewal.
    ///
    /// The result is zero once the lock is lost or released. Of a lock of several keys, the first key that would run out
    /// counts.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.lease.remaining_of_all()
    }

    /// Returns how long ago the lock was granted, by the manager's clock.
    ///
    /// The time keeps counting after the lock was released or lost.
    #[must_use]
    pub fn held_for(&self) -> Duration {
        self.lease.held_for()
    }

    /// Returns whether the lock is held at this moment.
    ///
    /// The method reads the clock. So if the process was paused for longer than the ttl, the first
    /// call returns `false`.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.engine.is_valid(&self.lease)
    }

    /// Returns how many servers hold the lock, by their last answers.
    ///
    /// Over several servers (`redlock://…`), the result shows how many of them may still forget the
    /// lock. On a single server it is 1 of 1. Of several keys, the one with the fewest servers counts. Once the lock is lost or released, no server counts.
    /// The method does no I/O.
    #[must_use]
    pub fn acks(&self) -> Acks {
        let acks = self
            .lease
            .members()
            .map(|lease| self.engine.store.acks(lease.token));
        let fewest = acks.min_by_key(|acks| acks.granted());
        let acks = fewest.unwrap_or(Acks::ONE_OF_ONE);
        if self.is_valid() {
            acks
        } else {
            Acks::new(0, acks.of())
        }
    }

    /// Waits until the lock is lost.
    ///
    /// The future never resolves if the lock is released first.
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
    ///     () = guard.lost() => return Ok(()), // another process may import now
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

    /// Returns the key as it was requested.
    ///
    /// Of several keys it is the first in the order of their bytes; [`keys`](Self::keys) lists all.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.lease.key
    }

    /// Lists the keys of the lock: one, or those of [`lock_all`](crate::LockManager::lock_all) in the order of their bytes,
    /// each once.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// let guard = locks.lock_all(["account:9", "account:7", "account:9"]).acquire().await?;
    /// assert_eq!(guard.keys().collect::<Vec<_>>(), ["account:7", "account:9"]);
    /// # guard.release().await }
    /// ```
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.lease.members().map(|lease| &*lease.key)
    }

    /// Returns whether other owners may have the key beside this one.
    ///
    /// That is so for a [reader](crate::LockRequest::read) and for a [permit](crate::LockRequest::permits).
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.lease.token.share().is_some()
    }

    /// Keeps the key taken for `cooldown` after the release.
    ///
    /// So a click that follows a fast answer is refused too. The longest of several calls counts,
    /// up to a day. The request's `cooldown` counts only after work that succeeded. This one counts
    /// after every release, that of a dropped guard included.
    ///
    /// A request refuses a cooldown beyond the manager's
    /// [`max_ttl`](crate::ManagerBuilder::max_ttl). This method cannot refuse it any more, so it
    /// cuts the cooldown to `max_ttl` and logs a warning. A reader or a permit has no cooldown; the method then only
    /// logs a warning.
    pub fn cooldown(&self, cooldown: Duration) {
        if self.is_shared() {
            if !cooldown.is_zero() {
                tracing::warn!("a reader or a permit has no cooldown; the call has no effect");
            }
            return;
        }
        let max_ttl = self.engine.max_ttl;
        if let Err(error) = checked_cooldown(cooldown, max_ttl) {
            tracing::warn!(%error, "a cooldown was cut to the longest that the store can keep");
        }
        for lease in self.lease.members() {
            lease.set_cooldown(cooldown.min(max_ttl));
        }
    }

    /// Runs `future` inside this lock.
    ///
    /// In `future`, a `#[distributed_lock]` function, a [`run`](crate::LockRequest::run) or a
    /// `run_with` that asks the same manager for the same key enters the lock, instead of waiting
    /// for it in vain. It gets this very lock, with its fencing token.
    ///
    /// The bodies of those calls, and the handlers of the layer, run inside their lock already.
    /// This method is for work under a [`LockGuard`](crate::LockGuard), and for tasks, because a
    /// spawned task is not inside the lock by itself.
    ///
    /// * One body runs at a time. Bodies that enter from two branches of a `join!`, or from two
    ///   tasks, exclude each other, and [`wait`](crate::LockRequest::wait) limits how long they
    ///   wait.
    /// * [`acquire`](crate::LockRequest::acquire) never enters a lock.
    /// * Once the lock is lost, no body enters it (`Lost`). Once the lock was released, code in
    ///   `future` acquires it like any other caller. If the lock is released while a body that
    ///   entered from another task still runs, the release is sent when that body has ended.
    ///
    /// # Cancel safety
    ///
    /// This future is as cancel-safe as `future`.
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

    /// Creates the handle of a body inside the lock.
    pub(crate) fn inside(entry: &Entry) -> Self {
        Self {
            engine: Arc::clone(&entry.engine),
            lease: Arc::clone(&entry.lease),
            turn: Some(Arc::clone(&entry.turn)),
            taken: Arc::downgrade(&entry.taken) as _,
        }
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
