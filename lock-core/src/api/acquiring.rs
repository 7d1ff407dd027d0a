//! The futures of the methods that acquire a lock.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::api::guard::LockGuard;
use crate::base::BoxFuture;
use crate::base::error::{Error, ErrorKind};

/// The future of [`LockRequest::acquire`](crate::LockRequest::acquire).
#[must_use = "futures do nothing unless polled"]
pub struct Acquire(pub(crate) BoxFuture<'static, Result<LockGuard, Error>>);

impl Future for Acquire {
    type Output = Result<LockGuard, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Acquire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acquire")
    }
}

/// The future of [`LockRequest::try_acquire`](crate::LockRequest::try_acquire).
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct TryAcquire(pub(crate) Acquire);

impl Future for TryAcquire {
    type Output = Result<Option<LockGuard>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|acquired| match acquired {
                Ok(guard) => Ok(Some(guard)),
                Err(error) if error.kind() == ErrorKind::Busy => Ok(None),
                Err(error) => Err(error),
            })
    }
}
