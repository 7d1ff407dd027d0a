//! Parses the text of a template.

#[cfg(test)]
mod tests;

use super::error::TemplateError;
use super::foreign;
use super::key_template::KeyTemplate;
use super::{Filter, Part, Template, Value};
use crate::key::encode::LONGEST;
use crate::key::source::{self, Extension, Source};

/// The sources that the layer permits in its template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllowedSources {
    Head,
    HeadAndBody,
}

pub(crate) fn parse_template(
    template: &KeyTemplate,
    allowed: AllowedSources,
) -> Result<Template, TemplateError> {
    let parser = Parser {
        template: template.text(),
        extensions: template.extensions(),
        allowed,
        position: 0,
        parts: Vec::new(),
        text: String::new(),
    };
    parser.parse()
}

struct Parser<'a> {
    template: &'a str,
    extensions: &'a [Extension],
    allowed: AllowedSources,
    position: usize,
    parts: Vec<Part>,
    text: String,
}

impl<'a> Parser<'a> {
    fn parse(mut self) -> Result<Template, TemplateError> {
        if self.template.starts_with('!') {
            return Err(self.error(
                0,
                "lock-core reserves keys that begin with `!`; begin the template with a letter",
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
                        "this `>` has no `<` before it; write `>>` for the character",
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
        if self.allowed == AllowedSources::Head && matches!(value.source, Source::Body(_)) {
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
                format!(
                    "the values of `<{written}>` and of the placeholder before it cannot be told apart; \
                     write `:` between them"
                ),
            ));
        }
        self.end_text();
        self.parts.push(Part::Value(value));
        self.position += length + 1;
        Ok(())
    }

    /// Parses a source, an optional `?`, and filters.
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

    /// Returns whether the text since the last placeholder contains a separator.
    ///
    /// No encoded value contains one, so no value can shift the boundary.
    fn can_be_told_apart(&self) -> bool {
        self.parts.is_empty() || self.text.contains([':', '{', '}'])
    }

    /// Refuses text that looks like a placeholder.
    ///
    /// Braces are hash tags of Redis Cluster, but a mistake around the name of a source. Other
    /// characters are a mistake where another language has its placeholders.
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
                format!("`{{{written}}}` is plain text here; write `<{written}>`"),
            ));
        }
        let before = self.template[..self.position].chars().next_back();
        let Some(foreign) = foreign::at(before, self.rest()) else {
            return Ok(());
        };
        let named = [foreign.name.to_owned(), format!("param.{}", foreign.name)];
        let advice = match named.iter().find(|name| is_source(name)) {
            Some(source) => format!("write `<{source}>`"),
            None => "write a source of the request, such as `<header.x-user-id>`".to_owned(),
        };
        Err(self.error(
            self.position,
            format!(
                "`{}` is plain text here, the same for every request; {advice}",
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
        let is_value = |part: &Part| matches!(part, Part::Value(_));
        if !self.parts.iter().any(is_value) {
            return Err(self.error(
                0,
                "the template contains no source, so all requests would share one lock; write, for \
                 example, `submit:<header.x-user-id>:<method>:<route>`",
            ));
        }
        if self.template.len() > LONGEST {
            return Err(self.error(
                LONGEST,
                "the template is longer than 1024 bytes; shorten it",
            ));
        }
        for (index, extension) in self.extensions.iter().enumerate() {
            let name = extension.name();
            if self.extensions[..index]
                .iter()
                .any(|earlier| earlier.name() == name)
            {
                return Err(self.error(
                    0,
                    format!("the extension `{name}` is registered twice; remove one"),
                ));
            }
            if !self.uses(name) {
                return Err(self.error(
                    0,
                    format!(
                        "the extension `{name}` is registered but not used; write `<ext.{name}>`"
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
