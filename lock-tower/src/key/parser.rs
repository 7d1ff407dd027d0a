//! From the text of a template to its parts, or to what is wrong with it.

#[cfg(test)]
mod tests;

use super::encode::LONGEST;
use super::error::TemplateError;
use super::foreign;
use super::key_template::KeyTemplate;
use super::source::{self, Extension, Source};
use super::template::{Filter, Part, Template, Value};

/// Where a template is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    HeadOnly,
    WithBody,
}

pub(super) fn parse(template: &KeyTemplate, reading: Reading) -> Result<Template, TemplateError> {
    let parser = Parser {
        template: template.text(),
        extensions: template.extensions(),
        reading,
        position: 0,
        parts: Vec::new(),
        text: String::new(),
    };
    parser.parse()
}

struct Parser<'a> {
    template: &'a str,
    extensions: &'a [Extension],
    reading: Reading,
    position: usize,
    parts: Vec<Part>,
    text: String,
}

impl<'a> Parser<'a> {
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
                _ => {
                    self.check_text()?;
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
        let value = self.value(written, start)?;
        if self.reading == Reading::HeadOnly && matches!(value.source, Source::Body(_)) {
            return Err(self.error(
                start,
                format!(
                    "`<{written}>` is in the body of the request; use \
                     `LockLayer::body_template(locks, \"…\", limit)`"
                ),
            ));
        }
        if !self.can_be_told_apart() {
            return Err(self.error(
                start,
                format!("`<{written}>` and the placeholder before it cannot be told apart; write `:` between them"),
            ));
        }
        self.end_text();
        self.parts.push(Part::Value(value));
        self.position += length + 1;
        Ok(())
    }

    /// A source, perhaps a `?`, and filters.
    fn value(&self, written: &str, start: usize) -> Result<Value, TemplateError> {
        let mut pieces = written.split('|');
        let named = pieces.next().unwrap_or_default();
        let (name, optional) = match named.strip_suffix('?') {
            Some(name) => (name, true),
            None => (named, false),
        };
        let source =
            source::parse(name, self.extensions).map_err(|problem| self.error(start, problem))?;
        let mut position = start + 1 + named.len();
        let mut filters = Vec::new();
        for piece in pieces {
            filters.push(Filter::parse(piece).map_err(|problem| self.error(position, problem))?);
            position += 1 + piece.len();
        }
        Ok(Value {
            source,
            optional,
            filters,
        })
    }

    /// A value holds none of these characters unencoded: one of them is a boundary that no value can
    /// shift.
    fn can_be_told_apart(&self) -> bool {
        self.parts.is_empty() || self.text.contains([':', '{', '}'])
    }

    /// Braces are the hash tags of Redis Cluster, and a mistake around the name of a source. Other
    /// signs are a mistake where another language has its placeholders.
    fn check_text(&self) -> Result<(), TemplateError> {
        let is_source = |written: &str| self.value(written, self.position).is_ok();
        let in_braces = self
            .rest()
            .strip_prefix('{')
            .and_then(|rest| rest.split_once('}'));
        if let Some((written, _)) = in_braces
            && is_source(written)
        {
            return Err(self.error(
                self.position,
                format!("`{{{written}}}` is text here; write `<{written}>`"),
            ));
        }
        let before = self.template[..self.position].chars().next_back();
        let Some(foreign) = foreign::at(before, self.rest()) else {
            return Ok(());
        };
        let named = [foreign.name.to_owned(), format!("param.{}", foreign.name)];
        let advice = match named.iter().find(|name| is_source(name)) {
            Some(source) => format!("write such as `<{source}>`"),
            None => "write a source of the request, such as `<header.x-user-id>`".to_owned(),
        };
        Err(self.error(
            self.position,
            format!(
                "`{}` is text here, the same for every request; {advice}",
                foreign.written
            ),
        ))
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
        if self.template.len() > LONGEST {
            return Err(self.error(LONGEST, "a template is at most 1024 bytes long"));
        }
        for (index, extension) in self.extensions.iter().enumerate() {
            let name = extension.name();
            if self.extensions[..index]
                .iter()
                .any(|earlier| earlier.name() == name)
            {
                return Err(self.error(0, format!("the extension `{name}` is registered twice")));
            }
            if !self.uses(name) {
                return Err(self.error(
                    0,
                    format!(
                        "the extension `{name}` is registered and not used; write `<ext.{name}>`"
                    ),
                ));
            }
        }
        Ok(Template::new(self.parts))
    }

    fn uses(&self, extension: &str) -> bool {
        let name = format!("ext.{extension}");
        self.parts.iter().any(|part| match part {
            Part::Value(value) => value.source.to_string() == name,
            Part::Text(_) => false,
        })
    }

    fn error(&self, position: usize, problem: impl Into<String>) -> TemplateError {
        TemplateError::new(self.template, position, problem.into())
    }
}
