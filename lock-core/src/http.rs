//! `Error` as an HTTP answer (feature `axum`: axum-core and http, not axum).

use std::time::Duration;

use axum_core::body::Body;
use axum_core::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};

use crate::{Error, ErrorKind, FromLockError};

/// 409, 503 or 500 as `application/problem+json` (RFC 9457), with a `code` and, where trying again
/// makes sense, `Retry-After` in whole seconds, rounded up and never 0.
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let status = StatusCode::from(&self);
        let body = format!(
            r#"{{"type":"about:blank","title":"{}","status":{},"code":"{}"}}"#,
            title(&self),
            status.as_u16(),
            self.code(),
        );
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        // A stranger's key may have no end: an answer that says "try again" says when all the same.
        let unknown = (self.kind() == ErrorKind::Busy).then_some(Duration::from_secs(1));
        if let Some(wait) = self.retry_after().or(unknown) {
            let seconds = wait.as_millis().div_ceil(1000).max(1);
            if let Ok(value) = HeaderValue::try_from(seconds.to_string()) {
                headers.insert(header::RETRY_AFTER, value);
            }
        }
        response
    }
}

/// Words for a client: what happened, nothing about the set-up.
fn title(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Busy if error.is_cooling_down() => "This was done a moment ago",
        ErrorKind::Busy => "This is being done already",
        ErrorKind::Unavailable => "The lock service gave no answer",
        ErrorKind::Lost => "The lock was lost while the work ran",
        ErrorKind::Misconfigured | ErrorKind::Invalid => "The lock is not set up correctly",
    }
}

impl From<&Error> for StatusCode {
    fn from(error: &Error) -> StatusCode {
        StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<Error> for StatusCode {
    fn from(error: Error) -> StatusCode {
        StatusCode::from(&error)
    }
}

impl From<Error> for (StatusCode, String) {
    fn from(error: Error) -> (StatusCode, String) {
        (StatusCode::from(&error), title(&error).to_owned())
    }
}

#[diagnostic::do_not_recommend]
impl FromLockError for Response {
    fn from_lock_error(error: Error) -> Self {
        error.into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_whole_seconds_and_never_zero() {
        let after = |wait| {
            let response = Error::busy(true, Some(wait)).into_response();
            response.headers()[header::RETRY_AFTER]
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(after(Duration::ZERO), "1");
        assert_eq!(after(Duration::from_millis(1001)), "2");
    }

    #[test]
    fn a_refusal_that_knows_no_end_says_when_to_try_again_all_the_same() {
        let response = Error::busy(false, None).into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        let response = Error::invalid("no use").into_response();
        assert!(!response.headers().contains_key(header::RETRY_AFTER));
    }

    #[test]
    fn a_dead_store_is_a_503() {
        let response = Error::unavailable("no answer").into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(
            response.headers()[header::CONTENT_TYPE],
            "application/problem+json"
        );
    }
}
