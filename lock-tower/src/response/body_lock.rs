//! Holds the lock of a request until the body of its response has been sent.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::HeaderMap;

use crate::lock::{BoxFuture, RequestLock, is_grpc_error};

/// The lock of a body. A drop releases it in the background.
pub(crate) struct BodyLock {
    state: BodyLockState,
    release_timeout: Duration,
    /// The body is being polled. If the lock is dropped meanwhile, the body has panicked.
    body_polled: bool,
    /// The body was polled.
    has_begun: bool,
    /// The trailers of the body, which are its end and wait for the release.
    trailers: Option<HeaderMap>,
}

enum BodyLockState {
    Holding(Option<RequestLock>),
    /// The mutex is never locked. It makes the body `Sync`, although the future is not.
    Releasing(Mutex<BoxFuture<()>>),
}

impl BodyLock {
    pub(crate) fn new(lock: RequestLock, release_timeout: Duration) -> Self {
        Self {
            state: BodyLockState::Holding(Some(lock)),
            release_timeout,
            body_polled: false,
            has_begun: false,
            trailers: None,
        }
    }

    /// Polls the body to which this lock belongs.
    pub(crate) fn poll_body<T>(&mut self, poll: impl FnOnce() -> T) -> T {
        self.has_begun = true;
        self.body_polled = true;
        let polled = poll();
        self.body_polled = false;
        polled
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Keeps the trailers until the lock is released. A gRPC call may have failed in them.
    pub(crate) fn set_trailers(&mut self, trailers: HeaderMap) {
        if let (true, BodyLockState::Holding(Some(lock))) = (is_grpc_error(&trailers), &self.state)
        {
            lock.fail_call();
        }
        self.trailers = Some(trailers);
    }

    pub(crate) fn take_trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }

    pub(crate) fn is_releasing(&self) -> bool {
        matches!(self.state, BodyLockState::Releasing(_))
    }

    /// Records that the body ended with an error, so the request has not succeeded.
    pub(crate) fn fail(&self) {
        if let BodyLockState::Holding(Some(lock)) = &self.state {
            lock.fail();
        }
    }

    pub(crate) fn poll_release(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let BodyLockState::Holding(lock) = &mut self.state {
            let Some(lock) = lock.take() else {
                return Poll::Ready(());
            };
            let release = lock.release(self.release_timeout);
            self.state = BodyLockState::Releasing(Mutex::new(Box::pin(release)));
        }
        match &mut self.state {
            BodyLockState::Releasing(release) => {
                let release = release.get_mut().unwrap_or_else(PoisonError::into_inner);
                Pin::as_mut(release).poll(context)
            }
            BodyLockState::Holding(_) => Poll::Ready(()),
        }
    }
}

impl Drop for BodyLock {
    fn drop(&mut self) {
        if self.body_polled {
            self.fail();
        }
    }
}
