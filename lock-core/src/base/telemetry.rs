//! Metrics for the recorder that the application has installed (feature `metrics`).
//!
//! Labels are words of the code: no key, token or namespace. So the number of series does not depend on the number of
//! keys. Without the feature each function here is empty, and the clock is not read.

#![cfg_attr(
    not(feature = "metrics"),
    allow(
        unused_mut,
        unused_variables,
        reason = "used by the feature `metrics` only"
    )
)]

use std::time::Duration;

use super::clock::Moment;
use super::error::Error;

/// One acquisition, until its caller has an answer. Dropped before, it counts as cancelled.
pub(crate) struct Acquisition {
    #[cfg(feature = "metrics")]
    started: Moment,
    #[cfg(feature = "metrics")]
    answered: bool,
}

impl Acquisition {
    #[inline]
    pub(crate) fn begins(now: impl FnOnce() -> Moment) -> Self {
        Self {
            #[cfg(feature = "metrics")]
            started: now(),
            #[cfg(feature = "metrics")]
            answered: false,
        }
    }

    /// Counts the answer. `waits`: a refusal is the end of a wait.
    #[inline]
    pub(crate) fn ends<T>(
        mut self,
        answer: &Result<T, Error>,
        waits: bool,
        now: impl FnOnce() -> Moment,
    ) {
        #[cfg(feature = "metrics")]
        {
            self.answered = true;
            if answer.is_ok() {
                let waited = now().since(self.started);
                metrics::histogram!("lock_acquire_seconds").record(waited);
            }
            count_acquisition(match answer.as_ref().map_err(Error::code) {
                Ok(_) => "granted",
                Err("lock_busy" | "lock_full") if waits => "timeout",
                Err(code) => code,
            });
        }
    }
}

#[cfg(feature = "metrics")]
impl Drop for Acquisition {
    fn drop(&mut self) {
        if !self.answered {
            count_acquisition("cancelled");
        }
    }
}

#[cfg(feature = "metrics")]
fn count_acquisition(outcome: &'static str) {
    metrics::counter!("lock_acquisitions_total", "outcome" => outcome).increment(1);
}

/// A task that may have to wait for a lock, until it is dropped.
#[derive(Default)]
pub(crate) struct WaitingTask {
    #[cfg(feature = "metrics")]
    counted: bool,
}

impl WaitingTask {
    /// Counts the task from now on, once.
    #[inline]
    pub(crate) fn waits(&mut self) {
        #[cfg(feature = "metrics")]
        if !std::mem::replace(&mut self.counted, true) {
            metrics::gauge!("lock_waiting").increment(1);
        }
    }
}

#[cfg(feature = "metrics")]
impl Drop for WaitingTask {
    fn drop(&mut self) {
        if self.counted {
            metrics::gauge!("lock_waiting").decrement(1);
        }
    }
}

/// Counts an owner that begins.
#[inline]
pub(crate) fn owner_begins() {
    #[cfg(feature = "metrics")]
    metrics::gauge!("lock_held").increment(1);
}

/// Counts an owner that has ended.
#[inline]
pub(crate) fn owner_ends(held_for: impl FnOnce() -> Duration) {
    #[cfg(feature = "metrics")]
    {
        metrics::gauge!("lock_held").decrement(1);
        metrics::histogram!("lock_hold_seconds").record(held_for());
    }
}

/// Counts a loss, at the moment in which the process notices it.
#[inline]
pub(crate) fn lost(reason: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!("lock_losses_total", "reason" => reason).increment(1);
}

/// Counts the answers to a batch of renewals.
#[inline]
pub(crate) fn renewals(renewed: usize, failed: usize) {
    #[cfg(feature = "metrics")]
    for (outcome, count) in [("renewed", renewed), ("failed", failed)] {
        if count > 0 {
            metrics::counter!("lock_renewals_total", "outcome" => outcome).increment(count as u64);
        }
    }
}
