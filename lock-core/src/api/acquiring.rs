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
pub struct Acquire(pub(crate) Acquiring<LockGuard>);

impl Future for Acquire {
    type Output = Result<LockGuard, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context)
    }
}

/// An acquire in progress, or a request that is invalid.
pub(crate) enum Acquiring<T> {
    Invalid(Option<Error>),
    Asking(BoxFuture<'static, Result<T, Error>>),
}

impl<T> Acquiring<T> {
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<T, Error>> {
        match self {
            Acquiring::Asking(acquiring) => acquiring.as_mut().poll(context),
            Acquiring::Invalid(error) => Poll::Ready(Err(error
                .take()
                .expect("the future was polled after it was done"))),
        }
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
