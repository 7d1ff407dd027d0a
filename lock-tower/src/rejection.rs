//! What a request is answered with that did not reach the handler.

use std::time::Duration;

use http::StatusCode;
use lock_core::{Error, ErrorKind};

use crate::key::NoKey;

/// Why a request was answered by the layer and not by the handler: one kind for each thing that a
/// caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectionKind {
    /// 409 `lock_busy`: a request with this key is under way.
    InFlight,
    /// 409 `lock_cooling_down`: a request with this key has succeeded a moment ago.
    CoolingDown,
    /// 503 `lock_unavailable`: the store gave no answer in time; nothing is known.
    Unavailable,
    /// 400 `lock_key_missing`: the request lacks what its key is made of.
    KeyMissing,
    /// 400 `lock_key_ambiguous`: the request names it twice, and differently.
    KeyAmbiguous,
    /// 400 `lock_key_invalid`: what the request has in a part of its key is not understood, or its key
    /// cannot be one.
    KeyInvalid,
    /// 503 `lock_key_unavailable`: whoever had to be asked for a part of the key gave no answer.
    KeyUnavailable,
    /// 413 `lock_body_too_large`: the body is larger than may be read for the key.
    BodyTooLarge,
    /// 408 `lock_body_timeout`: the body, of which the key is made, did not come in time.
    BodyTimeout,
    /// 400 `lock_body_incomplete`: the body, of which the key is made, ended too early.
    BodyIncomplete,
    /// 400 `lock_body_invalid`: the body, of which the key is made, is no JSON, or not one that can
    /// be told from another.
    BodyInvalid,
    /// 500 `lock_misconfigured`: the store will never accept this as it is set up.
    Misconfigured,
    /// 500 `lock_invalid`: the layer's settings are out of bounds.
    Invalid,
}

/// A refusal of the layer: in the extensions of its response, so that layers outside can tell it
/// from an answer of the application's own that has the same status.
///
/// The response is `application/problem+json` (RFC 9457) with a `code`, and `Retry-After` where
/// trying again makes sense. Neither holds a key, a token or a value of the request.
///
/// # Examples
///
/// ```
/// use http::Response;
/// use lock_tower::{Rejection, RejectionKind};
///
/// fn is_double_click<B>(response: &Response<B>) -> bool {
///     let rejection = response.extensions().get::<Rejection>();
///     rejection.is_some_and(|rejection| rejection.kind() == RejectionKind::InFlight)
/// }
/// # let _ = is_double_click::<()>;
/// ```
#[derive(Clone, Debug)]
pub struct Rejection {
    kind: RejectionKind,
    status: StatusCode,
    retry_after: Option<Duration>,
    /// The part of the request that is meant, as the template names it; never its value.
    source: Option<String>,
}

impl Rejection {
    /// What a caller can do about it.
    #[must_use]
    pub fn kind(&self) -> RejectionKind {
        self.kind
    }

    /// The code in the answer: for the lock's own errors the same as
    /// [`Error::code`](lock_core::Error::code).
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            RejectionKind::InFlight => "lock_busy",
            RejectionKind::CoolingDown => "lock_cooling_down",
            RejectionKind::Unavailable => "lock_unavailable",
            RejectionKind::KeyMissing => "lock_key_missing",
            RejectionKind::KeyAmbiguous => "lock_key_ambiguous",
            RejectionKind::KeyInvalid => "lock_key_invalid",
            RejectionKind::KeyUnavailable => "lock_key_unavailable",
            RejectionKind::BodyTooLarge => "lock_body_too_large",
            RejectionKind::BodyTimeout => "lock_body_timeout",
            RejectionKind::BodyIncomplete => "lock_body_incomplete",
            RejectionKind::BodyInvalid => "lock_body_invalid",
            RejectionKind::Misconfigured => "lock_misconfigured",
            RejectionKind::Invalid => "lock_invalid",
        }
    }

    /// The status of the answer.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The same with another status: 429 or 425, say, for clients that treat every 409 alike.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// When to try again: exact while the key cools down, a hint (the longest that the lock lasts
    /// if its owner has died) while a request is under way.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The same as a header says it: in whole seconds, rounded up so that a client that waits for
    /// exactly that long is not refused again, and never 0, which would mean "at once".
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.map(whole_seconds)
    }

    /// The part of the request that is missing or ambiguous, as the template names it; never its
    /// value.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }
}

impl Rejection {
    /// A layer around this one holds the very lock.
    pub(crate) fn twice() -> Self {
        Self::new(RejectionKind::Invalid)
    }

    fn new(kind: RejectionKind) -> Self {
        Self {
            kind,
            status: status_of(kind),
            retry_after: None,
            source: None,
        }
    }

