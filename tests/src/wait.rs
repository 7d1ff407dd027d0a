//! Waits for a state instead of sleeping.

use std::time::{Duration, Instant};

/// The longest wait. Only a defect reaches it, also on a loaded machine with two cores.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Returns how long to pause before the state is looked at again.
///
/// A look may start a process or ask a browser, and would take the processor from what is waited for. So the pauses are a
/// tenth of the time so far.
fn pause(since: Instant) -> Duration {
    (since.elapsed() / 10).clamp(Duration::from_millis(2), Duration::from_millis(50))
}

/// Blocks until `state` holds.
///
/// # Panics
///
/// After [`PATIENCE`], with `what` in the message.
#[track_caller]
pub fn until(what: &str, mut state: impl FnMut() -> bool) {
    assert!(
        holds_within(PATIENCE, &mut state),
        "waited {PATIENCE:?} in vain until {what}"
    );
}

/// Blocks until `state` holds or `limit` is over, and returns whether it holds.
pub fn holds_within(limit: Duration, mut state: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if state() {
            return true;
        }
        if start.elapsed() > limit {
            return false;
        }
        std::thread::sleep(pause(start));
    }
}

/// Waits until `state` holds, without blocking the runtime.
///
/// # Panics
///
/// After [`PATIENCE`], with `what` in the message.
pub async fn eventually(what: &str, mut state: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !state().await {
        assert!(
            start.elapsed() < PATIENCE,
            "waited {PATIENCE:?} in vain until {what}"
        );
        tokio::time::sleep(pause(start)).await;
    }
}
