//! Reduces equivalent spellings to one, and keeps different values different.

use std::borrow::Cow;

use http::Uri;
#[cfg(feature = "replay")]
use http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

/// The characters that a canonical segment does not contain: all but the `pchar` of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// Returns the canonical path and the raw query of a request, in nested routers too.
#[cfg(feature = "replay")]
pub(crate) fn canonical_uri(request: &Parts) -> (String, Option<&str>) {
    let uri = super::source::uri(request);
    (path(uri), uri.query())
}

/// Returns the path with every segment decoded and encoded again.
///
/// `/users/%31` becomes `/users/1`. A slash inside of a segment stays encoded, so `/a%2Fb` differs from
/// `/a/b`.
pub(crate) fn path(uri: &Uri) -> String {
    let mut canonical = String::with_capacity(uri.path().len());
    for (index, segment) in uri.path().split('/').enumerate() {
        if index > 0 {
            canonical.push('/');
        }
        let decoded: Cow<'_, [u8]> = percent_decode(segment.as_bytes()).into();
        canonical.extend(percent_encode(&decoded, ENCODED));
    }
    canonical
}

/// Returns the decoded values of `name` in a query or a form, by the rules of HTML forms.
pub(crate) fn decoded_pairs<'a>(
    encoded: &'a [u8],
    name: &str,
) -> impl Iterator<Item = Cow<'a, [u8]>> {
    encoded.split(|&byte| byte == b'&').filter_map(move |pair| {
        let equals = pair.iter().position(|&byte| byte == b'=');
        let (key, value) = match equals {
            Some(equals) => (&pair[..equals], &pair[equals + 1..]),
            None => (pair, &b""[..]),
        };
        let matches = !pair.is_empty() && *form_decoded(key) == *name.as_bytes();
        matches.then(|| form_decoded(value))
    })
}

/// Returns bytes as text, so that different bytes make different texts.
///
/// UTF-8 stays as it is. Other bytes, such as the Latin-1 of an old proxy, become one character each,
/// and a mark in front distinguishes the result from UTF-8.
pub(crate) fn text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    const MARK: char = '\u{1}';
    let by_bytes = |bytes: &[u8]| {
        let characters = bytes.iter().copied().map(char::from);
        std::iter::once(MARK).chain(characters).collect::<String>()
    };
    match bytes {
        Cow::Borrowed(bytes) => match str::from_utf8(bytes) {
            Ok(text) if !text.starts_with(MARK) => Cow::Borrowed(text),
            _ => Cow::Owned(by_bytes(bytes)),
        },
        Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
            Ok(text) if !text.starts_with(MARK) => text,
            Ok(text) => by_bytes(text.as_bytes()),
            Err(error) => by_bytes(error.as_bytes()),
        }),
    }
}

/// Decodes by the rules of HTML forms, in which `+` is a space.
///
/// A `%` without two hexadecimal digits stays, as in routers.
fn form_decoded(bytes: &[u8]) -> Cow<'_, [u8]> {
    if !bytes.contains(&b'+') {
        return percent_decode(bytes).into();
    }
    let spaced = bytes.iter().map(|&byte| match byte {
        b'+' => b' ',
        byte => byte,
    });
    Cow::Owned(percent_decode(&spaced.collect::<Vec<_>>()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_and_plus_are_decoded_as_forms_write_them() {
        let pairs = b"a+b=1%2B2+3%zz&c&";
        let values: Vec<_> = decoded_pairs(pairs, "a b").collect();
        assert_eq!(values, [Cow::Borrowed(b"1+2 3%zz".as_slice())]);
        assert_eq!(decoded_pairs(pairs, "c").next().unwrap().len(), 0);
    }

    #[test]
    fn a_plus_in_a_path_is_a_plus() {
        let uri: Uri = "/a+b%2Bc%C3%A9%zz".parse().unwrap();
        assert_eq!(path(&uri), "/a+b+c%C3%A9%25zz");
    }

    #[test]
    fn different_bytes_are_different_text() {
        let all = [
            &b"\xE9"[..],
            "é".as_bytes(),
            b"\x01\xC3\xA9",
            b"\x01\xE9",
            b"\x01",
            b"\x01\x01",
            b"%E9",
        ];
        let texts: std::collections::HashSet<_> = all
            .iter()
            .map(|&bytes| text(Cow::Borrowed(bytes)))
            .collect();
        assert_eq!(texts.len(), all.len());
        for bytes in all {
            assert_eq!(text(Cow::Owned(bytes.to_vec())), text(Cow::Borrowed(bytes)));
        }
    }
}
