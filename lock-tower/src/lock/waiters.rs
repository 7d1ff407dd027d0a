//! A cooldown that answers the requests that wait for the key.
//!
//! The store tells a waiter when a plain cooldown is over, and the waiter then runs: the double click that the cooldown
//! is to stop. A record is an answer, for which no caller waits, so it ends all waits when it begins. A layer with
//! [`wait`](crate::LockLayer::wait) therefore leaves its cooldowns as records.

use std::time::Duration;

use lock_core::LockGuard;

use crate::rejection::COOLDOWN;

/// The longest cooldown.
pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Keeps the key taken after the release, and answers the waiters when the release begins.
pub(super) fn cool_down_and_answer(guard: &LockGuard, cooldown: Duration) {
    guard.cooldown(cooldown);
    if !cooldown.is_zero() {
        // Several keys, or more than the manager's `max_ttl`: the plain cooldown counts, and is cut.
        let _ = guard.remember(COOLDOWN, cooldown.min(DAY));
    }
}
