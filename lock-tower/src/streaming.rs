//! The lock of a request whose answer's body is still being sent.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::taking::BoxFuture;
use crate::tenure::Tenure;
use crate::work::give_back;

/// Dropped, at any time, it gives the lock back in the background.
pub(crate) struct Streaming {
    state: State,
    release_timeout: Duration,
    /// The body is being polled. Dropped meanwhile, it has panicked.
    body_polled: bool,
}

enum State {
    Holding(Option<Tenure>),
    /// The mutex is never locked: it makes a body that may be shared of a future that may not.
    Releasing(Mutex<BoxFuture<()>>),
}

impl Streaming {
    pub(crate) fn new(tenure: Tenure, release_timeout: Duration) -> Self {
        Self {
            state: State::Holding(Some(tenure)),
            release_timeout,
            body_polled: false,
        }
    }

    /// Polls the body whose lock this is.
    pub(crate) fn poll_body<T>(&mut self, poll: impl FnOnce() -> T) -> T {
        self.body_polled = true;
        let polled = poll();
        self.body_polled = false;
        polled
    }

    pub(crate) fn is_releasing(&self) -> bool {
        matches!(self.state, State::Releasing(_))
    }

    /// The body ended with an error: the answer was none.
    pub(crate) fn failed(&self) {
        if let State::Holding(Some(tenure)) = &self.state {
            tenure.failed();
        }
    }

    pub(crate) fn poll_release(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let State::Holding(tenure) = &mut self.state {
            let Some(tenure) = tenure.take() else {
                return Poll::Ready(());
            };
            let release = give_back(tenure, self.release_timeout);
            self.state = State::Releasing(Mutex::new(Box::pin(release)));
        }
        match &mut self.state {
            State::Releasing(release) => {
                let release = release.get_mut().unwrap_or_else(PoisonError::into_inner);
                Pin::as_mut(release).poll(context)
            }
            State::Holding(_) => Poll::Ready(()),
        }
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        if self.body_polled {
            self.failed();
        }
    }
}
