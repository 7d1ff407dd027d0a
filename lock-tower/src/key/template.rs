//! The template of a layer's key: parsed once, filled in for every request.

use http::request::Parts;
use lock_core::__private::KeyBuilder;
use lock_core::LockKey;

use super::error::TemplateError;
use super::source::Source;
use super::{KeySource, NoKey, usable};

/// Text and sources, in their order.
#[derive(Debug)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Value(Source),
}

impl Template {
    pub(crate) fn parse(template: &str) -> Result<Self, TemplateError> {
        Parser::new(template).parse()
    }

    /// Whether it asks for the route that axum has matched.
    pub(crate) fn names_route(&self) -> bool {
        let is_route = |part: &Part| matches!(part, Part::Value(Source::Route));
        self.parts.iter().any(is_route)
    }
}

impl KeySource for Template {
    fn key(&self, request: &Parts) -> Result<LockKey, NoKey> {
        let mut key = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => key.push_str(text),
                Part::Value(source) => push_encoded(&mut key, &source.read(request)?)?,
            }
        }
        usable(LockKey::exact(key))
    }
}

/// By the encoding of lock-core's templates, so that a value can never hold a separator.
fn push_encoded(key: &mut String, value: &str) -> Result<(), NoKey> {
    // A key has its own rules for how it begins; a value need not keep them.
    const BEGINNING: &str = ":";
    let mut builder = KeyBuilder::new();
    builder.text(BEGINNING);
    builder.value("value", value);
    let encoded = usable(builder.finish())?;
    key.push_str(&encoded.as_str().unwrap_or_default()[BEGINNING.len()..]);
    Ok(())
}

struct Parser<'a> {
    template: &'a str,
    position: usize,
    parts: Vec<Part>,
    text: String,
}

impl<'a> Parser<'a> {
    fn new(template: &'a str) -> Self {
        Self {
            template,
            position: 0,
            parts: Vec::new(),
            text: String::new(),
        }
    }

    fn parse(mut self) -> Result<Template, TemplateError> {
        if self.template.starts_with('!') {
            return Err(self.error(
                0,
                "keys that begin with `!` are the kit's own; begin it with a letter",
            ));
        }
        while let Some(character) = self.rest().chars().next() {
            match character {
                '<' | '>' if self.rest()[1..].starts_with(character) => {
                    self.text.push(character);
                    self.position += 2;
                }
                '<' => self.placeholder()?,
                '>' => {
                    return Err(self.error(
                        self.position,
                        "this `>` closes nothing; write `>>` for the character",
                    ));
                }
                '{' => self.brace()?,
                _ => {
                    self.text.push(character);
                    self.position += character.len_utf8();
                }
            }
        }
        self.end_text();
        self.finish()
    }

