//! What a manager has in hand: what it holds, and what was left when it was drained.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::base::fence::FencingToken;

/// One lock that this process holds: an entry of [`LockManager::held`](crate::LockManager::held).
#[derive(Clone)]
pub struct HeldLock {
    pub(crate) key: Arc<str>,
    pub(crate) remaining: Duration,
    pub(crate) held_for: Duration,
    pub(crate) fencing_token: FencingToken,
}

impl HeldLock {
    /// The key, as it was asked for.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How long it stays valid if it is never renewed again.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.remaining
    }

    /// How long it has been held.
    #[must_use]
    pub fn held_for(&self) -> Duration {
        self.held_for
    }

    /// Its fencing token.
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

/// What was left when [`LockManager::drain`](crate::LockManager::drain) returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    pub(crate) held: usize,
    pub(crate) releasing: usize,
}

impl Drained {
    /// Guards, and bodies under a lock, that have not ended.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// Releases that the store has not confirmed, and acquires that it has been asked for and that are still to
    /// be undone.
    #[must_use]
    pub fn releasing(&self) -> usize {
        self.releasing
    }

    /// Whether nothing was left.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.held == 0 && self.releasing == 0
    }
}
