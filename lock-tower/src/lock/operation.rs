//! The number of an operation, which is the same in every run of it.

use std::collections::BTreeSet;
use std::fmt;

use lock_core::{LockKey, LockManager};
use sha2::{Digest, Sha256};

use crate::key::RequestKeys;

/// Identifies the operation that a request asks for, however often it runs.
///
/// It is made from the key of the request and the namespace of the manager. Its text has 32
/// hexadecimal digits, which the type `uuid` of a database accepts, too.
///
/// A process can crash after the effect of a request and before its answer is recorded. The retry then
/// runs again. A unique column with this number makes the second effect fail. See
/// [`LockContext::operation_id`](crate::LockContext::operation_id).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(u128);

impl OperationId {
    /// Makes the number of the operation with these keys, which are in the order of their bytes and different.
    pub(crate) fn new<'a>(locks: &LockManager, keys: impl IntoIterator<Item = &'a str>) -> Self {
        let mut keys = keys.into_iter().peekable();
        let mut digest = Sha256::new();
        // The length separates the namespace from the key.
        digest.update((locks.namespace().len() as u64).to_be_bytes());
        digest.update(locks.namespace());
        // A key never begins with `!`, so one key and several have different digests.
        while let Some(key) = keys.next() {
            if keys.peek().is_some() {
                digest.update([b'!']);
                digest.update((key.len() as u64).to_be_bytes());
            }
            digest.update(key);
        }
        let digest: [u8; 32] = digest.finalize().into();
        Self(u128::from_be_bytes(std::array::from_fn(|index| {
            digest[index]
        })))
    }

    /// Makes the number of a request with several keys; `None` if one of them is invalid.
    pub(crate) fn of_request(locks: &LockManager, keys: &RequestKeys) -> Option<Self> {
        let keys = keys.iter().map(LockKey::as_str);
        let keys = keys.collect::<Option<BTreeSet<&str>>>()?;
        Some(Self::new(locks, keys))
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl From<OperationId> for u128 {
    fn from(id: OperationId) -> Self {
        id.0
    }
}
