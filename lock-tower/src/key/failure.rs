//! The reasons why no key can be made for a request.

use std::fmt;

use super::encode::ABSENT;
#[cfg(feature = "json")]
use super::encode::NULL;

/// The error of an extractor that found no [part of a key](super::KeyPart).
///
/// It determines the status and the code of the refusal. It contains the *name* of the part, and
/// never a value.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyError(KeyFailure);

impl KeyError {
    /// Reports that the request lacks this part: 400 `lock_key_missing`.
    ///
    /// [`on_missing_key`](crate::LockLayer::on_missing_key) can let such a request pass.
    #[must_use]
    pub fn missing(name: &str) -> Self {
        Self(KeyFailure::missing(Some(name)))
    }

    /// Reports two different values for this part: 400 `lock_key_ambiguous`.
    #[must_use]
    pub fn ambiguous(name: &str) -> Self {
        Self(KeyFailure::Ambiguous(printable(name)))
    }

    /// Reports a malformed value for this part: 400 `lock_key_invalid`.
    #[must_use]
    pub fn invalid(name: &str) -> Self {
        Self(KeyFailure::Invalid(Some(printable(name))))
    }

    /// Reports that the service that knows this part did not answer: 503 `lock_key_unavailable`.
    #[must_use]
    pub fn unavailable() -> Self {
        Self(KeyFailure::Unavailable)
    }

    /// Reports a body that the handler will not understand: 400 `lock_body_invalid`.
    #[must_use]
    pub fn body_invalid() -> Self {
        Self(KeyFailure::BodyInvalid)
    }

    pub(super) fn into_inner(self) -> KeyFailure {
        self.0
    }
}

impl From<KeyFailure> for KeyError {
    fn from(failure: KeyFailure) -> Self {
        Self(failure)
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, part) = match &self.0 {
            KeyFailure::Missing { part, .. } => {
                ("the request lacks a part of its key", part.as_ref())
            }
            KeyFailure::Ambiguous(part) => (
                "the request has two different values for a part of its key",
                Some(part),
            ),
            KeyFailure::Invalid(part) => {
                ("a part of the request's key is malformed", part.as_ref())
            }
            KeyFailure::Unavailable => (
                "the service that knows a part of the request's key did not answer",
                None,
            ),
            KeyFailure::BodyNotRead => (
                "the extractor reads the body, but its layer does not; use `LockLayer::body_extractor`",
                None,
            ),
            KeyFailure::BodyTooLarge => ("the request's body exceeds the layer's limit", None),
            KeyFailure::BodyTimeout => ("the request's body did not arrive in time", None),
            KeyFailure::BodyIncomplete => ("the request's body ended too early", None),
            KeyFailure::BodyInvalid => ("the request's body is malformed", None),
        };
        f.write_str(what)?;
        part.map_or(Ok(()), |part| write!(f, ": {part}"))
    }
}

impl fmt::Debug for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyError({self})")
    }
}

impl std::error::Error for KeyError {}

/// The reason why no key can be made, with the part of the request as a template names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyFailure {
    Missing {
        part: Option<String>,
        /// The text in place of an optional part; absent, empty and `null` have different ones.
        substitute: &'static str,
    },
    Ambiguous(String),
    Invalid(Option<String>),
    Unavailable,
    BodyNotRead,
    BodyTooLarge,
    BodyTimeout,
    BodyIncomplete,
    BodyInvalid,
}

impl KeyFailure {
    pub(crate) fn missing(part: Option<&str>) -> Self {
        Self::Missing {
            part: part.map(printable),
            substitute: ABSENT,
        }
    }

    pub(super) fn empty(part: &str) -> Self {
        Self::Missing {
            part: Some(printable(part)),
            substitute: "",
        }
    }

    /// Reports a member of a JSON document that is `null`.
    #[cfg(feature = "json")]
    pub(super) fn null(part: &str) -> Self {
        Self::Missing {
            part: Some(printable(part)),
            substitute: NULL,
        }
    }
}

/// Replaces the characters that would have to be escaped in a response.
fn printable(name: &str) -> String {
    let strange = |c: char| c.is_control() || matches!(c, '"' | '\\');
    name.chars()
        .map(|c| if strange(c) { '?' } else { c })
        .collect()
}
