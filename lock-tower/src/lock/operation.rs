//! The number of an operation, which is the same in every run of it.

use std::fmt;

use lock_core::LockManager;
use sha2::{Digest, Sha256};

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
    pub(crate) fn new(locks: &LockManager, key: &str) -> Self {
        let mut digest = Sha256::new();
        // The length separates the namespace from the key.
        digest.update((locks.namespace().len() as u64).to_be_bytes());
        digest.update(locks.namespace());
        digest.update(key);
        let digest: [u8; 32] = digest.finalize().into();
        Self(u128::from_be_bytes(std::array::from_fn(|index| {
            digest[index]
        })))
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