    fn rest(&self) -> &'a str {
        &self.template[self.position..]
    }

    fn placeholder(&mut self) -> Result<(), TemplateError> {
        let start = self.position;
        let Some(length) = self.rest().find('>') else {
            return Err(self.error(
                start,
                "this `<` is not closed; write `<header.x-user-id>`, or `<<` for the character",
            ));
        };
        let written = &self.rest()[1..length];
        let source = Source::parse(written).map_err(|problem| self.error(start, problem))?;
        if !self.can_be_told_apart() {
            return Err(self.error(
                start,
                format!("`<{written}>` and the placeholder before it cannot be told apart; write `:` between them"),
            ));
        }
        self.end_text();
        self.parts.push(Part::Value(source));
        self.position += length + 1;
        Ok(())
    }

    /// A value holds none of these characters unencoded: one of them is a boundary that no value can
    /// shift.
    fn can_be_told_apart(&self) -> bool {
        self.parts.is_empty() || self.text.contains([':', '{', '}'])
    }

    /// Braces are the hash tags of Redis Cluster, and a mistake around the name of a source.
    fn brace(&mut self) -> Result<(), TemplateError> {
        if let Some((written, _)) = self.rest()[1..].split_once('}')
            && Source::parse(written).is_ok()
        {
            return Err(self.error(
                self.position,
                format!("`{{{written}}}` is text here; write `<{written}>`"),
            ));
        }
        self.text.push('{');
        self.position += 1;
        Ok(())
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.parts.push(Part::Text(std::mem::take(&mut self.text)));
        }
    }

    fn finish(self) -> Result<Template, TemplateError> {
        let names_something = |part: &Part| matches!(part, Part::Value(_));
        if !self.parts.iter().any(names_something) {
            return Err(self.error(
                0,
                "it names nothing of the request, so that all requests would share one lock; \
                 write such as `submit:<header.x-user-id>:<method>:<route>`",
            ));
        }
        if self.template.len() > 1024 {
            return Err(self.error(1024, "a key is at most 1024 bytes long"));
        }
        Ok(Template { parts: self.parts })
    }

    fn error(&self, position: usize, problem: impl Into<String>) -> TemplateError {
        TemplateError::new(self.template, position, problem.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn key(template: &str, request: http::request::Builder) -> Result<String, NoKey> {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let key = Template::parse(template).unwrap().key(&parts)?;
        Ok(key.as_str().unwrap().to_owned())
    }

    fn problem(template: &str) -> (usize, String) {
        let error = Template::parse(template).unwrap_err();
        (error.position(), error.to_string())
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
    fn values_that_hold_the_separator_cannot_collide() {
        let made = |one: &str, other: &str| {
            let request = Request::post("/").header("a", one).header("b", other);
            key("k:<header.a>:<header.b>", request).unwrap()
        };
        assert_ne!(made("x:y", "z"), made("x", "y:z"));
        assert_ne!(made("x:y", "z"), made("x%3Ay", "z"));
        assert_eq!(made("x:y", "z"), "k:x%3Ay:z");
    }

    #[test]
    fn doubled_angles_are_characters_and_braces_are_hash_tags() {
        let request = Request::post("/").header("a", "1");
        assert_eq!(key("<<k>>:{<header.a>}:x", request).unwrap(), "<k>:{1}:x");
    }

    #[test]
    fn a_value_that_is_too_long_is_the_requests_fault() {
        let request = Request::post("/").header("a", "x".repeat(2000));
        assert_eq!(key("k:<header.a>", request), Err(NoKey::Invalid));
        let request = Request::post("/").header("a", "!f");
        assert_eq!(key("<header.a>", request), Err(NoKey::Invalid));
    }

    #[test]
    fn a_mistake_is_named_with_its_position_and_what_to_write() {
        for (template, position, hints) in [
            ("", 0, &["one lock"][..]),
            ("submit", 0, &["one lock"]),
            ("!x:<method>", 0, &["`!`"]),
            ("k:<header.a", 2, &["not closed", "`<<`"]),
            ("k>:<header.a>", 1, &["`>>`"]),
            (
                "k:<headers.a>",
                2,
                &["did you mean `<header.a>`", "<cookie.NAME>"],
            ),
            ("k:<x-user-id>", 2, &["did you mean `<header.x-user-id>`"]),
            ("k:<uid>", 2, &["LockLayer::from_fn", "<header.NAME>"]),
            ("k:<header>", 2, &["<header.NAME>"]),
            ("k:<header.>", 2, &["<header.NAME>"]),
            ("k:<header.a b>", 2, &["no header"]),
            ("k:<method.x>", 2, &["`<method>`"]),
            ("k:<>", 2, &["<header.NAME>"]),
            ("k:<method><route>", 10, &["told apart", "`:`"]),
            ("k:<method>-<route>", 11, &["told apart"]),
            ("k:{header.a}:<method>", 2, &["write `<header.a>`"]),
            ("k:{method}", 2, &["write `<method>`"]),
            ("é:<methods>", 3, &["did you mean `<method>`"]),
        ] {
            let (found, text) = problem(template);
            assert_eq!(found, position, "{template}: {text}");
            for hint in hints {
                assert!(text.contains(hint), "{template}: {text}");
            }
        }
    }

    #[test]
    fn a_template_longer_than_a_key_is_refused() {
        let (_, text) = problem(&format!("{}:<method>", "x".repeat(1024)));
        assert!(text.contains("1024"), "{text}");
    }
}
