//! Acquires the lock of a request: from the store and, if configured, from the fallback manager.
//!
//! # Why every request takes the fallback's lock
//!
//! Requests of one key notice an outage at different moments. If a request took the fallback's lock
//! only during an outage, that lock would not exclude a request that had reached the store before:
//! one whose lease ran out, or one whose cooldown still counts.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use lock_core::{Acquire, Error, ErrorKind, LockGuard, LockManager, LockRequest};

use super::BoxFuture;

/// The locks that one request was granted.
pub(crate) struct GrantedLocks {
    pub(crate) guard: LockGuard,
    /// The fallback's lock, held in addition to the store's lock.
    ///
    /// It is released last, because in this process it stands for both.
    pub(crate) fallback: Option<LockGuard>,
    /// The store did not answer, so `guard` is the fallback's lock.
    pub(crate) fell_back: bool,
}

/// The acquisition of a request's lock.
pub(crate) enum Acquiring {
    Store(Acquire),
    Both(BoxFuture<Result<GrantedLocks, Error>>),
}

impl Future for Acquiring {
    type Output = Result<GrantedLocks, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Acquiring::Store(acquire) => {
                Pin::new(acquire)
                    .poll(context)
                    .map_ok(|guard| GrantedLocks {
                        guard,
                        fallback: None,
                        fell_back: false,
                    })
            }
            Acquiring::Both(both) => both.as_mut().poll(context),
        }
    }
}

/// Acquires the fallback's lock and then the store's.
pub(crate) async fn acquire_both(
    fallback: LockRequest,
    store: LockRequest,
    store_manager: LockManager,
) -> Result<GrantedLocks, Error> {
    let fallback = fallback.acquire().await?;
    match store.acquire().await {
        Ok(guard) => Ok(GrantedLocks {
            guard,
            fallback: Some(fallback),
            fell_back: false,
        }),
        Err(error) if is_outage(&error, &store_manager) => Ok(GrantedLocks {
            guard: fallback,
            fallback: None,
            fell_back: true,
        }),
        Err(error) => Err(error),
    }
}

/// Returns whether the store is away. A manager that drains is not, because its store still answers.
fn is_outage(error: &Error, manager: &LockManager) -> bool {
    error.kind() == ErrorKind::Unavailable && !manager.is_draining()
}
