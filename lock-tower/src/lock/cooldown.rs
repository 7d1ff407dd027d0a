//! The rule that decides how long a key stays taken after a request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{Extensions, HeaderMap, StatusCode, response};

#[cfg(feature = "replay")]
use super::Replayed;
use crate::rejection::Rejection;

type ByResponse = dyn Fn(&response::Parts) -> Duration + Send + Sync;

/// The layer's rule, which the handler can override by its [`LockContext`](crate::LockContext).
#[derive(Clone, Default)]
pub(crate) struct CooldownRule {
    /// Counts from the release.
    pub(crate) after_success: Duration,
    /// Counts from the grant.
    pub(crate) interval: Duration,
    pub(crate) by_response: Option<Arc<ByResponse>>,
}

impl CooldownRule {
    /// Returns whether a request can be followed by a cooldown of this rule.
    pub(crate) fn is_set(&self) -> bool {
        self.by_response.is_some() || !self.longest().is_zero()
    }

    /// Returns the longest cooldown that is known before there is a response.
    pub(crate) fn longest(&self) -> Duration {
        match &self.by_response {
            Some(_) => Duration::ZERO,
            None => self.after_success.max(self.interval),
        }
    }

    /// Returns the cooldown after this response.
    pub(crate) fn after(&self, head: &response::Parts) -> Cooldown {
        let (from_release, from_grant) = match &self.by_response {
            _ if is_by_inner_layer(&head.extensions) => Default::default(),
            Some(function) => (function(head), Duration::ZERO),
            None if has_succeeded(head) => (self.after_success, self.interval),
            None => Default::default(),
        };
        Cooldown {
            from_release,
            from_grant,
        }
    }
}

/// The cooldown of one request by the layer's rule.
#[derive(Clone, Copy)]
pub(crate) struct Cooldown {
    from_release: Duration,
    from_grant: Duration,
}

impl Cooldown {
    /// Returns the rest of the cooldown when a lock is released that was held for `held_for`.
    pub(super) fn rest(self, held_for: Duration) -> Duration {
        self.from_release
            .max(self.from_grant.saturating_sub(held_for))
    }
}

/// Returns whether an inner lock layer has made this response: a refusal, or the repeated answer of an earlier request.
///
/// The handler has not run, so this request has done nothing.
pub(crate) fn is_by_inner_layer(response: &Extensions) -> bool {
    #[cfg(feature = "replay")]
    if response.get::<Replayed>().is_some() {
        return true;
    }
    response.get::<Rejection>().is_some()
}

/// Returns whether the handler has done its work.
///
/// A form's handler answers 303 when the work is done and the result is elsewhere. Other redirects
/// and errors mean that the work was not done here, so the client may retry at once. A failed gRPC
/// call has the status 200 and an error in a header.
pub(crate) fn has_succeeded(head: &response::Parts) -> bool {
    let by_status = head.status.is_success() || head.status == StatusCode::SEE_OTHER;
    by_status && !is_grpc_error(&head.headers)
}

/// Returns whether the headers or trailers of a response contain a gRPC error.
pub(crate) fn is_grpc_error(headers: &HeaderMap) -> bool {
    headers.get("grpc-status").is_some_and(|code| code != "0")
}

impl fmt::Debug for CooldownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.by_response.is_some() {
            return f.write_str("by the response");
        }
        f.debug_struct("CooldownRule")
            .field("after_success", &self.after_success)
            .field("interval", &self.interval)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Response;

    fn head(status: u16, grpc_status: Option<&str>) -> response::Parts {
        let mut response = Response::builder().status(status);
        if let Some(code) = grpc_status {
            response = response.header("grpc-status", code);
        }
        response.body(()).unwrap().into_parts().0
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn rest(rule: &CooldownRule, head: &response::Parts, held_for: u64) -> Duration {
        rule.after(head).rest(seconds(held_for))
    }

    fn rule(after_success: u64, interval: u64) -> CooldownRule {
        CooldownRule {
            after_success: seconds(after_success),
            interval: seconds(interval),
            by_response: None,
        }
    }

    #[test]
    fn only_2xx_and_303_are_followed_by_a_cooldown() {
        let rule = rule(2, 0);
        let cools = |status: &u16| !rest(&rule, &head(*status, None), 0).is_zero();
        let successes: Vec<u16> = (100..600).filter(cools).collect();
        let expected: Vec<u16> = (200..300).chain([303]).collect();
        assert_eq!(successes, expected);
    }

    #[test]
    fn a_grpc_error_under_the_status_200_is_followed_by_none() {
        let rule = rule(2, 0);
        assert_eq!(rest(&rule, &head(200, Some("0")), 0), seconds(2));
        assert_eq!(rest(&rule, &head(200, Some("5")), 0), seconds(0));
    }

    #[test]
    fn an_interval_counts_from_the_start_and_the_longer_of_both_counts() {
        let ok = head(200, None);
        assert_eq!(rest(&rule(0, 10), &ok, 3), seconds(7));
        assert_eq!(rest(&rule(0, 10), &ok, 30), seconds(0));
        assert_eq!(rest(&rule(2, 10), &ok, 9), seconds(2));
        assert_eq!(rest(&rule(0, 10), &head(500, None), 3), seconds(0));
    }

    #[test]
    fn a_function_of_the_response_decides_alone() {
        let mut rule = rule(2, 10);
        rule.by_response = Some(Arc::new(|head| seconds(u64::from(head.status.as_u16()))));
        assert_eq!(rest(&rule, &head(500, None), 3), seconds(500));
    }
}
