//! The template of a layer's key, which is parsed once and filled in for every request.

mod error;
mod foreign;
mod key_template;
mod parser;

use std::future::Future;
use std::pin::Pin;

use http::request::Parts;
use lock_core::LockKey;

use super::extractor::optional;
use super::kind::{AsyncKey, SyncKey};
use super::part::KeyText;
use super::source::{self, HeadSource, Source};
use super::{KeyError, KeyFailure, KeyPart, KeyRequest};

pub use error::TemplateError;
pub use key_template::KeyTemplate;
pub(crate) use parser::{AllowedSources, parse_template};

/// A parsed template: text and sources in their order.
#[derive(Debug)]
pub(crate) struct Template {
    /// The text that all its keys begin with.
    beginning: String,
    parts: Vec<Part>,
}

#[derive(Debug)]
pub(super) enum Part {
    Text(String),
    Value(Value),
}

#[derive(Debug)]
pub(super) struct Value {
    pub(super) source: Source,
    pub(super) optional: bool,
    pub(super) filters: Vec<Filter>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Filter {
    Lower,
    Sha256,
}

impl Filter {
    /// Parses the name of a filter. The error says what to write.
    pub(super) fn parse(written: &str) -> Result<Self, String> {
        match written {
            "lower" => Ok(Self::Lower),
            "sha256" => Ok(Self::Sha256),
            _ if written.ends_with('?') => {
                Err("write the `?` before the filters, as in `<header.x-tenant?|lower>`".to_owned())
            }
            _ => {
                let hint = match source::closest(written, &["lower", "sha256"]) {
                    Some(close) => format!("did you mean `|{close}`? "),
                    None => String::new(),
                };
                Err(format!(
                    "there is no filter `{written}`; {hint}the filters are `|lower` and `|sha256`"
                ))
            }
        }
    }

    fn apply(self, part: KeyPart) -> KeyPart {
        match self {
            Self::Lower => part.lowercase(),
            Self::Sha256 => part.digested(),
        }
    }
}

impl Value {
    fn finish(&self, part: Result<KeyPart, KeyFailure>) -> Result<KeyPart, KeyFailure> {
        let part = if self.optional { optional(part) } else { part };
        Ok(self
            .filters
            .iter()
            .fold(part?, |part, filter| filter.apply(part)))
    }
}

impl Template {
    pub(super) fn new(mut parts: Vec<Part>) -> Self {
        let beginning = match parts.first_mut() {
            Some(Part::Text(text)) => std::mem::take(text),
            _ => String::new(),
        };
        Self { beginning, parts }
    }

    /// Returns whether the key contains the route that axum matched.
    pub(crate) fn names_route(&self) -> bool {
        let is_route = |value: &Value| matches!(value.source, Source::Head(HeadSource::Route));
        self.values().any(is_route)
    }

    /// Returns whether every key contains a caller that the service has authenticated.
    pub(crate) fn names_caller(&self) -> bool {
        let is_caller = |value: &Value| {
            let source = match &value.source {
                Source::Head(source) => source,
                Source::Body(_) => return false,
            };
            let caller = matches!(
                source,
                HeadSource::Extension(_) | HeadSource::Bearer | HeadSource::Session(_)
            );
            caller && !value.optional
        };
        self.values().any(is_caller)
    }

    /// Returns whether requests that lack a part have a key all the same.
    pub(crate) fn names_optional(&self) -> bool {
        self.values().any(|value| value.optional)
    }

    /// Makes the key from the values that `read` returns, in their order.
    fn fill(
        &self,
        mut read: impl FnMut(&Value) -> Result<KeyPart, KeyFailure>,
    ) -> Result<LockKey, KeyFailure> {
        let mut key = KeyText::beginning_with(&self.beginning);
        for part in &self.parts {
            match part {
                Part::Text(text) => key.push_text(text),
                Part::Value(value) => read(value)?.push_to(&mut key),
            }
        }
        key.finish()
    }

