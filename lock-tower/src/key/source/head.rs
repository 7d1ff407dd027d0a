//! Values from the head of a request.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use http::header::{AUTHORIZATION, COOKIE};
use http::request::Parts;
use http::{HeaderMap, Method, Uri};

use super::{HeadSource, forwarded, host, idempotency, single_value};
use crate::key::canonical::{self, decoded_pairs};
use crate::key::{KeyFailure, KeyPart};

impl HeadSource {
    /// Reads the value from the head.
    pub(crate) fn read(&self, request: &mut Parts) -> Result<KeyPart, KeyFailure> {
        let headers = &request.headers;
        match self {
            Self::Header(name) => {
                let values = headers.get_all(name).iter();
                self.only(values.map(|value| Cow::Borrowed(trimmed(value.as_bytes()))))
            }
            Self::Cookie(name) => self.only(cookies(headers, name)),
            Self::Session(name) => self.only(cookies(headers, name)).map(KeyPart::digested),
            Self::Bearer => self.only(bearer_tokens(headers)).map(KeyPart::digested),
            Self::IdempotencyKey => {
                let invalid = || KeyFailure::Invalid(Some(self.to_string()));
                let values: Option<Vec<_>> = idempotency::values(headers).collect();
                self.only(values.ok_or_else(invalid)?.into_iter())
            }
            Self::Extension(extension) => {
                let value = extension.read(&request.extensions);
                self.only(value.map(|value| value.into_bytes().into()).into_iter())
            }
            Self::Query(name) => {
                let query = uri(request).query().unwrap_or_default();
                self.only(decoded_pairs(query.as_bytes(), name))
            }
            #[cfg(feature = "axum")]
            Self::Param(name) => self.param(name, request),
            Self::Method => Ok(KeyPart::text(method(&request.method).as_str()).common()),
            Self::Host => {
                let values: Option<Vec<_>> = host::values(uri(request), headers).collect();
                let values = values.ok_or_else(|| KeyFailure::Invalid(Some(self.to_string())))?;
                let values = values.into_iter().map(|host| host.into_bytes().into());
                // Many clients use the same host.
                self.only(values).map(KeyPart::common)
            }
            Self::Route => Ok(KeyPart::text(&route(request)).common()),
            Self::Path => Ok(KeyPart::text(&canonical::path(uri(request))).common()),
            Self::Peer => {
                let address = peer(request).map(|address| address.to_canonical().to_string());
                self.only(
                    address
                        .map(|address| address.into_bytes().into())
                        .into_iter(),
                )
            }
            Self::Forwarded(hops) => self.address(forwarded::by_forwarded(headers, *hops)),
            Self::XForwardedFor(hops) => {
                self.address(forwarded::by_x_forwarded_for(headers, *hops))
            }
        }
    }

    fn only<'a>(&self, values: impl Iterator<Item = Cow<'a, [u8]>>) -> Result<KeyPart, KeyFailure> {
        single_value(&self.to_string(), values)
    }

    fn address(&self, found: Result<String, forwarded::NoAddress>) -> Result<KeyPart, KeyFailure> {
        let address = found.map_err(|error| match error {
            forwarded::NoAddress::Missing => KeyFailure::missing(Some(&self.to_string())),
            forwarded::NoAddress::Malformed => KeyFailure::Invalid(Some(self.to_string())),
        })?;
        Ok(KeyPart::text(&address))
    }

    #[cfg(feature = "axum")]
    fn param(&self, name: &str, request: &mut Parts) -> Result<KeyPart, KeyFailure> {
        use axum::extract::rejection::RawPathParamsRejection::InvalidUtf8InPathParam;
        use axum::extract::{FromRequestParts, RawPathParams};
        use std::pin::pin;
        use std::task::{Context, Poll, Waker};

        // axum offers the parameters only through this future, which is ready at the first poll.
        let params = pin!(RawPathParams::from_request_parts(request, &()));
        let params = match params.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(InvalidUtf8InPathParam(_))) => {
                return Err(KeyFailure::Invalid(Some(self.to_string())));
            }
            Poll::Ready(params) => params.ok(),
            Poll::Pending => None,
        };
        let params = params.iter().flatten();
        let values = params.filter(|(key, _)| *key == name);
        self.only(values.map(|(_, value)| Cow::Borrowed(value.as_bytes())))
    }
}

/// Returns the method, and GET for HEAD, because the same handler answers both.
fn method(method: &Method) -> &Method {
    match *method {
        Method::HEAD => &Method::GET,
        _ => method,
    }
}

/// Removes the blanks around a header's value, which are not part of it.
///
/// HTTP/1 removes them. HTTP/2, and callers in the same process, may not.
fn trimmed(value: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value.iter().take_while(|byte| is_blank(byte)).count();
    let value = &value[start..];
    let end = value.iter().rev().take_while(|byte| is_blank(byte)).count();
    &value[..value.len() - end]
}

fn cookies<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = Cow<'a, [u8]>> {
    let headers = headers.get_all(COOKIE).iter();
    let pairs = headers.flat_map(|header| header.as_bytes().split(|&byte| byte == b';'));
    pairs.filter_map(move |pair| {
        let equals = pair.iter().position(|&byte| byte == b'=')?;
        let (key, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        (key == name.as_bytes()).then_some(Cow::Borrowed(value))
    })
}

/// Returns the bearer tokens. The scheme is case-insensitive, but the token is not.
fn bearer_tokens(headers: &HeaderMap) -> impl Iterator<Item = Cow<'_, [u8]>> {
    headers.get_all(AUTHORIZATION).iter().filter_map(|value| {
        let (scheme, token) = value.as_bytes().split_at_checked(b"bearer".len())?;
        let spaced = token.is_empty() || token.starts_with(b" ");
        let is_bearer = scheme.eq_ignore_ascii_case(b"bearer") && spaced;
        is_bearer.then_some(Cow::Borrowed(token.trim_ascii()))
    })
}

/// Returns the route that a router matched, or the canonical path if there is none.
fn route(request: &Parts) -> Cow<'_, str> {
    #[cfg(feature = "axum")]
    if let Some(route) = request.extensions.get::<axum::extract::MatchedPath>() {
        return Cow::Borrowed(route.as_str());
    }
    Cow::Owned(canonical::path(uri(request)))
}

/// Returns the whole URI.
///
/// In a nested router the request's own URI lacks its beginning, so two routers could make one key.
pub(crate) fn uri(request: &Parts) -> &Uri {
    #[cfg(feature = "axum")]
    if let Some(original) = request.extensions.get::<axum::extract::OriginalUri>() {
        return &original.0;
    }
    &request.uri
}

/// Returns the peer's address without its port, which differs for every connection.
fn peer(request: &Parts) -> Option<IpAddr> {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::ConnectInfo(address)) = request.extensions.get() {
        let address: &SocketAddr = address;
        return Some(address.ip());
    }
    let address: Option<&SocketAddr> = request.extensions.get();
    address.map(SocketAddr::ip)
}
