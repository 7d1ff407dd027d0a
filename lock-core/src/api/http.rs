//! `Error` as an HTTP response. The feature `axum` needs axum-core and http, not axum.

use std::time::Duration;

use axum_core::body::Body;
use axum_core::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};

use crate::base::error::{Error, ErrorKind};
use crate::base::from_error::FromLockError;

/// Responds as [`Error::problem`] does, with the kit's own type URIs.
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        self.problem("urn:lockkit:problem:")
    }
}

/// HTTP responses (feature `axum`).
impl Error {
    /// Returns the response as `application/problem+json` (RFC 9457).
    ///
    /// | member | value |
    /// | --- | --- |
    /// | `type` | `types` followed by the [code](Self::code) |
    /// | `title`, `detail` | a short title, and one or two sentences, for a person |
    /// | `status` | [409, 422, 429, 503 or 500](Self::http_status) |
    /// | `code` | the [code](Self::code) |
    /// | `retry_after_ms` | the time of the header `Retry-After`, in milliseconds |
    ///
    /// `types` is the URL under which the service documents its problems, such as
    /// `https://shop.example/problems/`. Without this method, `type` is `urn:lockkit:problem:` and
    /// the code, which is only a name. Characters that are not valid in a URI are removed.
    ///
    /// `Retry-After` is in whole seconds, rounded up and never 0. It is exact while the key cools down. Work that is done
    /// (`lock_done`) has none, because it would run again after the life of its record. While the key is held it is 1, because the
    /// end of the owner's work is unknown. A script of another origin can read the header only if
    /// `Access-Control-Expose-Headers` names it, but it can always read the body.
    ///
    /// # Examples
    ///
    /// ```
    /// use axum_core::response::{IntoResponse, Response};
    ///
    /// enum ShopError { Lock(lock_core::Error) }
    ///
    /// impl IntoResponse for ShopError {
    ///     fn into_response(self) -> Response {
    ///         match self {
    ///             Self::Lock(error) => error.problem("https://shop.example/problems/"),
    ///         }
    ///     }
    /// }
    /// # let error = |error| ShopError::Lock(error).into_response();
    /// # let _ = error;
    /// ```
    #[must_use]
    pub fn problem(&self, types: &str) -> Response {
        let status = StatusCode::from(self);
        let (title, detail) = words(self);
        let wait = retry_after(self);
        let again = wait.map_or(String::new(), |wait| {
            format!(r#","retry_after_ms":{}"#, rounded_up(wait, 1_000_000))
        });
        let types: String = types
            .chars()
            .filter(|c| c.is_ascii_graphic() && !matches!(c, '"' | '\\'))
            .collect();
        let code = self.code();
        let body = format!(
            r#"{{"type":"{types}{code}","title":"{title}","status":{},"detail":"{detail}","code":"{code}"{again}}}"#,
            status.as_u16(),
        );
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(wait) = wait {
            headers.insert(header::RETRY_AFTER, rounded_up(wait, 1_000_000_000).into());
        }
        response
    }
}

/// Returns the time for `Retry-After`.
///
/// The rest of a cooldown is known. The rest of a lease says little about the end of the work,
/// because most work takes far less than a ttl.
fn retry_after(error: &Error) -> Option<Duration> {
    let hint = Duration::from_secs(1);
    match error.kind() {
        ErrorKind::Busy if error.is_done() => None,
        ErrorKind::Busy if error.is_cooling_down() => error.retry_after().or(Some(hint)),
        ErrorKind::Busy => Some(hint),
        _ => error.retry_after(),
    }
}

/// Rounds up to whole units, and never to 0, which would mean "at once".
fn rounded_up(wait: Duration, unit: u128) -> u64 {
    let units = wait.as_nanos().div_ceil(unit).max(1);
    u64::try_from(units).unwrap_or(u64::MAX)
}

/// Returns a title and a detail for a client, with nothing about the configuration.
///
/// A call may be a part of a handler, so the texts speak of the locked work only. The layer has the same texts,
/// except that of `lock_key_reused`: there it also says that the attempt was not carried out.
fn words(error: &Error) -> (&'static str, &'static str) {
    match error.kind() {
        ErrorKind::Busy if error.is_done() => (
            "Already handled",
            "Another request like this one has been handled, and its answer is not kept. Please check its outcome. Do \
             not send it again.",
        ),
        ErrorKind::Busy if error.is_cooling_down() => (
            "Too soon to repeat",
            "Another request like this one was made recently. Please check its outcome before you send it again.",
        ),
        ErrorKind::Busy if error.is_full() => (
            "Too many in progress",
            "As many of these requests are in progress as are allowed at a time. Please try again in a \
             moment.",
        ),
        ErrorKind::Busy => (
            "Already in progress",
            "Another request like this one is in progress. Please wait for its outcome before you send it again.",
        ),
        ErrorKind::Unavailable if error.is_outcome_unknown() => (
            "Outcome not known yet",
            "It is not known yet whether the request was carried out. Please send the same request again. It is not \
             carried out twice.",
        ),
        ErrorKind::Unavailable => (
            "Lock service unavailable",
            "The lock service gave no answer. Please try again in a moment.",
        ),
        ErrorKind::Lost => (
            "Lock lost",
            "The lock was lost while the work ran. The work may be half done.",
        ),
        ErrorKind::Reused => (
            "Request differs from the first",
            "Another request was sent with the same identity before. Please use a new idempotency key for a new request.",
        ),
        ErrorKind::Unreadable => (
            "Outcome not readable",
            "Another request like this one has been handled, and its outcome cannot be read. Please check it. Do not send it again.",
        ),
        ErrorKind::Misconfigured | ErrorKind::Invalid => (
            "Locks not set up correctly",
            "The fault is on the server's side. Please try again later.",
        ),
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
        (StatusCode::from(&error), words(&error).1.to_owned())
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
    fn a_refusal_without_a_known_end_still_has_retry_after() {
        let response = Error::busy(false, None).into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        let response = Error::invalid("no use").into_response();
        assert!(!response.headers().contains_key(header::RETRY_AFTER));
    }

    /// A lease may last 30 s although its owner needs 800 ms.
    #[test]
    fn while_the_key_is_held_retry_after_is_one_second_and_not_the_rest_of_the_lease() {
        let response = Error::busy(false, Some(Duration::from_secs(30))).into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
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
