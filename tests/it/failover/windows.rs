//! When who believed to hold a lock, and what a resource that checks fencing tokens let through.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lock_core::FencingToken;

use super::TTL;

/// What a lock is for: it takes a write only from the highest fencing token that it has seen.
pub(super) struct Guarded {
    key: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    windows: Vec<Window>,
    highest: u64,
    /// Fencing tokens of the writes that were taken, in their order.
    taken: Vec<u64>,
    refused: usize,
}

/// One owner's: from when its acquire returned to the last moment at which it held, as it saw it.
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

    /// Somebody holds the lock from now on. Answers the window's number.
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

    /// It held the lock at `now` still, and writes.
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

    /// Nobody's fencing token is that of another; who held later has a higher one; two hold at once for
    /// no longer than a ttl, and then the writes of the first are refused from the first one of the
    /// second on. Answers how long that was.
    pub(super) fn check(&self) -> Duration {
        let state = self.state();
        let mut both = Duration::ZERO;
        for (index, one) in state.windows.iter().enumerate() {
            for other in &state.windows[index + 1..] {
                assert_ne!(one.fence, other.fence, "a fencing token is given once");
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
        assert!(both <= TTL, "two held it for {both:?}");
        assert!(state.taken.is_sorted(), "a late write came through");
        if !both.is_zero() {
            println!("two held it for {both:?}; {} writes refused", state.refused);
        }
        both
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
