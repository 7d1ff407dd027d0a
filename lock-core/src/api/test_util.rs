//! Test tools (feature `test-util`): an embedded store that fails on command, and a manual clock.
//!
//! # Examples
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
//! use std::time::Duration;
//! use lock_core::{ErrorKind, LockManager};
//!
//! let locks = LockManager::in_memory();
//! let store = locks.test_store().expect("an embedded store");
//!
//! store.seize("order:42", Duration::from_secs(5)); // another user clicks first
//! let error = locks.lock("order:42").acquire().await.unwrap_err();
//! assert!(error.is_busy());
//!
//! store.fail(ErrorKind::Unavailable); // Redis is down
//! let error = locks.lock("order:43").acquire().await.unwrap_err();
//! assert!(error.is_unavailable());
//! # Ok(()) }
//! ```

use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Error, ErrorKind};
use crate::store::MemoryStore;

pub use crate::base::manual_clock::ManualClock;

/// Controls the embedded store of a manager.
///
/// [`LockManager::test_store`](crate::LockManager::test_store) returns it.
#[derive(Clone, Debug)]
pub struct TestStore {
    pub(crate) store: Arc<MemoryStore>,
}

impl TestStore {
    /// Gives the key to a foreign owner for `ttl`, even if the key is held.
    ///
    /// An owner in this process loses the key and notices that at its next renewal.
    pub fn seize(&self, key: &str, ttl: Duration) {
        self.store.seize(key, ttl);
    }

    /// Deletes the key from the store, like a `DEL` from outside.
    ///
    /// The owner notices the loss at its next renewal. The method returns `false` if the key was
    /// free.
    #[expect(clippy::must_use_candidate, reason = "called for what it does")]
    pub fn lose(&self, key: &str) -> bool {
        self.store.delete(key)
    }

    /// Makes every operation fail from now on.
    ///
    /// With `Unavailable` the store behaves like a server that is down, and with `Misconfigured`
    /// like a server that refuses this user. Held locks are lost when their leases expire.
    ///
    /// # Panics
    ///
    /// Panics for any other kind, because a store never returns it.
    pub fn fail(&self, kind: ErrorKind) {
        assert!(
            matches!(kind, ErrorKind::Unavailable | ErrorKind::Misconfigured),
            "a store fails with Unavailable or Misconfigured, not with {kind:?}"
        );
        let message = "the embedded store fails because a test commanded it";
        let error = match kind {
            ErrorKind::Unavailable => Error::unavailable(message),
            kind => Error::new(kind, message),
        };
        self.store.set_fault(Some(error.into()));
    }

    /// Answers no operation from now on, like a server that is stopped.
    ///
    /// A caller waits until its timeout. An operation that the caller gave up is never executed.
    pub fn hang(&self) {
        self.store.set_hung(true);
    }

    /// Ends [`fail`](Self::fail) and [`hang`](Self::hang), so that pending operations get an
    /// answer.
    pub fn recover(&self) {
        self.store.set_fault(None);
        self.store.set_hung(false);
    }

    /// Returns the number of keys that are held or cooling down.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.store.counts().0
    }

    /// Returns the number of waiters in the store's queues.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.store.counts().1
    }
}
