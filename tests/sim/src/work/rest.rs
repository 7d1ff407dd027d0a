//! Calls that are not polled for a time, as in a `select!` whose other branch runs.

use std::pin::pin;
use std::time::Duration;

use lock_core::machine::{sleep, timeout};

/// The time of a call after which it is not polled, and for how long, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    pub(super) after: u64,
    pub(super) lasts: u64,
}

/// Polls a future, but not while it rests.
pub(super) async fn resting<F: Future>(future: F, rest: Option<Rest>) -> F::Output {
    let mut future = pin!(future);
    if let Some(Rest { after, lasts }) = rest {
        let before = timeout(Duration::from_nanos(after), future.as_mut()).await;
        if let Ok(output) = before {
            return output;
        }
        sleep(Duration::from_nanos(lasts)).await;
    }
    future.await
}
