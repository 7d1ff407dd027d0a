//! The header `Idempotency-Key`.
//!
//! Its draft requires a quoted string, but most clients send it without quotes.

use std::borrow::Cow;

use http::HeaderMap;

/// Returns the values, with `None` for each that is malformed. `"abc"` and `abc` are equal.
pub(super) fn values(headers: &HeaderMap) -> impl Iterator<Item = Option<Cow<'_, [u8]>>> {
    let values = headers.get_all("idempotency-key").iter();
    values.map(|value| match value.as_bytes().trim_ascii() {
        [b'"', quoted @ ..] => unquoted(quoted).map(Cow::Owned),
        bare => Some(Cow::Borrowed(bare)),
    })
}

/// Parses a string of RFC 9651 after its first quote, and ignores parameters.
fn unquoted(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(rest.len());
    loop {
        rest = match rest {
            [b'"', after @ ..] => {
                let after = after.trim_ascii_start();
                return (after.is_empty() || after.starts_with(b";")).then_some(text);
            }
            [b'\\', escaped @ (b'"' | b'\\'), after @ ..] => {
                text.push(*escaped);
                after
            }
            [b'\\', ..] => return None,
            [plain @ b' '..=b'~', after @ ..] => {
                text.push(*plain);
                after
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn read(value: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert("idempotency-key", HeaderValue::from_str(value).unwrap());
        let value = values(&headers).next().unwrap()?;
        Some(String::from_utf8(value.into_owned()).unwrap())
    }

    #[test]
    fn quoted_and_bare_are_the_same() {
        assert_eq!(read("8e03978e-40d5").as_deref(), Some("8e03978e-40d5"));
        assert_eq!(read(r#""8e03978e-40d5""#).as_deref(), Some("8e03978e-40d5"));
        assert_eq!(read(r#" "a b" ;x=1"#).as_deref(), Some("a b"));
        assert_eq!(read(r#""a\"\\b""#).as_deref(), Some(r#"a"\b"#));
        assert_eq!(read(r#""""#).as_deref(), Some(""));
    }

    #[test]
    fn a_malformed_quoted_string_is_refused() {
        for strange in [
            r#"""#,
            r#""a"#,
            r#""a"b"#,
            r#""a\b""#,
            r#""a\"#,
            "\"a\tb\"",
            "\"\u{e9}\"",
        ] {
            assert_eq!(read(strange), None, "{strange}");
        }
    }
}
