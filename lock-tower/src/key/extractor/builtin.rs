//! The extractors that lock-tower provides.

use std::fmt::Display;

use super::KeyExtractor;
use crate::key::source::{self, BodySource, Extension, HeadSource, Source};
use crate::key::{HeadOnly, KeyError, KeyPart, KeyRequest, WithBody};

/// Extracts a value from the head of a request.
#[derive(Clone, Debug)]
#[must_use = "an extractor does nothing until a layer is made of it"]
pub struct FromHead(HeadSource);

/// Extracts a value from the body of a request.
#[derive(Clone, Debug)]
#[must_use = "an extractor does nothing until a layer is made of it"]
pub struct FromBody(BodySource);

/// Yields the same text for all requests.
#[derive(Clone, Debug)]
#[must_use = "an extractor does nothing until a layer is made of it"]
pub struct Constant(String);

/// Yields the same text for all requests, which separates the keys of one layer from those of others.
pub fn constant(text: impl Into<String>) -> Constant {
    Constant(text.into())
}

/// Extracts a header.
///
/// # Panics
///
/// Panics if no header can have that name, and for the names `host` and `cookie`. HTTP/2 sends these
/// in another way than HTTP/1, so use [`host`] and [`cookie`].
#[track_caller]
pub fn header(name: impl AsRef<str>) -> FromHead {
    head("header", name.as_ref())
}

/// Extracts a cookie.
///
/// # Panics
///
/// Panics if no cookie can have that name.
#[track_caller]
pub fn cookie(name: &str) -> FromHead {
    head("cookie", name)
}

/// Extracts the digest of a secret cookie.
///
/// # Panics
///
/// Panics if no cookie can have that name.
#[track_caller]
pub fn session(cookie: &str) -> FromHead {
    head("session", cookie)
}

/// Extracts the digest of the token in `Authorization: Bearer …`.
pub fn bearer() -> FromHead {
    FromHead(HeadSource::Bearer)
}

/// Extracts the header `Idempotency-Key`, with or without the quotes of its draft.
pub fn idempotency_key() -> FromHead {
    FromHead(HeadSource::IdempotencyKey)
}

/// Extracts a value from the extension of type `T`. A refusal contains the `name`.
///
/// # Examples
///
/// ```
/// #[derive(Clone)]
/// struct User { id: u64 }
///
/// let user = lock_tower::key::extension("user", |user: &User| user.id);
/// # let _ = user;
/// ```
pub fn extension<T, V>(name: &str, value: impl Fn(&T) -> V + Send + Sync + 'static) -> FromHead
where
    T: Clone + Send + Sync + 'static,
    V: Display,
{
    FromHead(HeadSource::Extension(Extension::new(name, value)))
}

/// Extracts the host of `:authority` or `Host`, in lower case and without its port.
pub fn host() -> FromHead {
    FromHead(HeadSource::Host)
}

/// Extracts the method. HEAD counts as GET, because the same handler answers both.
pub fn method() -> FromHead {
    FromHead(HeadSource::Method)
}

/// Extracts the route that axum matched (feature `axum`), or the path if there is none.
pub fn route() -> FromHead {
    FromHead(HeadSource::Route)
}

/// Extracts the path in its canonical spelling.
pub fn path() -> FromHead {
    FromHead(HeadSource::Path)
}

/// Extracts a decoded parameter of the route that axum matched.
///
/// # Panics
///
/// Panics if no parameter can have that name.
#[cfg(feature = "axum")]
#[track_caller]
pub fn param(name: &str) -> FromHead {
    head("param", name)
}

/// Extracts a decoded parameter of the query.
///
/// # Panics
///
/// Panics if the name is empty or contains white space, quotes, backslashes or `<`.
#[track_caller]
pub fn query(name: &str) -> FromHead {
    head("query", name)
}

/// Extracts the IP address of the connection's peer.
///
/// It is axum's `ConnectInfo<SocketAddr>` (feature `axum`), or else a `SocketAddr` in the extensions
/// of the request.
pub fn peer() -> FromHead {
    FromHead(HeadSource::Peer)
}

/// Extracts the client's address from `Forwarded` (RFC 7239).
///
/// It is the address from which the outermost trusted proxy was called.
///
/// # Panics
///
/// Panics if the number of proxies is not between 1 and 32.
#[track_caller]
pub fn forwarded(trusted_proxies: usize) -> FromHead {
    head("forwarded", &trusted_proxies.to_string())
}

/// Extracts the client's address from `X-Forwarded-For`.
///
/// It is the address from which the outermost trusted proxy was called.
///
/// # Panics
///
/// Panics if the number of proxies is not between 1 and 32.
#[track_caller]
pub fn x_forwarded_for(trusted_proxies: usize) -> FromHead {
    head("x-forwarded-for", &trusted_proxies.to_string())
}

/// Extracts a value from a JSON body by its pointer (RFC 6901), such as `/order/sku`.
///
/// # Panics
///
/// Panics if the text is not a JSON pointer.
#[cfg(feature = "json")]
#[track_caller]
pub fn json(pointer: &str) -> FromBody {
    assert!(
        pointer.starts_with('/'),
        "`{pointer}` is not a JSON pointer; begin it with a slash"
    );
    body_source("json", pointer)
}

/// Extracts the digest of a whole JSON body.
///
/// The order of members, white space and the spelling of numbers and strings do not matter.
#[cfg(feature = "json")]
pub fn json_digest() -> FromBody {
    FromBody(BodySource::Document)
}

/// Extracts a decoded field of a form (`application/x-www-form-urlencoded`).
///
/// # Panics
///
/// Panics if the name is empty or contains white space, quotes, backslashes or `<`.
#[track_caller]
pub fn form(name: &str) -> FromBody {
    body_source("form", name)
}

/// Extracts the digest of the body's bytes.
pub fn body() -> FromBody {
    FromBody(BodySource::Bytes)
}

#[track_caller]
fn head(kind: &str, name: &str) -> FromHead {
    match source_of(kind, name) {
        Source::Head(source) => FromHead(source),
        Source::Body(source) => panic!("`{source}` is in the body"),
    }
}

#[track_caller]
fn body_source(kind: &str, name: &str) -> FromBody {
    match source_of(kind, name) {
        Source::Body(source) => FromBody(source),
        Source::Head(source) => panic!("`{source}` is in the head"),
    }
}

#[track_caller]
fn source_of(kind: &str, name: &str) -> Source {
    match source::of_kind(kind, name, &[]) {
        Ok(source) => source,
        Err(problem) => panic!("{problem}"),
    }
}

impl KeyExtractor for FromHead {
    type Reads = HeadOnly;

    async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
        Ok(self.0.read(request.parts())?)
    }
}

impl KeyExtractor for FromBody {
    type Reads = WithBody;

    async fn extract(&self, request: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
        let body = request.body().await?;
        Ok(self.0.read(&body)?)
    }
}

impl KeyExtractor for Constant {
    type Reads = HeadOnly;

    async fn extract(&self, _: &mut KeyRequest<'_>) -> Result<KeyPart, KeyError> {
        KeyPart::new("constant", &self.0).map(KeyPart::common)
    }
}
