//! Notices a layer in the wrong place from the requests that it sees.
//!
//! Whether a header is missing because of one client or because the layer that sets it is further
//! inside, no single request tells. If all of the first ones lack it, it is most likely the set-up.

use std::sync::atomic::{AtomicU8, Ordering};

/// The first so many requests, without one in order among them.
const SUSPICIOUS: u8 = 10;

/// No longer looked at: a request was in order, or it has been reported.
const SETTLED: u8 = u8::MAX;

#[derive(Debug, Default)]
pub(crate) struct OrderWatch {
    lacks_key: AtomicU8,
    lacks_route: AtomicU8,
}

impl OrderWatch {
    /// The key of a request was made, or lacked a part, which is named.
    pub(crate) fn key(&self, layer: &'static str, missing: Option<&str>) {
        if suspicious(&self.lacks_key, missing.is_some()) {
            tracing::error!(
                layer,
                source = missing,
                "the first {SUSPICIOUS} requests all lacked what the key of this lock layer is made \
                 of. Is it outside of the layer that provides that (authentication, a session)? In \
                 axum the layer that is added last is the outermost"
            );
        }
    }

    /// The template names `<route>`, and axum had matched one or not.
    pub(crate) fn route(&self, layer: &'static str, known: bool) {
        if suspicious(&self.lacks_route, !known) {
            // Right for services that axum does not route: `<path>` says the same there.
            tracing::warn!(
                layer,
                "axum had matched no route for the first {SUSPICIOUS} requests, and `<route>` in \
                 the template of this lock layer is their path. Add the layer by \
                 `Router::route_layer` or `Router::layer` instead of putting it around the router, \
                 or write `<path>`"
            );
        }
    }
}

/// Whether this is the moment to say so.
fn suspicious(seen: &AtomicU8, lacking: bool) -> bool {
    // After the beginning this is all that a request costs.
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
        count if count + 1 == SUSPICIOUS => Some(SETTLED),
        count => Some(count + 1),
    });
    counted == Ok(SUSPICIOUS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_in_a_row_are_reported_once() {
        let seen = AtomicU8::new(0);
        let reports: Vec<u32> = (1..100).filter(|_| suspicious(&seen, true)).collect();
        assert_eq!(reports, [10]);
    }

    #[test]
    fn one_in_order_ends_the_suspicion() {
        let seen = AtomicU8::new(0);
        let in_order = |request: u32| request == 9;
        assert!(!(1..100).any(|request| suspicious(&seen, !in_order(request))));
    }
}