    fn values(&self) -> impl Iterator<Item = &Value> {
        self.parts.iter().filter_map(|part| match part {
            Part::Value(value) => Some(value),
            Part::Text(_) => None,
        })
    }
}

// The parser ensures that all sources of such a template are in the head.
impl SyncKey for Template {
    fn key(&self, request: &mut Parts) -> Result<LockKey, KeyFailure> {
        self.fill(|value| match &value.source {
            Source::Head(source) => value.finish(source.read(request)),
            Source::Body(_) => Err(KeyFailure::BodyNotRead),
        })
    }
}

impl AsyncKey for Template {
    fn key<'a>(
        &'a self,
        request: &'a mut KeyRequest<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<LockKey, KeyFailure>> + Send + 'a>> {
        Box::pin(async move {
            // The head comes first: if it lacks a part, the client need not send the body.
            let mut head = Vec::new();
            let mut in_body = false;
            for value in self.values() {
                head.push(match &value.source {
                    Source::Head(source) => Some(value.finish(source.read(request.parts()))?),
                    Source::Body(_) => {
                        in_body = true;
                        None
                    }
                });
            }
            let body = match in_body {
                true => request.body().await.map_err(KeyError::into_inner)?,
                false => Default::default(),
            };
            let mut head = head.into_iter();
            self.fill(|value| match (head.next().flatten(), &value.source) {
                (None, Source::Body(source)) => value.finish(source.read(&body)),
                (part, _) => part.ok_or(KeyFailure::missing(None)),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use http::Request;
    use http::request::Builder;

    fn key(template: &str, request: Builder) -> Result<String, KeyFailure> {
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let template = parse_template(&template.into(), AllowedSources::Head).unwrap();
        let key = SyncKey::key(&template, &mut parts)?;
        Ok(key.as_str().unwrap().to_owned())
    }

    fn with(headers: &[(&str, Option<&str>)]) -> Builder {
        let present = headers
            .iter()
            .filter_map(|(name, value)| Some((name, (*value)?)));
        present.fold(Request::post("/"), |request, (name, value)| {
            request.header(*name, value)
        })
    }

    #[test]
    fn text_and_values_make_the_key() {
        let request = Request::post("/orders").header("x-user-id", "42");
        assert_eq!(
            key("submit:<header.x-user-id>:<method>:<path>", request).unwrap(),
            "submit:42:POST:/orders"
        );
    }

    #[test]
    fn doubled_angles_are_characters_and_braces_are_hash_tags() {
        let request = Request::post("/").header("a", "1");
        assert_eq!(key("<<k>>:{<header.a>}:x", request).unwrap(), "<k>:{1}:x");
    }

    #[test]
    fn filters_are_applied_in_their_order() {
        let made = |template, value| key(template, with(&[("a", Some(value))])).unwrap();
        assert_eq!(made("k:<header.a|lower>", "Alice:B"), "k:alice%3Ab");
        assert_eq!(
            made("k:<header.a|lower|sha256>", "ABC"),
            made("k:<header.a|sha256>", "abc")
        );
        assert!(made("k:<header.a|sha256>", "abc").starts_with("k:ba7816bf"));
        assert_ne!(
            made("k:<header.a|sha256>", "abc"),
            made("k:<header.a|sha256>", "ABC")
        );
    }

    #[test]
    fn an_absent_optional_part_differs_from_every_value_and_from_the_empty_one() {
        let made = |value| {
            key(
                "k:<header.a?>:<header.b>",
                with(&[("a", value), ("b", Some("x"))]),
            )
            .unwrap()
        };
        assert_eq!(made(None), "k:%-:x");
        assert_eq!(made(Some("")), "k::x");
        assert_eq!(made(Some("%-")), "k:%25-:x");
        let digest = |value| {
            key(
                "k:<header.a?|sha256>:<header.b>",
                with(&[("a", value), ("b", Some("x"))]),
            )
            .unwrap()
        };
        assert_eq!(digest(None), "k:%-:x");
        assert_ne!(digest(Some("")), digest(None));
    }

    #[test]
    fn a_request_without_any_optional_part_shares_no_lock() {
        for template in [
            "<header.a?>",
            "k:<header.a?>:<cookie.b?>",
            "k:<header.a?|sha256>:<method>:<route>:<path>",
        ] {
            for request in [with(&[]), with(&[("a", Some(""))])] {
                assert_eq!(
                    key(template, request),
                    Err(KeyFailure::missing(None)),
                    "{template}"
                );
            }
            assert!(
                key(template, with(&[("a", Some("1"))])).is_ok(),
                "{template}"
            );
        }
        assert_eq!(
            key("k:<header.a?>:<header.b>", with(&[("b", Some("1"))])).unwrap(),
            "k:%-:1"
        );
        assert_eq!(key("k:<method>:<route>", with(&[])).unwrap(), "k:POST:/");
    }

    #[test]
    fn a_value_that_is_too_long_becomes_a_digest_and_a_reserved_beginning_is_encoded() {
        let made = |value: &str| key("k:<header.a>", with(&[("a", Some(value))])).unwrap();
        let long = made(&"x".repeat(2000));
        assert!(long.starts_with("k:%#") && long.len() == 68, "{long}");
        assert_ne!(long, made(&"x".repeat(2001)));
        assert_ne!(long, made(&long[2..]));
        assert_eq!(
            key("<header.a>", with(&[("a", Some("!f"))])).unwrap(),
            "%21f"
        );
    }

    /// Tries all combinations of values that could be confused, with absent and too long ones.
    #[test]
    fn different_requests_have_different_keys() {
        let long = [
            "x".repeat(1100),
            format!("{}:", "x".repeat(1100)),
            "x".repeat(1020),
        ];
        let mut values = vec![
            None,
            Some(""),
            Some("-"),
            Some("%-"),
            Some("%"),
            Some("%25"),
            Some(":"),
            Some("::"),
            Some("a"),
            Some("a:a"),
            Some("a%3Aa"),
            Some("{"),
            Some("}"),
            Some("<"),
            Some("%#"),
            Some("%(a:a%)"),
            Some("!"),
            Some("%21"),
            Some("%=1"),
            Some(" "),
            Some("A"),
            Some("\u{e9}"),
        ];
        values.extend(long.iter().map(|long| Some(long.as_str())));
        for template in [
            "k:<header.a?>:<header.b?>:<header.c?>",
            "<header.a?>{<header.b?>}<header.c?>",
        ] {
            let mut keys = HashMap::new();
            for a in &values {
                for b in &values {
                    for c in &values {
                        let request = with(&[("a", *a), ("b", *b), ("c", *c)]);
                        let Ok(made) = key(template, request) else {
                            assert!(
                                [a, b, c]
                                    .iter()
                                    .all(|value| value.is_none_or(|value| value.trim().is_empty()))
                            );
                            continue;
                        };
                        // In HTTP, white space around a value is not part of it.
                        let trimmed = [a, b, c].map(|value| value.map(str::trim));
                        if let Some(earlier) = keys.insert(made.clone(), trimmed) {
                            assert_eq!(earlier, trimmed, "{made}");
                        }
                    }
                }
            }
        }
    }
}
