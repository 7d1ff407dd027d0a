//! Acquires the lock of a request: from the store and, if configured, from the fallback manager.
//!
//! # Why every request takes the fallback's lock
//!
//! Requests of one key notice an outage at different moments. If a request took the fallback's lock
//! only during an outage, that lock would not exclude a request that had reached the store before:
//! one whose lease ran out, or one whose cooldown still counts.
//!
//! # Why it takes the store's lock first
//!
//! While the store answers, it alone knows which answers are recorded, which keys cool down, and which of both are
//! forgotten. The fallback has a note instead. It keeps a request from running again while the store is away.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use lock_core::{Acquire, Error, ErrorKind, LockGuard, LockKey, LockManager, LockRequest};

use super::BoxFuture;
use crate::rejection::COOLDOWN_IN_STORE;

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

/// The record of the fallback for a request whose answer is in the store. No other record of the kit has these bytes.
pub(super) const ANSWER_IN_STORE: &[u8] = &[0, 0];

/// Returns whether a refusal of the fallback says only what the store said, when it confirmed a release.
fn is_note(refusal: &Error) -> bool {
    let notes = [ANSWER_IN_STORE, COOLDOWN_IN_STORE];
    refusal
        .record()
        .is_some_and(|record| notes.contains(&record))
}

/// Acquires the store's lock and then the fallback's.
///
/// The second request to the manager `local` is for the case that the first one meets a note that is out of date.
pub(crate) async fn acquire_both(
    store: LockRequest,
    store_manager: LockManager,
    [fallback, again]: [LockRequest; 2],
    local: LockManager,
) -> Result<GrantedLocks, Error> {
    let guard = match store.acquire().await {
        Ok(guard) => guard,
        Err(outage) if is_outage(&outage, &store_manager) => {
            return match fallback.acquire().await {
                Ok(guard) => Ok(GrantedLocks {
                    guard,
                    fallback: None,
                    fell_back: true,
                }),
                Err(error) if error.record() == Some(ANSWER_IN_STORE) => Err(outage),
                Err(error) => Err(error),
            };
        }
        Err(error) => return Err(error),
    };
    let fallback = match fallback.acquire().await {
        // The store has granted the key, so the note is out of date.
        Err(error) if is_note(&error) => {
            let key = error.key().map(LockKey::exact).ok_or(error)?;
            local.forget(key).await?;
            again.acquire().await
        }
        acquired => acquired,
    };
    Ok(GrantedLocks {
        guard,
        fallback: Some(fallback?),
        fell_back: false,
    })
}

/// Returns whether the store is away. A manager that drains is not, because its store still answers.
fn is_outage(error: &Error, manager: &LockManager) -> bool {
    error.kind() == ErrorKind::Unavailable && !manager.is_draining()
}
