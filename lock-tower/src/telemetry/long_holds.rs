//! Reports handlers that do not end, because their keys stay locked for as long as they run.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use http::{Method, Request};

use super::Telemetry;

/// The shortest time between two log lines of one layer.
const PAUSE: Duration = Duration::from_secs(10);

/// The method and route of a request, which a log may contain; neither its path nor its values.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    #[cfg(feature = "axum")]
    route: Option<axum::extract::MatchedPath>,
}

impl Endpoint {
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        Self {
            method: request.method().clone(),
            #[cfg(feature = "axum")]
            route: request.extensions().get().cloned(),
        }
    }

    /// Returns the route that axum matched, with the names of its parameters.
    pub(crate) fn route(&self) -> Option<&str> {
        #[cfg(feature = "axum")]
        return self.route.as_ref().map(|route| route.as_str());
        #[cfg(not(feature = "axum"))]
        None
    }
}

/// Reports the long holds of one layer, at most one in each [`PAUSE`].
#[derive(Debug, Default)]
pub(crate) struct LongHolds {
    /// The template of the layer's key, if it has one.
    template: Option<Box<str>>,
    limit: Mutex<RateLimit>,
}

#[derive(Debug, Default)]
struct RateLimit {
    last: Option<Instant>,
    /// Long holds since the last line, which were left out of the log.
    others: u32,
}

impl LongHolds {
    pub(crate) fn of_template(template: &str) -> Self {
        Self {
            template: Some(template.into()),
            ..Self::default()
        }
    }

    pub(crate) fn report(&self, telemetry: Telemetry, endpoint: &Endpoint, held_for: Duration) {
        #[expect(
            clippy::disallowed_methods,
            reason = "limits log lines; no lease depends on it"
        )]
        let now = Instant::now();
        if let Some(others) = self.admit(now) {
            telemetry.held_long(self.template.as_deref(), endpoint, held_for, others);
        }
    }

    /// Decides whether to log one more, and returns how many were left out since the last line.
    fn admit(&self, now: Instant) -> Option<u32> {
        let mut limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = |last: Instant| now.saturating_duration_since(last) < PAUSE;
        if limit.last.is_some_and(recent) {
            limit.others += 1;
            return None;
        }
        limit.last = Some(now);
        Some(std::mem::take(&mut limit.others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_long_holds_are_two_lines_in_a_pause_and_none_is_forgotten() {
        let holds = LongHolds::default();
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        assert_eq!(holds.admit(start), Some(0));
        for _ in 0..999 {
            assert_eq!(holds.admit(start + PAUSE / 2), None);
        }
        assert_eq!(holds.admit(start + PAUSE), Some(999));
        assert_eq!(holds.admit(start + PAUSE), None);
        assert_eq!(holds.admit(start + PAUSE * 2), Some(1));
    }
}
