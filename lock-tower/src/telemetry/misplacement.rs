//! Detects from its requests that a layer stands in the wrong place, or locks none of them.
//!
//! A missing header has two possible causes: this one client, or an inner layer that should be an
//! outer one. A single request cannot distinguish them. If all of the first requests lack the header,
//! the order of the layers is the likely cause.

use std::sync::atomic::{AtomicU8, Ordering};

/// The number of first requests that must all lack it.
const SUSPICIOUS: u8 = 10;

/// The number of first requests that must all have methods that the layer does not lock.
const IDLE: u8 = 100;

/// Marks a detector that has found a complete request, or has reported.
const SETTLED: u8 = u8::MAX;

#[derive(Debug, Default)]
pub(crate) struct MisplacementDetector {
    lacks_key: AtomicU8,
    lacks_route: AtomicU8,
    locks_none: AtomicU8,
}

impl MisplacementDetector {
    /// Records that the key of a request was made, or which part of it was missing.
    pub(crate) fn key(&self, layer: &'static str, missing: Option<&str>) {
        if suspicious(&self.lacks_key, missing.is_some(), SUSPICIOUS) {
            tracing::error!(
                layer,
                source = missing,
                "the first {SUSPICIOUS} requests all lacked a value that the key of this lock layer is \
                 made from. Is the lock layer outside of the layer that provides the value \
                 (authentication, a session)? In axum the layer that is added last is the outermost"
            );
        }
    }

    /// Records whether the layer locks the method of a request.
    pub(crate) fn method(&self, layer: &'static str, locked: bool) {
        if suspicious(&self.locks_none, !locked, IDLE) {
            tracing::warn!(
                layer,
                "the first {IDLE} requests all had methods that this lock layer does not lock, so it \
                 limited none of them. By default it locks POST, PUT, PATCH and DELETE; name others by \
                 `LockLayer::methods` or `read_methods`"
            );
        }
    }

    /// Records whether axum had matched a route, for a template with `<route>`.
    pub(crate) fn route(&self, layer: &'static str, known: bool) {
        if suspicious(&self.lacks_route, !known, SUSPICIOUS) {
            // This is correct for services that axum does not route; `<path>` is the same there.
            tracing::warn!(
                layer,
                "axum had matched no route for the first {SUSPICIOUS} requests, so `<route>` in the \
                 template of this lock layer is their path. Add the layer by `Router::route_layer` or \
                 `Router::layer` instead of putting it around the router, or write `<path>`"
            );
        }
    }
}

/// Returns whether this request completes the suspicion, as the last of so many that lack something.
fn suspicious(seen: &AtomicU8, lacking: bool, most: u8) -> bool {
    // A later request costs this one load.
    let before = seen.load(Ordering::Relaxed);
    if before == SETTLED {
        return false;
    }
    if !lacking {
        seen.store(SETTLED, Ordering::Relaxed);
        return false;
    }
    let counted = seen.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| match count {
        SETTLED => None,
        count if count + 1 == most => Some(SETTLED),
        count => Some(count + 1),
    });
    counted == Ok(most - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_in_a_row_are_reported_once() {
        let seen = AtomicU8::new(0);
        let reports: Vec<u32> = (1..100).filter(|_| suspicious(&seen, true, 10)).collect();
        assert_eq!(reports, [10]);
    }

    #[test]
    fn one_complete_request_ends_the_suspicion() {
        let seen = AtomicU8::new(0);
        let complete = |request: u32| request == 9;
        assert!(!(1..100).any(|request| suspicious(&seen, !complete(request), 10)));
    }
}
