//! Reports of a manager: the locks that it holds, and the rest after a drain.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::base::fence::FencingToken;

/// A lock that this process holds, as [`LockManager::held`](crate::LockManager::held) lists it.
#[derive(Clone)]
pub struct HeldLock {
    pub(crate) key: Arc<str>,
    pub(crate) remaining: Duration,
    pub(crate) held_for: Duration,
    pub(crate) fencing_token: FencingToken,
}

impl HeldLock {
    /// Returns the key as it was requested.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns how long the lock stays valid without another renewal.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.remaining
    }

    /// Returns how long the lock has been held.
    #[must_use]
    pub fn held_for(&self) -> Duration {
        self.held_for
    }

    /// Returns the fencing token of the lock.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.fencing_token
    }
}

impl fmt::Debug for HeldLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldLock")
            .field("remaining", &self.remaining)
            .field("held_for", &self.held_for)
            .finish_non_exhaustive()
    }
}

/// Counts the work that was left when [`LockManager::drain`](crate::LockManager::drain) returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    pub(crate) held: usize,
    pub(crate) releasing: usize,
}

impl Drained {
    /// Returns the number of guards, of bodies under a lock, and of [kept](crate::KeptLock) locks that have not ended.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns the number of unconfirmed releases, and of acquires that must still be undone.
    #[must_use]
    pub fn releasing(&self) -> usize {
        self.releasing
    }

    /// Returns whether nothing was left.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.held == 0 && self.releasing == 0
    }
}
