//! Whether a connection still answers.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use redis::RedisError;

use super::send_error::{SendError, classify};
use crate::base::clock::{Clock, Moment};

/// A connection that has left requests unanswered for this long is replaced.
const SILENT: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(super) struct Health {
    closed: AtomicBool,
    /// Requests that were sent and not answered.
    in_flight: AtomicUsize,
    /// When the first request was sent that was given up on since the last answer; 0: none was.
    silent_since: AtomicU64,
}

impl Health {
    /// Marks the connection as unusable.
    pub(super) fn end(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Returns whether sending a request makes sense.
    pub(super) fn is_good(&self) -> bool {
        let silent_since = self.silent_since.load(Ordering::Relaxed);
        !self.closed.load(Ordering::Relaxed)
            && (silent_since == 0 || Clock::System.now().since(Moment(silent_since)) < SILENT)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}

/// One request, until it is answered or given up on.
pub(super) struct PendingRequest<'a> {
    health: &'a Health,
    sent: Moment,
    over: bool,
}

impl<'a> PendingRequest<'a> {
    pub(super) fn new(health: &'a Health) -> Self {
        health.in_flight.fetch_add(1, Ordering::Relaxed);
        Self {
            health,
            sent: Clock::System.now(),
            over: false,
        }
    }

    pub(super) fn answered<T>(mut self, answer: Result<T, RedisError>) -> Result<T, SendError> {
        self.over = true;
        let answer = answer.map_err(classify);
        if let Err(SendError::Broken(_)) = answer {
            self.health.closed.store(true, Ordering::Relaxed);
        } else {
            self.health.silent_since.store(0, Ordering::Relaxed);
        }
        answer
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.health.in_flight.fetch_sub(1, Ordering::Relaxed);
        if !self.over {
            let _ = self.health.silent_since.compare_exchange(
                0,
                self.sent.0,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }
}