    /// Words for a client: what happened, nothing about the set-up. For the lock's own errors the
    /// same words as lock-core's, so that a refusal reads the same from the layer and the handler.
    pub(crate) fn title(&self) -> &'static str {
        match self.kind {
            RejectionKind::InFlight => "This is being done already",
            RejectionKind::CoolingDown => "This was done a moment ago",
            RejectionKind::Unavailable => "The lock service gave no answer",
            RejectionKind::KeyMissing => "The request lacks what identifies it",
            RejectionKind::KeyAmbiguous => "The request identifies itself twice, and differently",
            RejectionKind::KeyInvalid => "The request identifies itself by what is not understood",
            RejectionKind::KeyUnavailable => "Nobody could say who the request is from",
            RejectionKind::BodyTooLarge => "The body of the request is too large",
            RejectionKind::BodyTimeout => "The body of the request took too long",
            RejectionKind::BodyIncomplete => "The body of the request ended too early",
            RejectionKind::BodyInvalid => "The body of the request is not understood",
            RejectionKind::Misconfigured | RejectionKind::Invalid => {
                "The lock is not set up correctly"
            }
        }
    }

    /// What a person can do about it.
    pub(crate) fn advice(&self) -> &'static str {
        match self.kind {
            RejectionKind::InFlight => {
                "Your first request is still being worked on. There is no need to send it again."
            }
            RejectionKind::CoolingDown => {
                "Your request has been received and done. There is no need to send it again."
            }
            RejectionKind::Unavailable
            | RejectionKind::KeyUnavailable
            | RejectionKind::BodyTimeout
            | RejectionKind::BodyIncomplete => "Nothing was done. Please try again in a moment.",
            RejectionKind::KeyMissing
            | RejectionKind::KeyAmbiguous
            | RejectionKind::KeyInvalid
            | RejectionKind::BodyInvalid => {
                "Nothing was done. Please go back, reload the page and try again."
            }
            RejectionKind::BodyTooLarge => "Nothing was done. Please send less.",
            RejectionKind::Misconfigured | RejectionKind::Invalid => {
                "Nothing was done. The fault is on our side; please try again later."
            }
        }
    }
}

fn status_of(kind: RejectionKind) -> StatusCode {
    match kind {
        RejectionKind::InFlight | RejectionKind::CoolingDown => StatusCode::CONFLICT,
        RejectionKind::Unavailable | RejectionKind::KeyUnavailable => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        RejectionKind::KeyMissing
        | RejectionKind::KeyAmbiguous
        | RejectionKind::KeyInvalid
        | RejectionKind::BodyIncomplete
        | RejectionKind::BodyInvalid => StatusCode::BAD_REQUEST,
        RejectionKind::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        RejectionKind::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
        RejectionKind::Misconfigured | RejectionKind::Invalid => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<&Error> for Rejection {
    fn from(error: &Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Busy if error.is_cooling_down() => RejectionKind::CoolingDown,
            ErrorKind::Busy => RejectionKind::InFlight,
            ErrorKind::Unavailable => RejectionKind::Unavailable,
            ErrorKind::Misconfigured => RejectionKind::Misconfigured,
            // A lock that is asked for cannot be lost; a kind that is not known yet is not a 409.
            _ => RejectionKind::Invalid,
        };
        if matches!(kind, RejectionKind::Misconfigured | RejectionKind::Invalid) {
            tracing::error!(code = error.code(), %error, "no request can get its lock");
        }
        // A stranger's lock may have no end; whoever is told to try again is told when all the same.
        let again = matches!(
            kind,
            RejectionKind::Unavailable | RejectionKind::InFlight | RejectionKind::CoolingDown
        );
        let unknown = again.then_some(Duration::from_secs(1));
        Self {
            retry_after: error.retry_after().or(unknown),
            ..Self::new(kind)
        }
    }
}

impl From<NoKey> for Rejection {
    fn from(no_key: NoKey) -> Self {
        let (kind, source) = match no_key {
            NoKey::Missing { part, .. } => (RejectionKind::KeyMissing, part),
            NoKey::Ambiguous(part) => (RejectionKind::KeyAmbiguous, Some(part)),
            NoKey::Invalid(part) => (RejectionKind::KeyInvalid, part),
            NoKey::Unavailable => (RejectionKind::KeyUnavailable, None),
            NoKey::BodyTooLarge => (RejectionKind::BodyTooLarge, None),
            NoKey::BodyTimeout => (RejectionKind::BodyTimeout, None),
            NoKey::BodyIncomplete => (RejectionKind::BodyIncomplete, None),
            NoKey::BodyInvalid => (RejectionKind::BodyInvalid, None),
            NoKey::NoBody => {
                tracing::error!(
                    "a key extractor reads the body of requests, and its layer does not: say \
                     `type Reads = WithBody` and use `LockLayer::body_extractor`"
                );
                (RejectionKind::Invalid, None)
            }
        };
        let unknown = (kind == RejectionKind::KeyUnavailable).then_some(Duration::from_secs(1));
        Self {
            source,
            retry_after: unknown,
            ..Self::new(kind)
        }
    }
}

fn whole_seconds(wait: Duration) -> u64 {
    let seconds = wait.as_nanos().div_ceil(1_000_000_000).max(1);
    u64::try_from(seconds).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_whole_seconds_rounded_up_and_never_zero() {
        let cases = [(0, 1), (1, 1), (999, 1), (1000, 1), (1001, 2), (2000, 2)];
        for (millis, seconds) in cases {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
        assert_eq!(whole_seconds(Duration::from_nanos(1_000_000_001)), 2);
    }

    #[test]
    fn every_problem_is_json_and_says_its_code_and_status() {
        for (no_key, status) in [
            (NoKey::missing(Some("header.x-user-id")), 400),
            (NoKey::missing(Some("json./a\"b\\c\n")), 400),
            (NoKey::missing(None), 400),
            (NoKey::Ambiguous("cookie.session".into()), 400),
            (NoKey::Invalid(None), 400),
            (NoKey::Unavailable, 503),
            (NoKey::NoBody, 500),
            (NoKey::BodyTooLarge, 413),
            (NoKey::BodyTimeout, 408),
            (NoKey::BodyIncomplete, 400),
            (NoKey::BodyInvalid, 400),
        ] {
            let rejection = Rejection::from(no_key);
            let problem: serde_json::Value =
                serde_json::from_str(rejection.problem().body()).unwrap();
            assert_eq!(problem["code"], rejection.code());
            assert_eq!(problem["status"], status);
            assert_eq!(rejection.status(), status);
        }
    }
}
