//! Whether a connection still answers.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use redis::RedisError;

use super::send_error::{SendError, classify};
use crate::base::clock::{Clock, Moment};

/// A connection that has left requests unanswered for this long is replaced.
const SILENT: Duration = Duration::from_millis(500);
/// A single request that is dropped sooner says nothing about its connection, because its answer could hardly have arrived.
/// A renewal is dropped like this if its owner ends at that moment.
const TOO_SOON: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub(in crate::store::redis) struct Health {
    closed: AtomicBool,
    /// Requests that were sent and not answered.
    in_flight: AtomicUsize,
    /// When the first request was sent that was given up on since the last answer; 0: none was.
    silent_since: AtomicU64,
    /// When a request was given up on last.
    given_up: AtomicU64,
}

impl Health {
    /// Marks the connection as unusable.
    pub(in crate::store::redis) fn end(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Returns whether sending a request makes sense.
    pub(in crate::store::redis) fn is_good(&self) -> bool {
        self.is_good_at(|| Clock::System.now())
    }

    fn is_good_at(&self, now: impl FnOnce() -> Moment) -> bool {
        if self.closed.load(Ordering::Relaxed) {
            return false;
        }
        let silent_since = self.silent_since.load(Ordering::Relaxed);
        let since = Moment(silent_since);
        let given_up = Moment(self.given_up.load(Ordering::Relaxed));
        silent_since == 0 || given_up.since(since) < TOO_SOON || now().since(since) < SILENT
    }

    /// Notes that a request was dropped without an answer.
    fn give_up(&self, sent: Moment, now: Moment) {
        let before = Moment(self.given_up.swap(now.0, Ordering::Relaxed));
        let since = Moment(self.silent_since.load(Ordering::Relaxed));
        let was_too_soon = before.since(since) < TOO_SOON;
        // For so long no request waited for an answer.
        let is_first = since.0 == 0 || (was_too_soon && sent.since(before) >= SILENT);
        if is_first {
            self.silent_since.store(sent.0, Ordering::Relaxed);
        }
    }

    pub(in crate::store::redis) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}

/// One request, until it is answered or given up on.
pub(in crate::store::redis) struct PendingRequest<'a> {
    health: &'a Health,
    sent: Moment,
    over: bool,
}

impl<'a> PendingRequest<'a> {
    pub(in crate::store::redis) fn new(health: &'a Health) -> Self {
        health.in_flight.fetch_add(1, Ordering::Relaxed);
        Self {
            health,
            sent: Clock::System.now(),
            over: false,
        }
    }

    pub(in crate::store::redis) fn answered<T>(
        mut self,
        answer: Result<T, RedisError>,
    ) -> Result<T, SendError> {
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
            self.health.give_up(self.sent, Clock::System.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Moment = Moment(1_000_000_000);

    /// Returns whether a connection is usable so long after a request was sent that was dropped after so many milliseconds.
    fn is_good(dropped_after: u64, later: Duration) -> bool {
        let health = Health::default();
        health.give_up(SENT, SENT + Duration::from_millis(dropped_after));
        health.is_good_at(|| SENT + later)
    }

    #[test]
    fn a_request_that_is_dropped_at_once_does_not_make_a_connection_silent() {
        let hour = Duration::from_secs(3_600);
        assert!(is_good(0, hour) && is_good(9, hour));
        assert!(!is_good(10, SILENT));
        assert!(is_good(200, SILENT / 2));
    }

    /// A release may be dropped so, because the keeper goes on with it, and much later an acquire. The undo of the acquire needs
    /// this connection to arrive behind it.
    #[test]
    fn two_requests_that_are_dropped_at_once_after_a_pause_do_not_make_a_connection_silent() {
        let health = Health::default();
        let dropped = |at: Duration, after: u64| {
            let sent = SENT + at;
            health.give_up(sent, sent + Duration::from_millis(after));
            health.is_good_at(|| sent + Duration::from_millis(after))
        };
        assert!(dropped(Duration::ZERO, 3) && dropped(SILENT * 2, 1));
        let waited = SILENT.as_millis() as u64;
        assert!(!dropped(SILENT * 4, waited), "this one had time");
        assert!(!dropped(SILENT * 6, 1), "nothing has been answered since");
    }

    #[test]
    fn requests_that_are_dropped_at_once_again_and_again_make_a_connection_silent() {
        let health = Health::default();
        for millis in [0, 300, 600] {
            let at = SENT + Duration::from_millis(millis);
            health.give_up(at, at);
        }
        assert!(!health.is_good_at(|| SENT + SILENT));
        health.silent_since.store(0, Ordering::Relaxed);
        assert!(health.is_good_at(|| SENT + SILENT), "it has answered");
    }
}
