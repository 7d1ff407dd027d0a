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

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::Moment;
use crate::error::{Error, ErrorKind};
use crate::store::{Failure, MemoryStore};
use crate::sync::lock;

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

/// A clock that a test moves: give it to [`ManagerBuilder::clock`](crate::ManagerBuilder::clock).
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
/// use std::time::Duration;
/// use lock_core::{LockManager, Renew, test_util::ManualClock};
///
/// let clock = ManualClock::new();
/// let locks = LockManager::builder("memory:").clock(clock.clone()).connect().await?;
/// let guard = locks.lock("k").ttl(Duration::from_secs(10)).renew(Renew::Off).acquire().await?;
/// clock.advance(Duration::from_secs(10));
/// assert!(!guard.is_valid());
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct ManualClock(Arc<Shared>);

#[derive(Default)]
struct Shared {
    nanos: AtomicU64,
    bells: Mutex<Vec<Weak<Notify>>>,
}

impl ManualClock {
    /// A clock that stands still.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock; what is due by then happens now.
    pub fn advance(&self, span: Duration) {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        self.0.nanos.fetch_add(nanos, Ordering::SeqCst);
        lock(&self.0.bells).retain(|bell| {
            let bell = bell.upgrade();
            bell.iter().for_each(|bell| bell.notify_one());
            bell.is_some()
        });
    }

    pub(crate) fn now(&self) -> Moment {
        // An hour after the start, so that "before" has a meaning.
        Moment(self.0.nanos.load(Ordering::SeqCst)) + Duration::from_secs(3600)
    }

    pub(crate) fn ring_on_change(&self, bell: &Arc<Notify>) {
        lock(&self.0.bells).push(Arc::downgrade(bell));
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ManualClock").field(&self.now()).finish()
    }
}
