//! Tests `tracing::instrument` above and below the attribute.

use axum::extract::{Path, State};
use lock_core::{Error, LockManager, distributed_lock};
use tracing::instrument;

use super::errors::ShopError;
use super::witness::at_work;

/// A span around the body only, because the upper attribute runs first and so becomes the
/// inner one.
#[instrument]
#[distributed_lock(key = "above:<uid>", ttl = "10s")]
pub async fn above(uid: u64, text: &str) -> Result<usize, Error> {
    at_work().await;
    Ok(text.len())
}

/// A span that also covers the wait for the lock.
#[distributed_lock(key = "below:<uid>", ttl = "10s")]
#[instrument]
pub async fn below(uid: u64, text: &str) -> Result<usize, Error> {
    at_work().await;
    Ok(text.len())
}

/// `instrument` with all its arguments, above.
#[tracing::instrument(
    name = "shop", level = "debug", target = "shop", skip(secret), fields(uid, size = secret.len()), err, ret
)]
#[distributed_lock(key = "above:<uid>", ttl = "10s", guard = lock)]
pub async fn above_with_all(uid: u64, secret: String) -> Result<String, ShopError> {
    at_work().await;
    Ok(format!("{} {}", lock.key(), secret.len()))
}

/// `instrument` with all its arguments, below.
#[distributed_lock(key = "below:<uid>", ttl = "10s", guard = lock)]
#[tracing::instrument(
    name = "shop", level = "debug", target = "shop", skip(secret), fields(uid, size = secret.len()), err(Debug), ret(Display)
)]
pub async fn below_with_all(uid: u64, secret: String) -> Result<String, ShopError> {
    at_work().await;
    Ok(format!("{} {}", lock.key(), secret.len()))
}

/// Parameters with patterns, above.
#[instrument(skip(name), err)]
#[distributed_lock(key = "above:<uid>", ttl = "10s")]
pub async fn above_in_parts(Path((uid, name, _)): Path<(u64, String, u8)>) -> Result<usize, Error> {
    at_work().await;
    Ok(name.len())
}

/// Parameters with patterns that name every part, below.
#[distributed_lock(key = "below:<uid>", ttl = "10s")]
#[instrument(skip(name), err)]
pub async fn below_in_parts(Path((uid, name)): Path<(u64, String)>) -> Result<usize, Error> {
    at_work().await;
    Ok(name.len())
}

/// Parameters with a pattern that ignores a part, below. `skip_all` records no part without a
/// name.
#[distributed_lock(key = "below:<uid>", ttl = "10s", manager = locks)]
#[instrument(skip_all, fields(answer = 42), err)]
pub async fn below_skipping_all(
    Path((uid, _)): Path<(u64, String)>,
    State(locks): State<LockManager>,
    _: u8,
) -> Result<u64, Error> {
    at_work().await;
    Ok(uid)
}

/// A type with a method between two spans.
#[derive(Debug)]
pub struct Shop {
    locks: LockManager,
}

impl Shop {
    /// `instrument` above and below at once.
    #[instrument(skip(self))]
    #[distributed_lock(key = "method:<uid>", ttl = "10s", manager = self.locks)]
    #[instrument(skip_all, fields(uid))]
    pub async fn method(&mut self, uid: u64) -> Result<u64, Error> {
        at_work().await;
        Ok(uid + u64::from(self.locks.held().is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::witness::{locked, manager};
    use super::*;

    #[tokio::test]
    async fn a_span_above_changes_nothing() {
        let done = locked("above:3", above(3, "ab"), above(3, "ab")).await;
        assert_eq!(done.expect("free"), 2);
        let call = || above_with_all(3, "abc".into());
        assert_eq!(
            locked("above:3", call(), call()).await.expect("free"),
            "above:3 3"
        );
        let call = || above_in_parts(Path((3, "abc".into(), 0)));
        assert_eq!(locked("above:3", call(), call()).await.expect("free"), 3);
    }

    #[tokio::test]
    async fn a_span_below_changes_nothing() {
        let done = locked("below:3", below(3, "ab"), below(3, "ab")).await;
        assert_eq!(done.expect("free"), 2);
        let call = || below_with_all(3, "abc".into());
        assert_eq!(
            locked("below:3", call(), call()).await.expect("free"),
            "below:3 3"
        );
        let call = || below_in_parts(Path((3, "abc".into())));
        assert_eq!(locked("below:3", call(), call()).await.expect("free"), 3);
        let call = || below_skipping_all(Path((3, "abc".into())), State(manager()), 0);
        assert_eq!(locked("below:3", call(), call()).await.expect("free"), 3);
    }

    #[tokio::test]
    async fn spans_on_both_sides_change_nothing() {
        let shop = || Shop { locks: manager() };
        let (mut one, mut two) = (shop(), shop());
        let done = locked("method:3", one.method(3), two.method(3)).await;
        assert_eq!(done.expect("free"), 3);
    }
}
