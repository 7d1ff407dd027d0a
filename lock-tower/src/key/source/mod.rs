//! The parts of a request that a key can be made from.

mod body;
mod extension;
mod forwarded;
mod head;
mod host;
mod idempotency;
#[cfg(feature = "json")]
mod json;
mod names;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use http::header::HeaderName;

use super::canonical::text;
use super::{KeyFailure, KeyPart};

pub(super) use extension::Extension;
pub(super) use head::uri;
pub(super) use names::{closest, of_kind, parse};

/// The part of a request that a value comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Head(HeadSource),
    Body(BodySource),
}

/// A part of the head of a request.
#[derive(Clone, Debug)]
pub(crate) enum HeadSource {
    Header(HeaderName),
    Cookie(String),
    /// The digest of a cookie.
    Session(String),
    /// The digest of a bearer token.
    Bearer,
    IdempotencyKey,
    Extension(Extension),
    Query(String),
    #[cfg(feature = "axum")]
    Param(String),
    Method,
    Host,
    Route,
    Path,
    Peer,
    /// The number of trusted proxies, by RFC 7239.
    Forwarded(usize),
    /// The number of trusted proxies.
    XForwardedFor(usize),
}

/// A part of the body of a request.
#[derive(Clone, Debug)]
pub(crate) enum BodySource {
    #[cfg(feature = "json")]
    Json(json::Pointer),
    /// The digest of the whole document.
    #[cfg(feature = "json")]
    Document,
    Form(String),
    /// The digest of all bytes.
    Bytes,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Head(source) => source.fmt(f),
            Source::Body(source) => source.fmt(f),
        }
    }
}

impl fmt::Display for HeadSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header.{name}"),
            Self::Cookie(name) => write!(f, "cookie.{name}"),
            Self::Session(name) => write!(f, "session.{name}"),
            Self::Bearer => f.write_str("bearer"),
            Self::IdempotencyKey => f.write_str("idempotency-key"),
            Self::Extension(extension) => write!(f, "ext.{}", extension.name()),
            Self::Query(name) => write!(f, "query.{name}"),
            #[cfg(feature = "axum")]
            Self::Param(name) => write!(f, "param.{name}"),
            Self::Method => f.write_str("method"),
            Self::Host => f.write_str("host"),
            Self::Route => f.write_str("route"),
            Self::Path => f.write_str("path"),
            Self::Peer => f.write_str("peer"),
            Self::Forwarded(hops) => write!(f, "forwarded.{hops}"),
            Self::XForwardedFor(hops) => write!(f, "x-forwarded-for.{hops}"),
        }
    }
}

impl fmt::Display for BodySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "json")]
            Self::Json(pointer) => write!(f, "json.{pointer}"),
            #[cfg(feature = "json")]
            Self::Document => f.write_str("json"),
            Self::Form(name) => write!(f, "form.{name}"),
            Self::Bytes => f.write_str("body"),
        }
    }
}

/// Makes a part from the only value, and refuses two different ones.
///
/// The layer cannot know which of two values the handler would use.
fn single_value<'a>(
    name: &str,
    mut values: impl Iterator<Item = Cow<'a, [u8]>>,
) -> Result<KeyPart, KeyFailure> {
    let first = values
        .next()
        .ok_or_else(|| KeyFailure::missing(Some(name)))?;
    if values.any(|value| value != first) {
        return Err(KeyFailure::Ambiguous(name.to_owned()));
    }
    KeyPart::value(name, &text(first))
}
