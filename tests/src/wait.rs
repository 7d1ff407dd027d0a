//! Waiting for a state, instead of sleeping and hoping.

use std::time::{Duration, Instant};

/// Long enough for a loaded machine with two cores: reached only when something is broken.
pub const PATIENCE: Duration = Duration::from_secs(20);

const PAUSE: Duration = Duration::from_millis(2);

/// Blocks until `state` holds.
///
/// # Panics
///
/// After [`PATIENCE`], naming `what` was waited for.
#[track_caller]
pub fn until(what: &str, mut state: impl FnMut() -> bool) {
    assert!(
        holds_within(PATIENCE, &mut state),
        "waited {PATIENCE:?} in vain until {what}"
    );
}

/// Blocks until `state` holds or `limit` is over, and says which.
pub fn holds_within(limit: Duration, mut state: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if state() {
            return true;
        }
        if start.elapsed() > limit {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Waits until `state` holds, without blocking the runtime.
///
/// # Panics
///
/// After [`PATIENCE`], naming `what` was waited for.
pub async fn eventually(what: &str, mut state: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !state().await {
        assert!(
            start.elapsed() < PATIENCE,
            "waited {PATIENCE:?} in vain until {what}"
        );
        tokio::time::sleep(PAUSE).await;
    }
}
