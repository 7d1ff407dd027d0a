//! Extractors that need only be named.

use std::fmt::Display;

use super::source::{self, BodySource, Extension, HeadSource, Source};
use super::{HeadOnly, KeyError, KeyExtractor, KeyPart, KeyRequest, WithBody};

/// A value from the head of a request.
#[derive(Clone, Debug)]
#[must_use = "an extractor does nothing until a layer is made of it"]
pub struct FromHead(HeadSource);

/// A value from the body of a request.
#[derive(Clone, Debug)]
#[must_use = "an extractor does nothing until a layer is made of it"]
pub struct FromBody(BodySource);

/// A text, the same for all requests.
#[derive(Clone, Debug)]
#[must_use = "an extractor does nothing until a layer is made of it"]
pub struct Constant(String);

/// The same text for all requests: what tells the keys of one layer from those of another.
pub fn constant(text: impl Into<String>) -> Constant {
    Constant(text.into())
}

/// A header.
///
/// # Panics
///
/// No header can have that name, or it is `host` or `cookie`, which HTTP/2 has not as HTTP/1 has: use
/// [`host`] and [`cookie`].
#[track_caller]
pub fn header(name: impl AsRef<str>) -> FromHead {
    head("header", name.as_ref())
}

/// A cookie.
///
/// # Panics
///
/// No cookie can have that name.
#[track_caller]
pub fn cookie(name: &str) -> FromHead {
    head("cookie", name)
}

/// A cookie that is secret, digested.
///
/// # Panics
///
/// No cookie can have that name.
#[track_caller]
pub fn session(cookie: &str) -> FromHead {
    head("session", cookie)
}

/// The token of `Authorization: Bearer …`, digested.
pub fn bearer() -> FromHead {
    FromHead(HeadSource::Bearer)
}

/// The header `Idempotency-Key`: quoted, as its draft has it, or bare.
pub fn idempotency_key() -> FromHead {
    FromHead(HeadSource::IdempotencyKey)
}

/// Of the extension of type `T`, what this displays as. `name` is what a refusal calls it.
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

/// The host that the request is for, without its port, in lower case: of `:authority` or `Host`.
pub fn host() -> FromHead {
    FromHead(HeadSource::Host)
}

/// The method; HEAD counts as GET, whose handler answers it.
pub fn method() -> FromHead {
    FromHead(HeadSource::Method)
}

/// The route that axum has matched (feature `axum`), else the path.
pub fn route() -> FromHead {
    FromHead(HeadSource::Route)
}

/// The path, in one spelling.
pub fn path() -> FromHead {
    FromHead(HeadSource::Path)
}

/// A parameter of the route that axum has matched, decoded.
///
/// # Panics
///
/// No parameter can have that name.
#[cfg(feature = "axum")]
#[track_caller]
pub fn param(name: &str) -> FromHead {
    head("param", name)
}

/// A parameter of the query, decoded.
///
/// # Panics
///
/// The name is empty, or holds white space, quotes, backslashes or `<`.
#[track_caller]
pub fn query(name: &str) -> FromHead {
    head("query", name)
}

/// The address that the connection is from, without the port: axum's `ConnectInfo<SocketAddr>`
/// (feature `axum`), else a `SocketAddr` in the request's extensions.
pub fn peer() -> FromHead {
    FromHead(HeadSource::Peer)
}

/// The address in `Forwarded` (RFC 7239) that the outermost of so many trusted proxies was called
/// from.
///
/// # Panics
///
/// Not between 1 and 32.
#[track_caller]
pub fn forwarded(trusted_proxies: usize) -> FromHead {
    head("forwarded", &trusted_proxies.to_string())
}

/// The address in `X-Forwarded-For` that the outermost of so many trusted proxies was called from.
///
/// # Panics
///
/// Not between 1 and 32.
#[track_caller]
pub fn x_forwarded_for(trusted_proxies: usize) -> FromHead {
    head("x-forwarded-for", &trusted_proxies.to_string())
}

/// The value in a JSON body that a pointer (RFC 6901) names, such as `/order/sku`.
///
/// # Panics
///
/// It is no pointer.
#[cfg(feature = "json")]
#[track_caller]
pub fn json(pointer: &str) -> FromBody {
    assert!(
        pointer.starts_with('/'),
        "`{pointer}` is no JSON pointer; it begins with a slash"
    );
    body_source("json", pointer)
}

/// A whole JSON body, digested: the order of members, white space and the spelling of numbers and
/// strings do not matter.
#[cfg(feature = "json")]
pub fn json_digest() -> FromBody {
    FromBody(BodySource::Document)
}

/// A field of a body that is a form (`application/x-www-form-urlencoded`), decoded.
///
/// # Panics
///
/// The name is empty, or holds white space, quotes, backslashes or `<`.
#[track_caller]
pub fn form(name: &str) -> FromBody {
    body_source("form", name)
}

/// The bytes of the body, digested.
pub fn body() -> FromBody {
    FromBody(BodySource::Bytes)
}

#[track_caller]
fn head(kind: &str, name: &str) -> FromHead {
    match made(kind, name) {
        Source::Head(source) => FromHead(source),
        Source::Body(source) => panic!("`{source}` is in the body"),
    }
}

#[track_caller]
fn body_source(kind: &str, name: &str) -> FromBody {
    match made(kind, name) {
        Source::Body(source) => FromBody(source),
        Source::Head(source) => panic!("`{source}` is in the head"),
    }
}

#[track_caller]
fn made(kind: &str, name: &str) -> Source {
    match source::made(kind, name, &[]) {
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
