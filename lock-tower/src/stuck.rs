//! Handlers that do not end: their keys are shut for as long as they run.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use http::{Method, Request};

/// At most one line for a layer in that time, however many of its handlers are stuck.
const PAUSE: Duration = Duration::from_secs(10);

/// Where a request has come to, as a log may say it: neither its path nor a value of it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) method: Method,
    #[cfg(feature = "axum")]
    route: Option<axum::extract::MatchedPath>,
}

impl Place {
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        Self {
            method: request.method().clone(),
            #[cfg(feature = "axum")]
            route: request.extensions().get().cloned(),
        }
    }

    /// The route that axum has matched, with the names of its parameters.
    pub(crate) fn route(&self) -> Option<&str> {
        #[cfg(feature = "axum")]
        return self.route.as_ref().map(|route| route.as_str());
        #[cfg(not(feature = "axum"))]
        None
    }
}

/// Bounds how often a layer tells of stuck handlers.
#[derive(Debug, Default)]
pub(crate) struct StuckWatch(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    at: Option<Instant>,
    /// Not told of since then.
    others: u32,
}

impl StuckWatch {
    /// Whether to tell of one more, and how many were not told of since the last line.
    pub(crate) fn one_more(&self, now: Instant) -> Option<u32> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = |at: Instant| now.saturating_duration_since(at) < PAUSE;
        if told.at.is_some_and(recent) {
            told.others += 1;
            return None;
        }
        told.at = Some(now);
        Some(std::mem::take(&mut told.others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_stuck_handlers_are_two_lines_in_a_pause_and_none_is_forgotten() {
        let watch = StuckWatch::default();
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        assert_eq!(watch.one_more(start), Some(0));
        for _ in 0..999 {
            assert_eq!(watch.one_more(start + PAUSE / 2), None);
        }
        assert_eq!(watch.one_more(start + PAUSE), Some(999));
        assert_eq!(watch.one_more(start + PAUSE), None);
        assert_eq!(watch.one_more(start + PAUSE * 2), Some(1));
    }
}
