//! The number of the operation that a request asks for.

use std::collections::BTreeSet;

use lock_core::{LockKey, LockManager, OperationId};

use crate::key::RequestKeys;

/// Makes the number of a request with these keys; `None` if one of them is invalid.
pub(crate) fn of_request(locks: &LockManager, keys: &RequestKeys) -> Option<OperationId> {
    let keys = keys.iter().map(LockKey::as_str);
    let keys = keys.collect::<Option<BTreeSet<&str>>>()?;
    Some(OperationId::new(locks.namespace(), keys))
}
