//! Makes a refusal from the error that caused it.

use std::time::Duration;

use lock_core::{Error, ErrorKind};

use super::{Rejection, RejectionKind};
use crate::key::KeyFailure;

/// The hint for a client that may retry, where the time of success is unknown.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// The record of a cooldown. No other record of the kit has these bytes: that of an answer begins with its version.
pub(crate) const COOLDOWN: &[u8] = &[0];

/// The record of a cooldown at the fallback, if the store knows of that cooldown.
pub(crate) const COOLDOWN_IN_STORE: &[u8] = &[0, 1];

/// Returns whether a record is that of a cooldown.
pub(crate) fn is_cooldown(record: &[u8]) -> bool {
    [COOLDOWN, COOLDOWN_IN_STORE].contains(&record)
}

/// The record of a request that is done, of which nothing else is known.
///
/// The embedded store empties the oldest records when they are too many, so that they say the same.
#[cfg(feature = "replay")]
pub(crate) const DONE: &[u8] = &[];

impl From<&Error> for Rejection {
    fn from(error: &Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Busy if is_done(error) => RejectionKind::Done,
            ErrorKind::Busy if error.is_cooling_down() => RejectionKind::CoolingDown,
            ErrorKind::Busy if error.is_full() => RejectionKind::Full,
            ErrorKind::Busy => RejectionKind::InFlight,
            ErrorKind::Unavailable if error.is_outcome_unknown() => RejectionKind::OutcomeUnknown,
            ErrorKind::Unavailable => RejectionKind::Unavailable,
            ErrorKind::Misconfigured => RejectionKind::Misconfigured,
            ErrorKind::Reused => RejectionKind::KeyReused,
            ErrorKind::Unreadable => RejectionKind::Unreadable,
            // A lock cannot be lost before it is granted, and a future kind must not become a 409.
            _ => RejectionKind::Invalid,
        };
        if matches!(kind, RejectionKind::Misconfigured | RejectionKind::Invalid) {
            tracing::error!(code = error.code(), %error, "no request can acquire its lock");
        }
        let rejection = Self::new(kind);
        // A retry after the end of a record would run.
        let known = error.retry_after().filter(|_| kind != RejectionKind::Done);
        Self {
            // A client of another library may set a cooldown without an end.
            retry_after: known.or(rejection.retry_after),
            ..rejection
        }
    }
}

/// Returns whether the key has a record that is no mere cooldown, or a function has found that its work is done.
///
/// The record may be the answer to a request that cannot be repeated, of a layer or of another program.
fn is_done(error: &Error) -> bool {
    let is_record = error.record().is_some_and(|record| !is_cooldown(record));
    is_record || error.code() == "lock_done"
}

impl From<KeyFailure> for Rejection {
    fn from(failure: KeyFailure) -> Self {
        let (kind, source) = match failure {
            KeyFailure::Missing { part, .. } => (RejectionKind::KeyMissing, part),
            KeyFailure::Ambiguous(part) => (RejectionKind::KeyAmbiguous, Some(part)),
            KeyFailure::Invalid(part) => (RejectionKind::KeyInvalid, part),
            KeyFailure::Unavailable => (RejectionKind::KeyUnavailable, None),
            KeyFailure::BodyTooLarge => (RejectionKind::BodyTooLarge, None),
            KeyFailure::BodyTimeout => (RejectionKind::BodyTimeout, None),
            KeyFailure::BodyIncomplete => (RejectionKind::BodyIncomplete, None),
            KeyFailure::BodyInvalid => (RejectionKind::BodyInvalid, None),
            KeyFailure::BodyNotRead => {
                tracing::error!(
                    "a key extractor reads the body of the request, but its layer does not: declare \
                     `type Reads = WithBody` and use `LockLayer::body_extractor`"
                );
                (RejectionKind::Invalid, None)
            }
        };
        Self {
            source,
            ..Self::new(kind)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_json_and_says_its_code_and_status() {
        for (failure, status) in [
            (KeyFailure::missing(Some("header.x-user-id")), 400),
            (KeyFailure::missing(Some("json./a\"b\\c\n")), 400),
            (KeyFailure::missing(None), 400),
            (KeyFailure::Ambiguous("cookie.session".into()), 400),
            (KeyFailure::Invalid(None), 400),
            (KeyFailure::Unavailable, 503),
            (KeyFailure::BodyNotRead, 500),
            (KeyFailure::BodyTooLarge, 413),
            (KeyFailure::BodyTimeout, 408),
            (KeyFailure::BodyIncomplete, 400),
            (KeyFailure::BodyInvalid, 400),
        ] {
            let rejection = Rejection::from(failure);
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
            let retry = problem["retry_after_ms"].as_u64();
            assert_eq!(retry, rejection.retry_after_millis());
        }
    }
}
