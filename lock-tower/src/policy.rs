//! What a layer was told: which requests it locks, and how.

use std::fmt;
use std::time::Duration;

use http::Method;
use lock_core::{LockKey, LockManager, LockRequest, Wait};

use crate::key::NoKey;
use crate::rejection::Rejection;

/// What happens to a request from which no key can be made, because the header (or cookie, …) that
/// names its user is not there.
///
/// There is no third choice: one lock shared by all that do not say who they are would let any of
/// them stop all the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingKey {
    /// It is answered with 400 and the code `lock_key_missing`.
    #[default]
    Reject,
    /// It runs without a lock, and without a [`LockContext`](crate::LockContext).
    Pass,
}

/// Shared by a layer and all services made from it.
#[derive(Clone)]
pub(crate) struct Policy {
    pub(crate) locks: LockManager,
    pub(crate) methods: Vec<Method>,
    pub(crate) missing_key: MissingKey,
    pub(crate) ttl: Duration,
    pub(crate) wait: Wait,
    pub(crate) cooldown: Duration,
    pub(crate) acquire_timeout: Duration,
    pub(crate) release_timeout: Duration,
}

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Decision {
    Lock(LockKey),
    Pass,
    Refuse(Rejection),
}

impl Policy {
    pub(crate) fn new(locks: LockManager) -> Self {
        Self {
            locks,
            methods: vec![Method::POST, Method::PUT, Method::PATCH, Method::DELETE],
            missing_key: MissingKey::default(),
            ttl: Duration::from_secs(30),
            wait: Wait::None,
            cooldown: Duration::ZERO,
            acquire_timeout: Duration::from_millis(250),
            release_timeout: Duration::from_millis(250),
        }
    }

    pub(crate) fn locks_method(&self, method: &Method) -> bool {
        self.methods.contains(method)
    }

    /// What becomes of a request whose key is this, or that has none.
    pub(crate) fn decide(&self, key: Result<LockKey, NoKey>) -> Decision {
        match key {
            Ok(key) => Decision::Lock(key),
            Err(NoKey::Missing(_)) if self.missing_key == MissingKey::Pass => Decision::Pass,
            Err(no_key) => Decision::Refuse(Rejection::from(no_key)),
        }
    }

    /// Everything is said here, whatever the manager's defaults are.
    ///
    /// The cooldown is not: it depends on the handler's answer.
    pub(crate) fn request(&self, key: LockKey) -> LockRequest {
        self.locks
            .lock(key)
            .ttl(self.ttl)
            .wait(self.wait)
            .acquire_timeout(self.acquire_timeout)
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("locks", &self.locks)
            .field("methods", &self.methods)
            .field("missing_key", &self.missing_key)
            .field("ttl", &self.ttl)
            .field("wait", &self.wait)
            .field("cooldown", &self.cooldown)
            .field("acquire_timeout", &self.acquire_timeout)
            .field("release_timeout", &self.release_timeout)
            .finish_non_exhaustive()
    }
}
