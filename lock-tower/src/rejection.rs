//! What a request is answered with that did not reach the handler.

use std::borrow::Cow;
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
    /// 503 `lock_key_unavailable`: a service that knows a part of the key gave no answer.
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
    /// 500 `lock_invalid`: the layer's settings are out of bounds, see
    /// [`LockLayer::checked`](crate::LockLayer::checked).
    Invalid,
}

/// A refusal of the layer: in the extensions of its response, so that layers outside can tell it
/// from an answer of the application's own that has the same status.
///
/// The response is `application/problem+json` (RFC 9457), see [`problem`](Self::problem), with
/// `Retry-After` where trying again makes sense. It holds no key, no token and no value of the
/// request.
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
    /// What the type URIs of problems begin with.
    types: Cow<'static, str>,
}

/// What [`LockLayer::problem_types`](crate::LockLayer::problem_types) is by default.
pub(crate) const TYPES: &str = "urn:lockkit:problem:";

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

    /// When to try again: exact while the key cools down, and
    /// [a hint](crate::LockLayer::retry_hint) while a request is under way.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The same as a header says it: in whole seconds, rounded up so that a client that waits for
    /// exactly that long is not refused again, and never 0, which would mean "at once".
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.map(|wait| rounded_up(wait, 1_000_000_000))
    }

    /// The same in milliseconds, rounded up and never 0: the member `retry_after_ms` of a problem.
    #[must_use]
    pub fn retry_after_millis(&self) -> Option<u64> {
        self.retry_after.map(|wait| rounded_up(wait, 1_000_000))
    }

    /// The `type` of the problem: [`LockLayer::problem_types`](crate::LockLayer::problem_types) and
    /// the [code](Self::code).
    #[must_use]
    pub fn type_uri(&self) -> String {
        format!("{}{}", self.types, self.code())
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
            types: Cow::Borrowed(TYPES),
        }
    }

    /// As the layer tells it: with its type URIs, and its hint while a request is under way.
    pub(crate) fn told(mut self, types: Cow<'static, str>, hint: Duration) -> Self {
        self.types = types;
        if self.kind == RejectionKind::InFlight {
            // What is left of the owner's lease says nothing about when its work is done.
            self.retry_after = Some(hint);
        }
        self
    }

    /// A few words for a client: what happened, nothing about the set-up. For the lock's own errors
    /// the same words as lock-core's, so that a refusal reads the same from the layer and the handler.
    pub(crate) fn title(&self) -> &'static str {
        match self.kind {
            RejectionKind::InFlight => "Already in progress",
            RejectionKind::CoolingDown => "Already done",
            RejectionKind::Unavailable => "Lock service unavailable",
            RejectionKind::KeyMissing => "Request not identified",
            RejectionKind::KeyAmbiguous => "Request identified twice",
            RejectionKind::KeyInvalid => "Request identity not understood",
            RejectionKind::KeyUnavailable => "Identity service unavailable",
            RejectionKind::BodyTooLarge => "Request body too large",
            RejectionKind::BodyTimeout => "Request body too slow",
            RejectionKind::BodyIncomplete => "Request body incomplete",
            RejectionKind::BodyInvalid => "Request body not understood",
            RejectionKind::Misconfigured | RejectionKind::Invalid => "Locks not set up correctly",
        }
    }

    /// What happened, and what a person can do about it.
    pub(crate) fn detail(&self) -> &'static str {
        match self.kind {
            RejectionKind::InFlight => {
                "The first request is still in progress. There is no need to send it again."
            }
            RejectionKind::CoolingDown => {
                "The first request succeeded a moment ago. There is no need to send it again."
            }
            RejectionKind::Unavailable => {
                "The lock service gave no answer. Nothing was done. Please try again in a moment."
            }
            RejectionKind::KeyMissing if self.source.is_none() => {
                "The request carries no user identity. Nothing was done."
            }
            RejectionKind::KeyMissing => {
                "The request lacks a value that identifies it. Nothing was done. Please go back, \
                 reload the page and try again."
            }
            RejectionKind::KeyAmbiguous => {
                "The request carries two different values where one identifies it. Nothing was done."
            }
            RejectionKind::KeyInvalid => {
                "The request carries a value that identifies it, but in an unknown format. Nothing \
                 was done."
            }
            RejectionKind::KeyUnavailable => {
                "The service that identifies requests gave no answer. Nothing was done. Please try \
                 again in a moment."
            }
            RejectionKind::BodyTooLarge => {
                "The body of the request is too large. Nothing was done. Please send less."
            }
            RejectionKind::BodyTimeout => {
                "The body of the request did not arrive in time. Nothing was done. Please try again \
                 in a moment."
            }
            RejectionKind::BodyIncomplete => {
                "The body of the request ended too early. Nothing was done. Please try again in a \
                 moment."
            }
            RejectionKind::BodyInvalid => {
                "The body of the request has an unknown format. Nothing was done."
            }
            RejectionKind::Misconfigured | RejectionKind::Invalid => {
                "Nothing was done. The fault is on the server's side; please try again later."
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
        // A stranger's cooldown may have no end; a client that may try again is told when.
        let again = matches!(
            kind,
            RejectionKind::Unavailable | RejectionKind::CoolingDown
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

fn rounded_up(wait: Duration, nanos: u128) -> u64 {
    let units = wait.as_nanos().div_ceil(nanos).max(1);
    u64::try_from(units).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_whole_seconds_rounded_up_and_never_zero() {
        let cases = [(0, 1), (1, 1), (999, 1), (1000, 1), (1001, 2), (2000, 2)];
        for (millis, seconds) in cases {
            let wait = Duration::from_millis(millis);
            assert_eq!(rounded_up(wait, 1_000_000_000), seconds);
        }
        let longer = Duration::from_nanos(1_000_000_001);
        assert_eq!(rounded_up(longer, 1_000_000_000), 2);
        assert_eq!(rounded_up(longer, 1_000_000), 1001);
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
            assert_eq!(problem["type"], rejection.type_uri());
            let title = problem["title"].as_str().unwrap();
            assert!(title.split(' ').count() <= 5, "{title}");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.ends_with('.') && !detail.contains("  "), "{detail}");
            let source = rejection.source().map(str::to_owned);
            assert_eq!(problem["source"].as_str().map(str::to_owned), source);
            let again = problem["retry_after_ms"].as_u64();
            assert_eq!(again, rejection.retry_after_millis());
        }
    }
}
