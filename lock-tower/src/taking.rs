//! Asking for the lock of a request: of the store, and where there is a fallback, of that beside it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use lock_core::__private::is_draining;
use lock_core::{Acquire, Error, ErrorKind, LockManager, LockRequest};

use crate::tenure::Locks;

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The lock of a request, on its way.
pub(crate) enum Taking {
    Store(Acquire),
    Both(BoxFuture<Result<Locks, Error>>),
}

impl Future for Taking {
    type Output = Result<Locks, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Taking::Store(acquire) => Pin::new(acquire).poll(context).map_ok(|guard| Locks {
                guard,
                beside: None,
                fell_back: false,
            }),
            Taking::Both(both) => both.as_mut().poll(context),
        }
    }
}

/// The fallback's lock first, for every request: whether the store is away is found out by each
/// request at another time, and two of one key must not meet different answers and both run.
pub(crate) async fn both(
    beside: LockRequest,
    store: LockRequest,
    of_store: LockManager,
) -> Result<Locks, Error> {
    let beside = beside.acquire().await?;
    match store.acquire().await {
        Ok(guard) => Ok(Locks {
            guard,
            beside: Some(beside),
            fell_back: false,
        }),
        Err(error) if is_outage(&error, &of_store) => Ok(Locks {
            guard: beside,
            beside: None,
            fell_back: true,
        }),
        Err(error) => Err(error),
    }
}

/// A manager that drains gives no answer either, but its store does, to others.
fn is_outage(error: &Error, manager: &LockManager) -> bool {
    error.kind() == ErrorKind::Unavailable && !is_draining(manager)
}
