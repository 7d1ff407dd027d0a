//! Why a request has no key.

use std::fmt;

use super::encode::ABSENT;
#[cfg(feature = "json")]
use super::encode::NULL;

/// Why an extractor found no [part of a key](super::KeyPart): what the client is told, by a status
/// and a code, and by the *name* of the part. Never a value.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyError(NoKey);

impl KeyError {
    /// The request lacks it: 400 `lock_key_missing`, or it passes, as
    /// [`on_missing_key`](crate::LockLayer::on_missing_key) says.
    #[must_use]
    pub fn missing(name: &str) -> Self {
        Self(NoKey::missing(Some(name)))
    }

    /// The request has it twice, and differently: 400 `lock_key_ambiguous`.
    #[must_use]
    pub fn ambiguous(name: &str) -> Self {
        Self(NoKey::Ambiguous(shown(name)))
    }

    /// What the request has there is not understood: 400 `lock_key_invalid`.
    #[must_use]
    pub fn invalid(name: &str) -> Self {
        Self(NoKey::Invalid(Some(shown(name))))
    }

    /// Whoever had to be asked for it gave no answer: 503 `lock_key_unavailable`.
    #[must_use]
    pub fn unavailable() -> Self {
        Self(NoKey::Unavailable)
    }

    /// The body is not what the handler will understand: 400 `lock_body_invalid`.
    #[must_use]
    pub fn body_invalid() -> Self {
        Self(NoKey::BodyInvalid)
    }

    pub(super) fn into_inner(self) -> NoKey {
        self.0
    }
}

impl From<NoKey> for KeyError {
    fn from(no_key: NoKey) -> Self {
        Self(no_key)
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, part) = match &self.0 {
            NoKey::Missing { part, .. } => ("the request lacks a part of its key", part.as_ref()),
            NoKey::Ambiguous(part) => ("the request has a part of its key twice", Some(part)),
            NoKey::Invalid(part) => (
                "a part of the request's key is not understood",
                part.as_ref(),
            ),
            NoKey::Unavailable => ("a part of the request's key could not be looked up", None),
            NoKey::NoBody => (
                "the layer does not read bodies; use `LockLayer::body_extractor`",
                None,
            ),
            NoKey::BodyTooLarge => ("the request's body is larger than its key may read", None),
            NoKey::BodyTimeout => ("the request's body did not come in time", None),
            NoKey::BodyIncomplete => ("the request's body ended too early", None),
            NoKey::BodyInvalid => ("the request's body is not understood", None),
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

/// What is named is the part of the request, as a template names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoKey {
    Missing {
        part: Option<String>,
        /// What an optional part has in its place: not there, empty and `null` are three things.
        stand_in: &'static str,
    },
    Ambiguous(String),
    Invalid(Option<String>),
    Unavailable,
    NoBody,
    BodyTooLarge,
    BodyTimeout,
    BodyIncomplete,
    BodyInvalid,
}

impl NoKey {
    pub(crate) fn missing(part: Option<&str>) -> Self {
        Self::Missing {
            part: part.map(shown),
            stand_in: ABSENT,
        }
    }

    pub(super) fn empty(part: &str) -> Self {
        Self::Missing {
            part: Some(shown(part)),
            stand_in: "",
        }
    }

    /// Of a document: it is there, and says that there is nothing.
    #[cfg(feature = "json")]
    pub(super) fn null(part: &str) -> Self {
        Self::Missing {
            part: Some(shown(part)),
            stand_in: NULL,
        }
    }
}

/// As it can stand in an answer without being escaped.
fn shown(name: &str) -> String {
    let strange = |c: char| c.is_control() || matches!(c, '"' | '\\');
    name.chars()
        .map(|c| if strange(c) { '?' } else { c })
        .collect()
}
