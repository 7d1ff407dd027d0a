//! Refusals: why the layer answered a request in place of its handler.

mod answer;
#[cfg(feature = "once")]
mod once;
mod reason;
mod text;

pub(crate) use reason::{COOLDOWN, COOLDOWN_IN_STORE};
#[cfg(feature = "replay")]
pub(crate) use reason::{DONE, is_cooldown};

use std::borrow::Cow;
use std::time::Duration;

use http::{HeaderValue, StatusCode};

/// The reason for a refusal, one for each thing that a client can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectionKind {
    /// 409 `lock_busy`: another request with this key is in flight.
    InFlight,
    /// 429 `lock_full`: as many requests with this key are in flight as the layer permits.
    Full,
    /// 409 `lock_cooling_down`: the key stays taken for a while after another request with it.
    ///
    /// The refusal does not know the outcome of that request.
    CoolingDown,
    /// 409 `lock_done`: another request with this key has run, must not run again, and has no answer to repeat.
    ///
    /// It has no `Retry-After`, because a retry after the end of the record would run.
    Done,
    /// 503 `lock_unavailable`: the store did not answer in time, so the lock's state is unknown.
    Unavailable,
    /// 503 `lock_outcome_unknown`: the database did not answer the COMMIT of this request, and nothing tells yet whether it
    /// was done.
    ///
    /// The same request, sent again, finds out: it is refused while the first commit is under way, gets the answer if that
    /// commit has arrived, and otherwise runs. (A request without a key has no `Retry-After`, because its repetition would
    /// run in any case.) Only a layer with `Replay::in_database` answers with it.
    OutcomeUnknown,
    /// 400 `lock_key_missing`: the request lacks a value that its key is made from.
    KeyMissing,
    /// 400 `lock_key_ambiguous`: the request carries two different values for one part of its key.
    KeyAmbiguous,
    /// 400 `lock_key_invalid`: a part of the key is malformed, or the whole key is out of bounds.
    KeyInvalid,
    /// 503 `lock_key_unavailable`: a service that knows a part of the key did not answer.
    KeyUnavailable,
    /// 422 `lock_key_reused`: another request with this key, which was not the same, is done.
    KeyReused,
    /// 500 `lock_unreadable`: the work for this key is done, and its record cannot be read.
    Unreadable,
    /// 413 `lock_body_too_large`: the body exceeds the number of bytes that the layer reads.
    BodyTooLarge,
    /// 408 `lock_body_timeout`: the body that the key is made from, or that a duplicate is compared by, did not arrive in time.
    BodyTimeout,
    /// 400 `lock_body_incomplete`: such a body ended too early.
    BodyIncomplete,
    /// 400 `lock_body_invalid`: the body that the key is made from is not valid, unambiguous JSON.
    BodyInvalid,
    /// 500 `lock_transaction_lent`: the handler has answered while its transaction was still in use, in a task or in the body
    /// of the response. The transaction is rolled back when it is given back.
    ///
    /// Only a layer with `Replay::in_database` answers with it.
    TransactionLent,
    /// 500 `lock_misconfigured`: the store will never accept this request as it is configured.
    Misconfigured,
    /// 500 `lock_invalid`: the layer's settings are out of bounds.
    ///
    /// [`LockLayer::checked`](crate::LockLayer::checked) finds this at startup.
    Invalid,
}

/// A refusal by the layer, which stands in the extensions of its response.
///
/// It lets outer layers distinguish a refusal from a response of the application with the same
/// status. It contains no key, no token and no value of the request.
///
/// The response is `application/problem+json` (RFC 9457), see [`problem`](Self::problem). It has a
/// `Retry-After` if a retry makes sense.
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
    /// The part of the request, as the template names it; never its value.
    source: Option<String>,
    /// The beginning of the problem's type URI.
    types: Cow<'static, str>,
    /// The page that describes the key, if the layer names one.
    pub(crate) documentation: Option<HeaderValue>,
}

/// The default of [`LockLayer::problem_types`](crate::LockLayer::problem_types).
pub(crate) const DEFAULT_TYPES: &str = "urn:lockkit:problem:";

impl Rejection {
    /// Returns the reason for the refusal.
    #[must_use]
    pub fn kind(&self) -> RejectionKind {
        self.kind
    }

