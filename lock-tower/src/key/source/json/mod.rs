//! Values from a JSON body (feature `json`).
//!
//! Numbers are compared by their exact value. `1`, `1.0` and `1e0` are equal. Two numbers that differ in
//! the thirtieth digit are different.

mod number;
mod pointer;
mod tree;

pub(crate) use pointer::Pointer;
use tree::Json;

use crate::key::{KeyFailure, KeyPart};

/// Makes a part from the value at a pointer.
///
/// A string stays as it is. Numbers and Booleans get a mark, so `42` differs from `"42"`. An object or
/// a list becomes a digest.
pub(super) fn at(body: &[u8], pointer: &Pointer, name: &str) -> Result<KeyPart, KeyFailure> {
    let document = tree::parse(body)?;
    let Some(value) = pointer.find(&document) else {
        return Err(KeyFailure::missing(Some(name)));
    };
    match value {
        Json::Text(text) if text.trim().is_empty() => Err(KeyFailure::empty(name)),
        Json::Text(text) => Ok(KeyPart::text(text)),
        Json::Null => Err(KeyFailure::null(name)),
        Json::Object(_) | Json::List(_) => Ok(KeyPart::marked_digest(&value.to_string())),
        Json::Number(_) | Json::Bool(_) => Ok(KeyPart::not_text(&value.to_string())),
    }
}

/// Makes a digest of the whole document, regardless of the order of its members.
pub(super) fn digest(body: &[u8]) -> Result<KeyPart, KeyFailure> {
    Ok(KeyPart::digest(tree::parse(body)?.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::part::KeyText;

    fn text(part: Result<KeyPart, KeyFailure>) -> Result<String, KeyFailure> {
        let mut key = KeyText::default();
        part?.push_to(&mut key);
        Ok(key.finish()?.as_str().unwrap_or_default().to_owned())
    }

    fn found(body: &str, pointer: &str) -> Result<String, KeyFailure> {
        text(at(
            body.as_bytes(),
            &Pointer::parse(pointer).unwrap(),
            "json",
        ))
    }

    fn digested(body: &str) -> Result<String, KeyFailure> {
        text(digest(body.as_bytes()))
    }

    #[test]
    fn a_pointer_finds_what_it_names() {
        let body = r#" {"order": {"sku": "A:1", "n": [1, {"": true}], "a/b": {"~": 1.50}} } "#;
        assert_eq!(found(body, "/order/sku").unwrap(), "A%3A1");
        assert_eq!(found(body, "/order/n/0").unwrap(), "%=1");
        assert_eq!(found(body, "/order/n/1/").unwrap(), "%=true");
        assert_eq!(found(body, "/order/a~1b/~0").unwrap(), "%=15e-1");
        for nothing in [
            "/",
            "/order/skus",
            "/order/n/2",
            "/order/n/-",
            "/order/n/00",
            "/order/sku/0",
        ] {
            assert_eq!(
                found(body, nothing),
                Err(KeyFailure::missing(Some("json"))),
                "{nothing}"
            );
        }
        assert_eq!(found(r#"{"a": ""}"#, "/a"), Err(KeyFailure::empty("json")));
        assert_eq!(found(r#"{"a": null}"#, "/a"), Err(KeyFailure::null("json")));
        assert_eq!(found(r#"{"\u0061": "\u00e9"}"#, "/a").unwrap(), "é");
    }

    /// Checks values that all differ from one another.
    #[test]
    fn different_values_are_different_parts() {
        let values = [
            r#""1""#,
            "1",
            "10",
            "1e2",
            "-1",
            "0",
            "true",
            r#""true""#,
            "false",
            r#""null""#,
            r#""%=1""#,
            "[]",
            "{}",
            "[1]",
            "[[1]]",
            r#"["1"]"#,
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"b":1}"#,
            r#"[{"a":1}]"#,
            "[1,2]",
            "[2,1]",
            "18446744073709551617",
            "18446744073709551618",
            "0.1",
            "0.10000000000000000000000000001",
            r#"" a""#,
            "[null]",
            "[false]",
            r#""[]""#,
            r#"["1,2"]"#,
            r#"["1","2"]"#,
            r#"["\"","\""]"#,
            r#"["\",\""]"#,
        ];
        let found: std::collections::HashSet<_> = values
            .iter()
            .map(|value| found(&format!(r#"{{"v": {value}}}"#), "/v").unwrap())
            .collect();
        assert_eq!(found.len(), values.len());
        let digests: std::collections::HashSet<_> = values
            .iter()
            .map(|value| digested(value).unwrap())
            .collect();
        assert_eq!(digests.len(), values.len());
    }

    #[test]
    fn two_spellings_of_one_document_have_one_digest() {
        let one = r#"{"a": [1, 2.0, {"x": null, "y": "é"}], "b": {"c": 1e3, "d": "\/"}}"#;
        let other =
            "{\"b\":{\"d\":\"/\",\"c\":1000},\n\t\"a\":[1.0,2,{\"y\":\"\\u00e9\",\"x\":null}]}\r\n";
        assert_eq!(digested(one), digested(other));
        assert_eq!(found(one, "/a"), found(other, "/a"));
    }

    #[test]
    fn invalid_or_ambiguous_json_is_refused() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let unequal = format!("{}1", "[".repeat(1_000_000));
        for body in [
            "",
            " ",
            "{",
            "nul",
            "{\"a\":1,}",
            "[1 2]",
            "01",
            "+1",
            "1.",
            "\"\n\"",
            "\"\\ud800\"",
            "{} {}",
            "{'a':1}",
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"[{"b":{"a":1,"a":2}}]"#,
            "1e99999999999999999999",
            &deep(65),
            &deep(100_000),
            &unequal,
        ] {
            let start = &body[..body.len().min(40)];
            assert_eq!(digested(body), Err(KeyFailure::BodyInvalid), "{start}");
            assert_eq!(found(body, "/a"), Err(KeyFailure::BodyInvalid), "{start}");
        }
        assert_eq!(text(digest(b"\"\xFF\"")), Err(KeyFailure::BodyInvalid));
        assert!(digested(&deep(64)).is_ok());
    }
}
