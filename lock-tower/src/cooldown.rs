//! For how long a key stays taken after a request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode, response};

type OfResponse = dyn Fn(&response::Parts) -> Duration + Send + Sync;

/// The layer's rule. The handler may say otherwise, see [`LockContext`](crate::LockContext).
#[derive(Clone, Default)]
pub(crate) struct Cooldown {
    /// From the release on.
    pub(crate) after_success: Duration,
    /// From the grant on.
    pub(crate) interval: Duration,
    pub(crate) of_response: Option<Arc<OfResponse>>,
}

impl Cooldown {
    /// That is known before there is a response.
    pub(crate) fn longest(&self) -> Duration {
        match &self.of_response {
            Some(_) => Duration::ZERO,
            None => self.after_success.max(self.interval),
        }
    }

    /// From here on, for a lock that was held for so long.
    pub(crate) fn after(&self, head: &response::Parts, held_for: Duration) -> Duration {
        match &self.of_response {
            Some(function) => function(head),
            None if has_succeeded(head.status, &head.headers) => self
                .after_success
                .max(self.interval.saturating_sub(held_for)),
            None => Duration::ZERO,
        }
    }
}

/// 303 is how a form's handler says "done, look there". Other redirects, and errors, say that the
/// work was not done here: the next try is welcome. gRPC says so in a header, under the status 200.
fn has_succeeded(status: StatusCode, headers: &HeaderMap) -> bool {
    let by_status = status.is_success() || status == StatusCode::SEE_OTHER;
    by_status && !is_grpc_error(headers)
}

/// Said in the head of an answer, or in its trailers.
pub(crate) fn is_grpc_error(headers: &HeaderMap) -> bool {
    headers.get("grpc-status").is_some_and(|code| code != "0")
}

impl fmt::Debug for Cooldown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.of_response.is_some() {
            return f.write_str("by the response");
        }
        f.debug_struct("Cooldown")
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

    fn rule(after_success: u64, interval: u64) -> Cooldown {
        Cooldown {
            after_success: seconds(after_success),
            interval: seconds(interval),
            of_response: None,
        }
    }

    #[test]
    fn only_2xx_and_303_are_followed_by_a_cooldown() {
        let rule = rule(2, 0);
        let cools = |status: &u16| !rule.after(&head(*status, None), seconds(0)).is_zero();
        let successes: Vec<u16> = (100..600).filter(cools).collect();
        let expected: Vec<u16> = (200..300).chain([303]).collect();
        assert_eq!(successes, expected);
    }

    #[test]
    fn a_grpc_error_under_the_status_200_is_followed_by_none() {
        let rule = rule(2, 0);
        assert_eq!(rule.after(&head(200, Some("0")), seconds(0)), seconds(2));
        assert_eq!(rule.after(&head(200, Some("5")), seconds(0)), seconds(0));
    }

    #[test]
    fn an_interval_counts_from_the_start_and_the_longer_of_both_counts() {
        let ok = head(200, None);
        assert_eq!(rule(0, 10).after(&ok, seconds(3)), seconds(7));
        assert_eq!(rule(0, 10).after(&ok, seconds(30)), seconds(0));
        assert_eq!(rule(2, 10).after(&ok, seconds(9)), seconds(2));
        assert_eq!(rule(0, 10).after(&head(500, None), seconds(3)), seconds(0));
    }

    #[test]
    fn a_function_of_the_response_decides_alone() {
        let mut rule = rule(2, 10);
        rule.of_response = Some(Arc::new(|head| seconds(u64::from(head.status.as_u16()))));
        assert_eq!(rule.after(&head(500, None), seconds(3)), seconds(500));
    }
}
