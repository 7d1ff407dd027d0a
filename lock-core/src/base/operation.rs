//! The number of an operation, which is the same in every run of it.

use std::fmt;

use sha2::{Digest, Sha256};

/// Identifies an operation, however often it runs.
///
/// It is a digest of a namespace and of one key or several. Its text has 32 hexadecimal digits, which the type `uuid` of a
/// database accepts, too. A unique column with this number makes the second effect of an operation fail.
///
/// lock-tower makes it from the key of a request and the namespace of the manager.
///
/// # Examples
///
/// ```
/// use lock_core::OperationId;
///
/// let id = OperationId::new("shop", ["pay:42"]);
/// assert_eq!(id, OperationId::new("shop", ["pay:42"]));
/// assert_ne!(id, OperationId::new("test", ["pay:42"]));
/// assert_eq!(id.to_string().len(), 32);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(u128);

impl OperationId {
    /// Makes the number of the operation with these keys.
    ///
    /// Several keys must be different and in the order of their bytes, so that the same keys make the same number.
    #[must_use]
    pub fn new<'a>(namespace: &str, keys: impl IntoIterator<Item = &'a str>) -> Self {
        let mut keys = keys.into_iter().peekable();
        let mut digest = Sha256::new();
        // The length separates the namespace from the key.
        digest.update((namespace.len() as u64).to_be_bytes());
        digest.update(namespace);
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

    /// Makes the number of the operation of an `#[idempotent]` function with `tx` and this key.
    ///
    /// [`once::forget`](crate::once::forget) takes it. No request and no lock has this number.
    ///
    /// # Examples
    ///
    /// ```
    /// use lock_core::OperationId;
    ///
    /// assert_ne!(OperationId::of_function("mail:7"), OperationId::new("", ["mail:7"]));
    /// ```
    #[cfg(all(feature = "idempotent", feature = "once"))]
    #[must_use]
    pub fn of_function(key: &str) -> Self {
        // No key of a lock begins with `!`.
        Self::new("", ["!fn", key])
    }

    /// Returns the 16 bytes of the number, the most significant one first.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
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

#[cfg(all(test, feature = "idempotent", feature = "once"))]
mod tests {
    use super::*;

    #[test]
    fn a_function_and_a_request_with_one_key_are_two_operations() {
        let function = OperationId::of_function("mail:7");
        assert_eq!(function, OperationId::of_function("mail:7"));
        assert_ne!(function, OperationId::of_function("mail:8"));
        for namespace in ["", "fn", "!fn", "shop"] {
            assert_ne!(function, OperationId::new(namespace, ["mail:7"]));
            assert_ne!(function, OperationId::new(namespace, ["fn", "mail:7"]));
        }
    }
}
