//! The keys of a request: one, or those of a layer with several templates.

use lock_core::{LockKey, LockManager, LockRequest};

/// The keys that one request locks together.
#[derive(Clone)]
pub(crate) enum RequestKeys {
    One(LockKey),
    /// In the order of their templates.
    All(Vec<LockKey>),
}

impl RequestKeys {
    /// Adds the keys of further templates, if the layer has any.
    pub(super) fn with(first: LockKey, others: Vec<LockKey>) -> Self {
        match others.is_empty() {
            true => Self::One(first),
            false => Self::All([vec![first], others].concat()),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &LockKey> {
        match self {
            RequestKeys::One(key) => std::slice::from_ref(key),
            RequestKeys::All(keys) => keys,
        }
        .iter()
    }

    /// Returns the key of the first template.
    pub(crate) fn into_first(self) -> LockKey {
        match self {
            RequestKeys::One(key) => key,
            RequestKeys::All(mut keys) => keys.swap_remove(0),
        }
    }

    pub(crate) fn request(self, locks: &LockManager) -> LockRequest {
        match self {
            RequestKeys::One(key) => locks.lock(key),
            RequestKeys::All(keys) => locks.lock_all(keys),
        }
    }
}
