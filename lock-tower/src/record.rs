//! What is told of requests: log lines and, with the feature `metrics`, numbers.
//!
//! Labels are the layer's name, which the program says, and words of this file: there is no key,
//! path or user in any of it, and no more series than layers times words.

use std::time::{Duration, Instant};

use crate::rejection::{Rejection, RejectionKind};
use crate::stuck::{Place, StuckWatch};

/// Tells of the requests of one layer.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "metrics"),
    allow(clippy::unused_self, reason = "counted by the feature only")
)]
pub(crate) struct Record {
    pub(crate) layer: &'static str,
}

#[cfg_attr(
    not(feature = "metrics"),
    allow(unused_variables, reason = "counted by the feature only")
)]
impl Record {
    pub(crate) fn new(layer: &'static str) -> Self {
        Self { layer }
    }

    /// It has its lock, of the store or of the fallback.
    pub(crate) fn granted(self, fell_back: bool, asked: Stopwatch) {
        if fell_back {
            tracing::warn!(
                layer = self.layer,
                "the lock store gave no answer: a request runs under a lock of this process alone"
            );
        }
        self.count_request(if fell_back { "fallback" } else { "granted" }, "locked");
        #[cfg(feature = "metrics")]
        metrics::histogram!("lock_layer_acquire_seconds", "layer" => self.layer)
            .record(asked.elapsed());
    }

    pub(crate) fn refused(self, rejection: &Rejection) {
        tracing::debug!(
            layer = self.layer,
            code = rejection.code(),
            "a request was refused by its lock layer"
        );
        self.count_request(rejection.code(), "refused");
    }

    /// A layer around this one has the lock already. Said for every request, as other mistakes in the
    /// set-up are: none of them gets through.
    pub(crate) fn twice(self) -> Rejection {
        tracing::error!(
            layer = self.layer,
            "two lock layers around one handler make the same key, and no request gets through both: \
             take one away, or begin their templates differently"
        );
        Rejection::twice()
    }

    /// It runs without a lock.
    pub(crate) fn passed(self, rejection: &Rejection, shadow: bool) {
        let (layer, code) = (self.layer, rejection.code());
        if shadow {
            tracing::info!(
                layer,
                code,
                "a request runs that its lock layer would have refused"
            );
        } else if rejection.kind() == RejectionKind::Unavailable {
            tracing::warn!(
                layer,
                "the lock store gave no answer: a request runs without a lock"
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

    /// Its client has gone while the handler ran.
    pub(crate) fn disconnected(self) {
        tracing::debug!(
            layer = self.layer,
            "the client of a request went away while its handler ran"
        );
        #[cfg(feature = "metrics")]
        metrics::counter!("lock_layer_disconnects_total", "layer" => self.layer).increment(1);
    }

    /// It holds its lock for very long.
    pub(crate) fn stuck(
        self,
        watch: &StuckWatch,
        template: Option<&str>,
        place: &Place,
        held_for: Duration,
    ) {
        #[expect(
            clippy::disallowed_methods,
            reason = "how often it is logged, no lease"
        )]
        let others = watch.one_more(Instant::now());
        if let Some(others) = others {
            tracing::warn!(
                layer = self.layer,
                template,
                method = %place.method,
                route = place.route(),
                ?held_for,
                others,
                "a handler has held its lock for more than ten ttls and refuses its user everything \
                 meanwhile; does it hang? Put a timeout inside of the lock layer, and set max_hold"
            );
        }
    }

    /// Its lock is to be given back, after it was held for so long.
    pub(crate) fn held(self, held_for: Duration) {
        #[cfg(feature = "metrics")]
        metrics::histogram!("lock_layer_hold_seconds", "layer" => self.layer).record(held_for);
    }

    /// Its release was answered, or not waited for any longer.
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
                "the lock of a request was not released as it should be"
            ),
        }
        #[cfg(feature = "metrics")]
        metrics::counter!(
            "lock_layer_releases_total", "layer" => self.layer, "outcome" => outcome
        )
        .increment(1);
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

/// When the lock was asked for. For the numbers only: no lease is compared with it.
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
