//! Parses a document into a tree that keeps every digit of its numbers.
//!
//! The tree of serde_json would keep only the last of two members with one name, and would round
//! numbers. serde_json therefore only validates the document and decodes its strings. A document with
//! two members of one name is refused, because the handler might use either of them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::value::RawValue;

use super::number;
use crate::key::KeyFailure;

/// The deepest nesting of lists and objects.
const DEEPEST: usize = 64;

#[derive(Debug)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    /// The number in its canonical spelling.
    Number(String),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object(BTreeMap<Cow<'a, str>, Json<'a>>),
}

/// Parses a body.
pub(super) fn parse(body: &[u8]) -> Result<Json<'_>, KeyFailure> {
    let document: &RawValue = serde_json::from_slice(body).map_err(|_| KeyFailure::BodyInvalid)?;
    let mut reader = Reader {
        rest: document.get(),
    };
    reader.value(0).ok_or(KeyFailure::BodyInvalid)
}

/// Writes the canonical text of a document, without white space and with sorted members.
impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(bool) => write!(f, "{bool}"),
            Json::Number(number) => f.write_str(number),
            Json::Text(text) => quoted(text, f),
            Json::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
            Json::Object(members) => {
                f.write_str("{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    f.write_str(if index > 0 { "," } else { "" })?;
                    quoted(name, f)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?)
}

/// Reads valid JSON. `None` means that it is too deep or has a duplicate member.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Option<Json<'a>> {
        match self.peek()? {
            b'n' => self.take(4).map(|_| Json::Null),
            b't' => self.take(4).map(|_| Json::Bool(true)),
            b'f' => self.take(5).map(|_| Json::Bool(false)),
            b'"' => self.text().map(Json::Text),
            b'[' if depth < DEEPEST => self.list(depth + 1),
            b'{' if depth < DEEPEST => self.object(depth + 1),
            b'[' | b'{' => None,
            _ => self.number(),
        }
    }

    fn list(&mut self, depth: usize) -> Option<Json<'a>> {
        let mut items = Vec::new();
        self.take(1)?;
        while self.peek()? != b']' {
            items.push(self.value(depth)?);
            self.comma()?;
        }
        self.take(1)?;
        Some(Json::List(items))
    }

    fn object(&mut self, depth: usize) -> Option<Json<'a>> {
        let mut members = BTreeMap::new();
        self.take(1)?;
        while self.peek()? != b'}' {
            let name = self.text()?;
            // This is the colon.
            self.peek()?;
            self.take(1)?;
            let value = self.value(depth)?;
            if members.insert(name, value).is_some() {
                return None;
            }
            self.comma()?;
        }
        self.take(1)?;
        Some(Json::Object(members))
    }

    fn comma(&mut self) -> Option<()> {
        if self.peek()? == b',' {
            self.take(1)?;
        }
        Some(())
    }

    fn number(&mut self) -> Option<Json<'a>> {
        let of_number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let end = self.rest.find(|c| !of_number(c)).unwrap_or(self.rest.len());
        number::canonical(self.take(end)?).map(Json::Number)
    }

    fn text(&mut self) -> Option<Cow<'a, str>> {
        let mut end = 1;
        let mut escaped = false;
        loop {
            match self.rest.as_bytes().get(end)? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    end += 2;
                }
                _ => end += 1,
            }
        }
        let quoted = self.take(end + 1)?;
        if escaped {
            serde_json::from_str(quoted).ok().map(Cow::Owned)
        } else {
            quoted.get(1..end).map(Cow::Borrowed)
        }
    }

    /// Returns the next byte after white space.
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.bytes().next()
    }

    fn take(&mut self, bytes: usize) -> Option<&'a str> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }
}
