//! Records which owner held a lock at which time.
//!
//! It also records which writes a resource accepted by their fencing tokens.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lock_core::FencingToken;

use super::TTL;

/// A guarded resource, which accepts a write only from the highest fencing token that it has seen.
pub(super) struct Guarded {
    key: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    windows: Vec<Window>,
    highest: u64,
    /// The fencing tokens of the accepted writes, in their order.
    taken: Vec<u64>,
    refused: usize,
}

/// The window of one owner.
///
/// It runs from the return of the acquire to the last moment at which the owner saw its lock valid.
struct Window {
    asked: Instant,
    from: Instant,
    until: Instant,
    fence: u64,
}

impl Guarded {
    pub(super) fn new(key: String) -> Self {
        Self {
            key,
            state: Mutex::default(),
        }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Begins the window of an owner and returns the window's number.
    pub(super) fn enter(&self, asked: Instant, fence: FencingToken) -> usize {
        let from = Instant::now();
        let mut state = self.state();
        state.windows.push(Window {
            asked,
            from,
            until: from,
            fence: fence.into(),
        });
        state.windows.len() - 1
    }

    /// Writes for an owner that still held the lock at `now`.
    pub(super) fn write(&self, window: usize, now: Instant) {
        let mut state = self.state();
        state.windows[window].until = now;
        let fence = state.windows[window].fence;
        if fence < state.highest {
            state.refused += 1;
        } else {
            state.highest = fence;
            state.taken.push(fence);
        }
    }

    pub(super) fn first_asked_after(&self, instant: Instant) -> Option<Instant> {
        let state = self.state();
        let later = state
            .windows
            .iter()
            .filter(|window| window.asked >= instant);
        later.map(|window| window.from).min()
    }

    /// Checks all windows and returns the longest time for which two owners held the lock.
    ///
    /// * No fencing token is given twice, and a later owner has a higher one.
    /// * Two owners hold at once for a ttl at most.
    /// * Writes of the first owner are refused from the first write of the second on.
    pub(super) fn check(&self) -> Duration {
        let state = self.state();
        let mut both = Duration::ZERO;
        for (index, one) in state.windows.iter().enumerate() {
            for other in &state.windows[index + 1..] {
                assert_ne!(one.fence, other.fence, "a fencing token is granted once");
                let (first, second) = if one.from <= other.from {
                    (one, other)
                } else {
                    (other, one)
                };
                if first.until < second.asked {
                    assert!(first.fence < second.fence, "fencing tokens rise");
                }
                both = both.max(first.until.saturating_duration_since(second.from));
            }
        }
        assert!(both <= TTL, "two owners held the lock for {both:?}");
        assert!(state.taken.is_sorted(), "a late write came through");
        if !both.is_zero() {
            println!(
                "two owners held the lock for {both:?}; {} writes were refused",
                state.refused
            );
        }
        both
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