    /// Returns the code in the response.
    ///
    /// The codes of lock errors are those of [`Error::code`](lock_core::Error::code). For a key with a record, that is
    /// `lock_cooling_down`, and here `lock_done`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            RejectionKind::InFlight => "lock_busy",
            RejectionKind::Full => "lock_full",
            RejectionKind::CoolingDown => "lock_cooling_down",
            RejectionKind::Done => "lock_done",
            RejectionKind::Unavailable => "lock_unavailable",
            RejectionKind::OutcomeUnknown => "lock_outcome_unknown",
            RejectionKind::KeyMissing => "lock_key_missing",
            RejectionKind::KeyAmbiguous => "lock_key_ambiguous",
            RejectionKind::KeyInvalid => "lock_key_invalid",
            RejectionKind::KeyUnavailable => "lock_key_unavailable",
            RejectionKind::KeyReused => "lock_key_reused",
            RejectionKind::Unreadable => "lock_unreadable",
            RejectionKind::BodyTooLarge => "lock_body_too_large",
            RejectionKind::BodyTimeout => "lock_body_timeout",
            RejectionKind::BodyIncomplete => "lock_body_incomplete",
            RejectionKind::BodyInvalid => "lock_body_invalid",
            RejectionKind::TransactionLent => "lock_transaction_lent",
            RejectionKind::Misconfigured => "lock_misconfigured",
            RejectionKind::Invalid => "lock_invalid",
        }
    }

    /// Returns the status of the response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Changes the status of the response.
    ///
    /// For example, 429 or 425 suits clients that treat every 409 alike.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Returns the time after which a retry makes sense.
    ///
    /// The time is exact while the key cools down. While a request is in flight it is
    /// [a hint](crate::LockLayer::retry_hint).
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns [`retry_after`](Self::retry_after) in whole seconds, as the header carries it.
    ///
    /// The value is rounded up, so a client that waits exactly that long is not refused again. It is
    /// never 0, because 0 would mean "at once".
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.map(|wait| rounded_up(wait, 1_000_000_000))
    }

    /// Returns [`retry_after`](Self::retry_after) in milliseconds, rounded up and never 0.
    ///
    /// It is the member `retry_after_ms` of a problem.
    #[must_use]
    pub fn retry_after_millis(&self) -> Option<u64> {
        self.retry_after.map(|wait| rounded_up(wait, 1_000_000))
    }

    /// Returns the `type` of the problem.
    ///
    /// It consists of [`LockLayer::problem_types`](crate::LockLayer::problem_types) and the
    /// [code](Self::code).
    #[must_use]
    pub fn type_uri(&self) -> String {
        format!("{}{}", self.types, self.code())
    }

    /// Returns the part of the request that is missing or ambiguous, as the template names it.
    ///
    /// It never contains the part's value.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }
}

impl Rejection {
    /// Makes a refusal with the status of its kind, and the usual hint for the kinds that have one.
    pub(crate) fn new(kind: RejectionKind) -> Self {
        let can_retry = matches!(
            kind,
            RejectionKind::CoolingDown
                | RejectionKind::Unavailable
                | RejectionKind::OutcomeUnknown
                | RejectionKind::KeyUnavailable
        );
        Self {
            kind,
            status: status_of(kind),
            retry_after: can_retry.then_some(reason::RETRY),
            source: None,
            types: Cow::Borrowed(DEFAULT_TYPES),
            documentation: None,
        }
    }

    /// Adds the layer's type URIs, and its hint while a request is in flight.
    pub(crate) fn with_settings(
        mut self,
        types: Cow<'static, str>,
        documentation: Option<HeaderValue>,
        hint: Duration,
    ) -> Self {
        self.types = types;
        self.documentation = documentation;
        if matches!(self.kind, RejectionKind::InFlight | RejectionKind::Full) {
            // The rest of a lease does not say when its handler will end.
            self.retry_after = Some(hint);
        }
        self
    }
}

fn status_of(kind: RejectionKind) -> StatusCode {
    match kind {
        RejectionKind::InFlight | RejectionKind::CoolingDown | RejectionKind::Done => {
            StatusCode::CONFLICT
        }
        RejectionKind::Full => StatusCode::TOO_MANY_REQUESTS,
        RejectionKind::Unavailable
        | RejectionKind::OutcomeUnknown
        | RejectionKind::KeyUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        RejectionKind::KeyMissing
        | RejectionKind::KeyAmbiguous
        | RejectionKind::KeyInvalid
        | RejectionKind::BodyIncomplete
        | RejectionKind::BodyInvalid => StatusCode::BAD_REQUEST,
        RejectionKind::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        RejectionKind::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        RejectionKind::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
        RejectionKind::TransactionLent
        | RejectionKind::Misconfigured
        | RejectionKind::Invalid
        | RejectionKind::Unreadable => StatusCode::INTERNAL_SERVER_ERROR,
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
}
