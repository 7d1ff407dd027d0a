//! Spans of time as Redis takes them.

use std::time::Duration;

use crate::lease::deadline::GRANT;

/// The grant in milliseconds, as in the queue's entry: for how long a waiter gets a key before it answers. A
/// stopped or dead waiter costs the others that long.
pub(super) fn grant(ttl: Duration) -> String {
    grant_in_millis(ttl).to_string()
}

pub(super) fn grant_in_millis(ttl: Duration) -> u64 {
    in_millis(ttl.min(GRANT))
}

/// A span in whole milliseconds, as Redis takes it.
pub(super) fn millis(span: Duration) -> String {
    in_millis(span).to_string()
}

pub(super) fn in_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
