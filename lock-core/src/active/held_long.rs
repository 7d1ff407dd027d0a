//! Locks that are held for very long.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;
use std::time::Duration;

/// Receives reports about a lock that is held for very long.
///
/// [`LockHandle::observe_long_hold`](crate::LockHandle::observe_long_hold) sets it.
pub trait LongHoldObserver: Send + Sync {
    /// Reports that the lock has been held for ten ttls, and again whenever the time has doubled.
    ///
    /// The keeper's thread calls it. It must not block, because that thread renews all locks of the
    /// manager. The thread catches a panic, and logs it.
    fn on_long_hold(&self, held_for: Duration);
}

/// Tells the observer of the lock. Without an observer, the log gets a warning.
pub(super) fn tell_held_long(watch: Option<Weak<dyn LongHoldObserver>>, held_for: Duration) {
    match watch {
        // The watcher may be gone; the lock is about to be released then.
        Some(watch) => {
            let told = watch
                .upgrade()
                .map(|watch| catch_unwind(AssertUnwindSafe(move || watch.on_long_hold(held_for))));
            if matches!(told, Some(Err(_))) {
                tracing::error!("the observer of a lock that is held for long panicked");
            }
        }
        None => tracing::warn!(
            ?held_for,
            "a lock has been held for more than ten times its ttl; is its owner stuck? max_hold sets a limit"
        ),
    }
}
