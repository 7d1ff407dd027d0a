//! Spans of time and fencing tokens as Redis takes them.

use std::time::Duration;

use redis::Cmd;

use crate::base::fence::FencingToken;
use crate::lease::deadline::GRANT;

/// The grant in milliseconds, as in the queue's entry: for how long a waiter gets a key before it answers. A
/// stopped or dead waiter costs the others that long.
pub(in crate::store::redis) fn grant(ttl: Duration) -> String {
    grant_in_millis(ttl).to_string()
}

pub(in crate::store::redis) fn grant_in_millis(ttl: Duration) -> u64 {
    in_millis(ttl.min(GRANT))
}

/// A span in whole milliseconds, as Redis takes it.
pub(in crate::store::redis) fn millis(span: Duration) -> String {
    in_millis(span).to_string()
}

pub(in crate::store::redis) fn in_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Adds a fencing token as the scripts take it: empty for none.
pub(in crate::store::redis) fn push_fence(fence: Option<FencingToken>, command: &mut Cmd) {
    match fence {
        Some(fence) => command.arg(u64::from(fence)),
        None => command.arg(""),
    };
}
