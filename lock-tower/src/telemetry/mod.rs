//! Log lines and, with the feature `metrics`, metrics about the requests of a layer.
//!
//! Labels are the layer's name, which the program chooses, and words of this file. They contain no
//! key, path or user. The number of series is therefore the number of layers times that of words.

mod in_flight;
mod long_holds;
mod misplacement;

use std::time::Duration;

use crate::rejection::{Rejection, RejectionKind};

pub use in_flight::InFlight;
pub(crate) use in_flight::OpenRequest;
pub(crate) use long_holds::{Endpoint, LongHolds};
pub(crate) use misplacement::MisplacementDetector;

/// Reports what happens to the requests of one layer.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "metrics"),
    allow(clippy::unused_self, reason = "used by the feature `metrics` only")
)]
pub(crate) struct Telemetry {
    pub(crate) layer: &'static str,
}

#[cfg_attr(
    not(feature = "metrics"),
    allow(unused_variables, reason = "used by the feature `metrics` only")
)]
impl Telemetry {
    pub(crate) fn new(layer: &'static str) -> Self {
        Self { layer }
    }

    /// Reports a request that has acquired its lock, from the store or from the fallback.
    pub(crate) fn granted(self, fell_back: bool, waited: Stopwatch) {
        if fell_back {
            tracing::warn!(
                layer = self.layer,
                "the lock store did not answer: a request runs under a lock of this process alone"
            );
        }
        self.count_request(if fell_back { "fallback" } else { "granted" }, "locked");
        #[cfg(feature = "metrics")]
        metrics::histogram!("lock_layer_acquire_seconds", "layer" => self.layer)
            .record(waited.elapsed());
    }

    pub(crate) fn refused(self, rejection: &Rejection) {
        tracing::debug!(
            layer = self.layer,
            code = rejection.code(),
            "the lock layer refused a request"
        );
        self.count_request(rejection.code(), "refused");
    }

    /// Reports that an outer layer already holds the lock of this request.
    ///
    /// It is logged for every request, because none of them passes both layers.
    pub(crate) fn held_by_outer_layer(self) -> Rejection {
        tracing::error!(
            layer = self.layer,
            "two nested lock layers make the same key, so they refuse every request: remove one of \
             them, or give their templates different beginnings"
        );
        Rejection::new(RejectionKind::Invalid)
    }

    /// Reports a request that runs without a lock.
    pub(crate) fn passed(self, rejection: &Rejection, shadow: bool) {
        let (layer, code) = (self.layer, rejection.code());
        if shadow {
            tracing::info!(
                layer,
                code,
                "shadow mode: the lock layer would have refused this request"
            );
        } else if rejection.kind() == RejectionKind::Unavailable {
            tracing::warn!(
                layer,
                "the lock store did not answer: a request runs without a lock"
            );
        } else {
            tracing::debug!(layer, code, "a request runs without a lock");
        }
        self.count_request(code, "passed");
    }

    pub(crate) fn began(self) {
        #[cfg(feature = "metrics")]
        metrics::gauge!("lock_layer_in_flight", "layer" => self.layer).increment(1);
    }

    pub(crate) fn ended(self) {
        #[cfg(feature = "metrics")]
        metrics::gauge!("lock_layer_in_flight", "layer" => self.layer).decrement(1);
    }

    /// Reports that the request was dropped while its handler ran.
    pub(crate) fn disconnected(self) {
        tracing::debug!(
            layer = self.layer,
            "a client disconnected while its handler ran"
        );
        #[cfg(feature = "metrics")]
        metrics::counter!("lock_layer_disconnects_total", "layer" => self.layer).increment(1);
    }

    /// Reports a handler that has held its lock for very long.
    ///
    /// `others` counts the handlers that were left out since the last report.
    pub(crate) fn held_long(
        self,
        template: Option<&str>,
        endpoint: &Endpoint,
        held_for: Duration,
        others: u32,
    ) {
        tracing::warn!(
            layer = self.layer,
            template,
            method = %endpoint.method,
            route = endpoint.route(),
            ?held_for,
            others,
            "a handler has held its lock for more than ten ttls, and all other requests with its key \
             are refused; put a timeout inside of the lock layer, and set max_hold"
        );
    }

    /// Reports that the lock is about to be released, and how long it was held.
    pub(crate) fn held(self, held_for: Duration) {
        #[cfg(feature = "metrics")]
        metrics::histogram!("lock_layer_hold_seconds", "layer" => self.layer).record(held_for);
    }

    /// Reports that the release was answered, or that the layer stopped waiting for the answer.
    pub(crate) fn released(self, outcome: &'static str) {
        match outcome {
            "released" => {}
            "background" => tracing::debug!(
                layer = self.layer,
                "the lock of a request is released in the background"
            ),
            code => tracing::warn!(
                layer = self.layer,
                code,
                "the release of a request's lock failed"
            ),
        }
        #[cfg(feature = "metrics")]
        metrics::counter!(
            "lock_layer_releases_total", "layer" => self.layer, "outcome" => outcome
        )
        .increment(1);
    }

    /// Reports a duplicate that got the answer of the first request.
    #[cfg(feature = "replay")]
    pub(crate) fn replayed(self) {
        tracing::debug!(
            layer = self.layer,
            "the lock layer repeated the answer of the first request"
        );
        self.count_request("replayed", "replayed");
    }

    /// Reports what the store has kept of a request, and the size of a recorded answer.
    ///
    /// Another outcome than these two is one of which the store has not said that it keeps the record.
    #[cfg(feature = "replay")]
    pub(crate) fn recorded(self, outcome: &'static str, bytes: Option<usize>) {
        if !matches!(outcome, "answer" | "done") {
            tracing::warn!(
                layer = self.layer,
                outcome,
                "the store has not confirmed that it keeps the answer to a request"
            );
        }
        #[cfg(feature = "metrics")]
        {
            metrics::counter!(
                "lock_layer_records_total", "layer" => self.layer, "outcome" => outcome
            )
            .increment(1);
            if let Some(bytes) = bytes {
                metrics::histogram!("lock_layer_record_bytes", "layer" => self.layer)
                    .record(bytes as f64);
            }
        }
    }

    /// Reports a record that this process cannot read.
    #[cfg(feature = "replay")]
    pub(crate) fn unreadable(self, reason: &'static str) {
        tracing::error!(
            layer = self.layer,
            reason,
            "the recorded answer to a request cannot be read, so its duplicates are refused and its handler does not \
             run again"
        );
    }

    fn count_request(self, outcome: &'static str, action: &'static str) {
        #[cfg(feature = "metrics")]
        metrics::counter!(
            "lock_layer_requests_total",
            "layer" => self.layer, "outcome" => outcome, "action" => action
        )
        .increment(1);
    }
}

/// Measures how long a request waits for its lock. No lease depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    #[cfg(feature = "metrics")]
    started: std::time::Instant,
}

#[cfg_attr(
    feature = "metrics",
    expect(clippy::disallowed_methods, reason = "a measurement, not a deadline")
)]
impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self {
            #[cfg(feature = "metrics")]
            started: std::time::Instant::now(),
        }
    }

    #[cfg(feature = "metrics")]
    fn elapsed(self) -> Duration {
        self.started.elapsed()
    }
}
