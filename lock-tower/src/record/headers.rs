//! The headers of an answer that a record keeps.
//!
//! The list names what is kept, because unknown headers may carry the secrets of one connection:
//! tokens hide in `x-…`.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::codec::Unreadable;
use super::cursor::{Cursor, push_bytes, push_varint};

/// The headers that are always kept. Records refer to them by their place, so add only at the end.
const TABLE: [&str; 29] = [
    "content-type",
    "content-encoding",
    "content-language",
    "content-disposition",
    "content-location",
    "location",
    "link",
    "etag",
    "last-modified",
    "cache-control",
    "expires",
    "vary",
    "allow",
    "retry-after",
    "grpc-status",
    "grpc-message",
    "grpc-encoding",
    "grpc-status-details-bin",
    // A page without these is less protected than the first answer was.
    "content-security-policy",
    "content-security-policy-report-only",
    "x-content-type-options",
    "x-frame-options",
    "referrer-policy",
    "permissions-policy",
    "strict-transport-security",
    "cross-origin-opener-policy",
    "cross-origin-embedder-policy",
    "cross-origin-resource-policy",
    "content-range",
];

/// The headers that are never kept: credentials, and those that belong to one connection or answer.
const NEVER: [&str; 18] = [
    "set-cookie",
    "set-cookie2",
    "cookie",
    "cookie2",
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "date",
    "www-authenticate",
    "proxy-authenticate",
    "authentication-info",
    "proxy-authentication-info",
    "idempotency-replayed",
];

/// The most bytes that the headers, or the trailers, of one record may have.
pub(super) const LARGEST: usize = 8 * 1024;

pub(super) fn is_never_kept(name: &HeaderName) -> bool {
    let name = name.as_str();
    NEVER.contains(&name) || name.ends_with("-authenticate") || name.ends_with("authorization")
}

fn is_kept(name: &HeaderName, more: &[HeaderName]) -> bool {
    let listed = || TABLE.contains(&name.as_str()) || name.as_str().starts_with("grpc-");
    !is_never_kept(name) && (listed() || more.contains(name))
}

/// Appends the headers that are kept, or returns `None` if they are too large.
pub(super) fn push(output: &mut Vec<u8>, headers: &HeaderMap, more: &[HeaderName]) -> Option<()> {
    let kept = || headers.iter().filter(|(name, _)| is_kept(name, more));
    push_varint(output, kept().count() as u64);
    let start = output.len();
    for (name, value) in kept() {
        match TABLE.iter().position(|listed| name == listed) {
            Some(place) => push_varint(output, place as u64 + 1),
            None => {
                push_varint(output, 0);
                push_bytes(output, name.as_str().as_bytes());
            }
        }
        push_bytes(output, value.as_bytes());
    }
    (output.len() - start <= LARGEST).then_some(())
}

pub(super) fn read(from: &mut Cursor<'_>) -> Result<HeaderMap, Unreadable> {
    let mut headers = HeaderMap::new();
    for _ in 0..from.varint()? {
        let name = match usize::try_from(from.varint()?) {
            Ok(0) => HeaderName::from_bytes(from.bytes()?).map_err(|_| Unreadable::Corrupt)?,
            Ok(place) => {
                let listed = TABLE.get(place - 1).ok_or(Unreadable::Corrupt)?;
                HeaderName::from_static(listed)
            }
            Err(_) => return Err(Unreadable::Corrupt),
        };
        let value = HeaderValue::from_bytes(from.bytes()?).map_err(|_| Unreadable::Corrupt)?;
        // A map has room for 32 768 names. A record with more of them was not written by this file.
        let stored = headers.try_append(name, value);
        stored.map_err(|_| Unreadable::Corrupt)?;
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRETS: [&str; 4] = [
        "x-token",
        "new-authenticate",
        "authorization",
        "proxy-authorization",
    ];

    #[test]
    fn the_headers_of_the_answer_are_kept_and_no_secret_of_a_connection_is() {
        let kept =
            |name: &'static str, more: &[HeaderName]| is_kept(&HeaderName::from_static(name), more);
        for name in TABLE.iter().copied().chain(["grpc-new"]) {
            assert!(kept(name, &[]), "{name}");
        }
        for name in NEVER.iter().copied().chain(SECRETS) {
            assert!(!kept(name, &[]), "{name}");
        }
        let named = [HeaderName::from_static("x-token")];
        assert!(kept("x-token", &named));
        let never = NEVER.map(HeaderName::from_static);
        assert!(NEVER.iter().all(|name| !kept(name, &never)));
    }

    #[test]
    fn more_than_8_kib_of_headers_are_too_large() {
        let of = |bytes: usize| {
            let value = HeaderValue::from_bytes(&vec![b'x'; bytes]).unwrap();
            let headers = HeaderMap::from_iter([(http::header::LINK, value)]);
            push(&mut Vec::new(), &headers, &[]).is_some()
        };
        assert!(of(LARGEST - 3));
        assert!(!of(LARGEST - 2));
    }
}
