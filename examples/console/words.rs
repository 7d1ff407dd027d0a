//! Says in words what was seen. Both the page and the terminal use it, and each escapes it in its own way.

use std::time::Duration;

use lock_core::operator::{Forced, Holder, Identity, Inspection};

pub(crate) const NOTHING: &str = "–";

/// Writes a time with its two largest units: `2 min 5 s`.
pub(crate) fn time(span: Duration) -> String {
    let seconds = span.as_secs();
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes, rest) {
        (0, 0, 0, 0) => format!("{} ms", span.as_millis()),
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}

pub(crate) fn time_or_nothing(span: Option<Duration>) -> String {
    span.map_or_else(|| NOTHING.to_owned(), time)
}

/// Names the process of a holder.
pub(crate) fn process(identity: Option<&Identity>) -> String {
    match identity {
        Some(identity) => format!("{}, process {}", identity.host(), identity.pid()),
        None => "unknown".to_owned(),
    }
}

pub(crate) fn label(identity: Option<&Identity>) -> String {
    let label = identity.and_then(Identity::label);
    label.unwrap_or(NOTHING).to_owned()
}

pub(crate) fn fence(holder: &Holder) -> String {
    let fence = holder.fencing_token();
    fence.map_or_else(|| NOTHING.to_owned(), |fence| fence.to_string())
}

/// Says how long a key stays taken.
pub(crate) fn left(seen: &Inspection) -> String {
    match (seen.remaining(), seen.holder_count()) {
        (Some(left), _) => time(left),
        (None, 0) => NOTHING.to_owned(),
        (None, _) => "without an end".to_owned(),
    }
}

/// Says what became of an order.
pub(crate) fn outcome(forced: Forced) -> &'static str {
    match forced {
        Forced::Freed => {
            "The key is free, or the first waiter's: no process listened for the holder."
        }
        Forced::Told => {
            "The holder was told that it has lost the lock. The key is free after a second."
        }
        _ => "That holder does not have the key any more. Nothing was done.",
    }
}
