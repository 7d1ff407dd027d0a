//! Locks that are held for very long.

use std::sync::Weak;
use std::time::Duration;

/// Hears, on the keeper's thread, that a lock is held for very long. It must not block.
pub trait HeldLong: Send + Sync {
    /// Called at ten ttls, and again whenever the time has doubled.
    fn held_long(&self, held_for: Duration);
}

/// Tells the watcher of the lock. Without a watcher, the log gets a warning.
pub(super) fn tell_held_long(watch: Option<Weak<dyn HeldLong>>, held_for: Duration) {
    match watch {
        // The watcher may be gone; the lock is about to be released then.
        Some(watch) => {
            if let Some(watch) = watch.upgrade() {
                watch.held_long(held_for);
            }
        }
        None => tracing::warn!(
            ?held_for,
            "a lock has been held for more than ten times its ttl; is its owner stuck? max_hold sets a limit"
        ),
    }
}
