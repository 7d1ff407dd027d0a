//! The resource that contenders for one lock enter, and how long and how often they try.
//!
//! `LOCK_TESTS_REDLOCK` sets the number of acquisitions.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lock_core::LockGuard;
use lock_tests::wait;
use tokio::time::timeout;

/// The resource that one lock guards.
#[derive(Default)]
pub(super) struct Guarded {
    inside: AtomicBool,
    highest: AtomicU64,
    entered: AtomicU64,
}

impl Guarded {
    /// Enters and leaves the resource.
    pub(super) async fn enter(&self, guard: LockGuard) -> LockGuard {
        assert!(!self.inside.swap(true, Ordering::SeqCst), "two are inside");
        let token = u64::from(guard.fencing_token());
        let before = self.highest.swap(token, Ordering::SeqCst);
        assert!(before < token, "{token} was granted after {before}");
        tokio::task::yield_now().await;
        assert!(self.inside.swap(false, Ordering::SeqCst), "two were inside");
        self.entered.fetch_add(1, Ordering::SeqCst);
        guard
    }

    pub(super) fn entered(&self) -> u64 {
        self.entered.load(Ordering::SeqCst)
    }
}

pub(super) fn acquisitions() -> u64 {
    let told = std::env::var("LOCK_TESTS_REDLOCK");
    told.map_or(300, |it| it.parse().expect("a number"))
}

/// Returns the patience, because many contenders may keep the machine busy for a while.
pub(super) fn patience() -> Duration {
    wait::PATIENCE * (3 + u32::try_from(acquisitions() / 1_000).expect("small"))
}

/// Waits as [`wait::eventually`] does, for a state that may take as long as the test is told to run.
pub(super) async fn wait_long(what: &str, mut state: impl AsyncFnMut() -> bool) {
    let waited = timeout(patience(), async {
        while !state().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    let waited = waited.await;
    waited.unwrap_or_else(|_| panic!("waited in vain until {what}"));
}
