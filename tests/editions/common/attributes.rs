//! Tests other attributes, visibilities and qualifiers.

use lock_core::{Error, LockManager, distributed_lock};

use super::errors::ShopError;
use super::witness::at_work;

/// A function with documentation and `must_use`.
///
/// # Examples
///
/// In a code block: `must_use(1).await`.
#[must_use = "the number is what was asked for"]
#[inline]
#[distributed_lock(key = "must:<n>", ttl = "10s")]
pub async fn must_use(n: u64) -> Result<u64, Error> {
    at_work().await;
    Ok(n)
}

/// Attributes above and below.
#[doc(alias = "lint")]
#[allow(clippy::needless_pass_by_value)]
#[distributed_lock(key = "lints:<text>", ttl = "10s")]
#[cfg(not(any()))]
#[cfg_attr(all(), allow(unused_assignments))]
#[cold]
pub async fn lints(text: String) -> Result<usize, Error> {
    at_work().await;
    let mut n = text.len();
    n += 1;
    let m = n;
    n = 0;
    Ok(m)
}

/// A function with an expected lint.
#[expect(clippy::let_and_return, reason = "to be expected")]
#[distributed_lock(key = "expected:<n>", ttl = "10s")]
pub async fn expected(n: u64) -> Result<u64, Error> {
    at_work().await;
    let result = Ok(n + 1);
    result
}

/// Attributes inside the body.
#[distributed_lock(key = "inner:<n>", ttl = "10s")]
pub async fn inner(n: u64) -> Result<u64, Error> {
    #![allow(non_snake_case)]
    let N = n;
    at_work().await;
    Ok(N)
}

/// A deprecated function.
#[deprecated(note = "use another")]
#[distributed_lock(key = "old:<n>", ttl = "10s")]
pub async fn old(n: u64) -> Result<u64, Error> {
    at_work().await;
    Ok(n)
}

/// A function that is configured away, whose types need not exist.
#[cfg(any())]
#[distributed_lock(key = "gone:<n>", ttl = "10s")]
pub async fn gone(n: Missing) -> Missing {}

/// The attribute under a condition.
#[cfg_attr(all(), distributed_lock(key = "if:<n>", ttl = "10s"))]
pub async fn if_so(n: u64) -> Result<u64, Error> {
    at_work().await;
    Ok(n)
}

/// The attribute by its whole path.
#[lock_core::distributed_lock(key = "path:<n>", ttl = "10s")]
pub async fn by_path(n: u64) -> Result<u64, Error> {
    at_work().await;
    Ok(n)
}

/// A function that is unsafe to call.
///
/// # Safety
///
/// A call is always safe.
#[distributed_lock(key = "unsafe:<n>", ttl = "10s")]
pub async unsafe fn not_safe(n: u64) -> Result<u64, Error> {
    at_work().await;
    Ok(n)
}

/// Two locks, of which the function takes the lower one first.
#[distributed_lock(key = "stack:upper:<n>", ttl = "10s", guard = upper)]
#[distributed_lock(key = "stack:lower:<n>", ttl = "10s", guard = lower)]
pub async fn stacked(n: u64, (_, m): (String, u64)) -> Result<u64, Error> {
    at_work().await;
    assert_ne!(upper.key(), lower.key());
    Ok(n + m)
}

#[distributed_lock(key = "crate:<n>", ttl = "10s")]
pub(crate) async fn in_the_crate(n: u64) -> Result<u64, Error> {
    at_work().await;
    Ok(n)
}

#[distributed_lock(key = "super:<n>", ttl = "10s")]
pub(super) async fn above(n: u64) -> Result<u64, Error> {
    at_work().await;
    Ok(n)
}

mod deep {
    pub(super) mod deeper {
        use lock_core as kit;

        /// A function in a nested module, with paths that lead up.
        #[kit::distributed_lock(
            key = super::super::key_of(n),
            ttl = super::super::TTL,
            crate = kit,
        )]
        pub(in super::super) async fn nested(n: u64) -> Result<u64, super::super::ShopError> {
            super::super::at_work().await;
            Ok(n)
        }
    }
}

const TTL: std::time::Duration = std::time::Duration::from_secs(10);

fn key_of(n: u64) -> String {
    format!("nested:{n}")
}

/// Calls functions that are visible only inside.
pub async fn inside(n: u64) -> Result<u64, ShopError> {
    Ok(in_the_crate(n).await? + above(n).await? + deep::deeper::nested(n).await?)
}

/// Starts a runtime under the lock.
#[distributed_lock(key = "main", ttl = "10s", manager = LockManager::in_memory(), guard = lock)]
#[tokio::main(flavor = "current_thread")]
async fn started() -> Result<bool, Error> {
    Ok(lock.is_valid())
}

/// A plain function that starts the runtime.
pub fn start() -> Result<bool, Error> {
    started()
}

#[cfg(test)]
mod tests {
    use super::super::witness::{locked, locked_by_all, manager};
    use super::*;

    #[tokio::test]
    async fn other_attributes_are_kept() {
        let done = locked("must:3", must_use(3), must_use(3)).await;
        assert_eq!(done.expect("free"), 3);
        let call = || lints("abc".into());
        assert_eq!(locked("lints:abc", call(), call()).await.expect("free"), 4);
        let done = locked("expected:3", expected(3), expected(3)).await;
        assert_eq!(done.expect("free"), 4);
        let done = locked("inner:3", inner(3), inner(3)).await;
        assert_eq!(done.expect("free"), 3);
        #[allow(deprecated)]
        let call = || old(3);
        assert_eq!(locked("old:3", call(), call()).await.expect("free"), 3);
        let done = locked("if:3", if_so(3), if_so(3)).await;
        assert_eq!(done.expect("free"), 3);
        let done = locked("path:3", by_path(3), by_path(3)).await;
        assert_eq!(done.expect("free"), 3);
    }

    #[tokio::test]
    async fn qualifiers_and_visibilities_are_kept() {
        // SAFETY: a call is always safe.
        let call = || unsafe { not_safe(3) };
        assert_eq!(locked("unsafe:3", call(), call()).await.expect("free"), 3);
        let done = locked("crate:3", in_the_crate(3), in_the_crate(3)).await;
        assert_eq!(done.expect("free"), 3);
        let done = locked("super:3", above(3), above(3)).await;
        assert_eq!(done.expect("free"), 3);
        let call = || deep::deeper::nested(3);
        assert_eq!(locked("nested:3", call(), call()).await.expect("free"), 3);
    }

    #[tokio::test]
    async fn two_locks_stack() {
        let call = || stacked(3, (String::new(), 4));
        let keys = ["stack:lower:3", "stack:upper:3"];
        let done = locked_by_all(&keys, call(), call()).await;
        assert_eq!(done.expect("free"), 7);
    }

    #[test]
    fn a_main_is_locked() {
        assert!(start().expect("free"));
    }

    #[distributed_lock(key = "test", ttl = "10s", manager = manager(), guard = lock)]
    #[tokio::test]
    async fn a_test_is_locked() -> Result<(), Error> {
        let held: Vec<_> = manager().held();
        assert_eq!(held[0].key(), "test");
        assert!(lock.is_valid());
        Ok(())
    }

    /// A test that returns nothing, with its attributes in one line.
    #[distributed_lock(key = "test", ttl = "10s", manager = manager(), on_error = |e| panic!("{}", e))]
    #[tokio::test]
    #[should_panic(expected = "as it should")]
    async fn a_test_that_panics_is_locked() {
        assert_eq!(manager().held().len(), 1);
        panic!("as it should");
    }
}
