//! For tests (feature `test-util`): an embedded store that misbehaves on command, and a clock that
//! stands still until it is moved.
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
//! store.seize("order:42", Duration::from_secs(5)); // somebody else clicks first
//! let error = locks.lock("order:42").acquire().await.unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::Busy);
//!
//! store.fail(ErrorKind::Unavailable); // Redis is down
//! let error = locks.lock("order:43").acquire().await.unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::Unavailable);
//! # Ok(()) }
//! ```

use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Error, ErrorKind};
use crate::store::{Failure, MemoryStore};

pub use crate::base::manual_clock::ManualClock;

/// The embedded store of a manager, to command: see [`LockManager::test_store`](crate::LockManager::test_store).
#[derive(Clone, Debug)]
pub struct TestStore {
    pub(crate) store: Arc<MemoryStore>,
}

impl TestStore {
    /// A stranger takes the key, for `ttl`, whoever holds it: an owner of this process loses it and
    /// finds out at its next renewal.
    pub fn seize(&self, key: &str, ttl: Duration) {
        self.store.seize(key, ttl);
    }

    /// The key disappears from the store, as by a `DEL` from outside: its owner finds out at its
    /// next renewal. `false` if nobody held it.
    #[expect(clippy::must_use_candidate, reason = "called for what it does")]
    pub fn lose(&self, key: &str) -> bool {
        self.store.delete(key)
    }

    /// From here on every operation fails: with `Unavailable` as if the server were down, with
    /// `Misconfigured` as if it refused this user. Held locks are lost when their leases run out.
    ///
    /// # Panics
    ///
    /// For any other kind: a store never answers those.
    pub fn fail(&self, kind: ErrorKind) {
        assert!(
            matches!(kind, ErrorKind::Unavailable | ErrorKind::Misconfigured),
            "a store fails with Unavailable or Misconfigured, not with {kind:?}"
        );
        let message = "the embedded store fails on a test's command";
        let error = match kind {
            ErrorKind::Unavailable => Error::unavailable(message),
            kind => Error::new(kind, message),
        };
        self.store.set_fault(Some(Failure {
            error,
            ambiguous: false,
        }));
    }

    /// From here on no operation is answered, as if the server were stopped: whoever asks waits for
    /// as long as it has the patience, and a question that was given up is never asked.
    pub fn hang(&self) {
        self.store.set_hung(true);
    }

    /// Ends [`fail`](Self::fail) and [`hang`](Self::hang): what still waits for an answer gets one.
    pub fn recover(&self) {
        self.store.set_fault(None);
        self.store.set_hung(false);
    }

    /// How many keys are taken, held or cooling down.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.store.counts().0
    }

    /// How many waiters stand in the store's queues.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.store.counts().1
    }
}
