//! The template of a layer's key: parsed once, filled in for every request.

use std::future::Future;
use std::pin::Pin;

use http::request::Parts;
use lock_core::LockKey;

use super::extractor::optional;
use super::kind::{AtOnce, Extract};
use super::part::Key;
use super::source::{self, HeadSource, Source};
use super::{KeyPart, KeyRequest, NoKey};

/// Text and sources, in their order.
#[derive(Debug)]
pub(super) struct Template {
    /// That all its keys have in common.
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
    /// The error says what to write.
    pub(super) fn parse(written: &str) -> Result<Self, String> {
        match written {
            "lower" => Ok(Self::Lower),
            "sha256" => Ok(Self::Sha256),
            _ if written.ends_with('?') => Err(
                "write the `?` before the filters, such as `<header.x-tenant?|lower>`".to_owned(),
            ),
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
    fn finish(&self, part: Result<KeyPart, NoKey>) -> Result<KeyPart, NoKey> {
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

    /// Whether it asks for the route that axum has matched.
    pub(super) fn names_route(&self) -> bool {
        let is_route = |value: &Value| matches!(value.source, Source::Head(HeadSource::Route));
        self.values().any(is_route)
    }

    /// The key, whose values come from `read`, in their order.
    fn fill(
        &self,
        mut read: impl FnMut(&Value) -> Result<KeyPart, NoKey>,
    ) -> Result<LockKey, NoKey> {
        let mut key = Key::beginning_with(&self.beginning);
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

/// As the parser has seen to, all sources of such a template are in the head.
impl AtOnce for Template {
    fn key(&self, request: &mut Parts) -> Result<LockKey, NoKey> {
        self.fill(|value| match &value.source {
            Source::Head(source) => value.finish(source.read(request)),
            Source::Body(_) => Err(NoKey::NoBody),
        })
    }
}

impl Extract for Template {
    fn key<'a>(
        &'a self,
        request: &'a mut KeyRequest<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<LockKey, NoKey>> + Send + 'a>> {
        Box::pin(async move {
            // The head first: a request that lacks something there need not send its body.
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
                true => request.body().await.map_err(super::KeyError::into_inner)?,
                false => Default::default(),
            };
            let mut head = head.into_iter();
            self.fill(|value| match (head.next().flatten(), &value.source) {
                (None, Source::Body(source)) => value.finish(source.read(&body)),
                (part, _) => part.ok_or(NoKey::missing(None)),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::key::parser::{self, Reading};
    use http::Request;
    use http::request::Builder;

    fn key(template: &str, request: Builder) -> Result<String, NoKey> {
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let template = parser::parse(&template.into(), Reading::HeadOnly).unwrap();
        let key = AtOnce::key(&template, &mut parts)?;
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
    fn an_optional_part_that_is_not_there_is_no_value_and_not_the_empty_one() {
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
    fn a_request_that_leaves_out_all_that_is_optional_shares_no_lock() {
        for template in [
            "<header.a?>",
            "k:<header.a?>:<cookie.b?>",
            "k:<header.a?|sha256>:<method>:<route>:<path>",
        ] {
            for request in [with(&[]), with(&[("a", Some(""))])] {
                assert_eq!(
                    key(template, request),
                    Err(NoKey::missing(None)),
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
    fn what_is_too_long_becomes_a_digest_and_what_is_the_kits_is_encoded() {
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

    /// All combinations of values that could be taken for one another, absent ones and too long ones
    /// among them.
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
                        // What is around a value is no part of it, for HTTP.
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
