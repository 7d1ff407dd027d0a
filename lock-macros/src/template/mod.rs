//! Parses key templates, which are text with `<expr>` in it.
//!
//! The result is a list of pieces or an error message. The entry points of the crate report the message
//! at the literal, and the expansion turns the pieces into calls.

mod foreign;
mod lexable;
mod placeholder;

use proc_macro2::TokenStream;
use quote::ToTokens as _;
use syn::Expr;

pub(crate) use foreign::KnownNames;
pub(crate) use placeholder::{leaves, roots};

use lexable::is_lexable;

/// The longest key that lock-core accepts, in bytes.
const LONGEST: usize = 1_024;

#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) makes: Makes,
}

/// What a template makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Makes {
    Key,
    /// The digest of the values that make another call.
    Fingerprint,
}

pub(crate) enum Piece {
    Text(String),
    Value(Placeholder),
}

impl Piece {
    fn outline(&self) -> &str {
        match self {
            Piece::Text(text) => text,
            Piece::Value(_) => foreign::PLACEHOLDER,
        }
    }
}

/// An expression between `<` and `>`.
pub(crate) struct Placeholder {
    /// The expression as written, which names the value in errors.
    pub(crate) source: String,
    pub(crate) expr: Expr,
}

impl Template {
    pub(crate) fn parse(template: &str) -> Result<Template, String> {
        let pieces = split(template)?;
        let makes = Makes::Key;
        let template = Template { pieces, makes };
        template.check_text()?;
        template.check_separators()?;
        Ok(template)
    }

    /// Parses the template of a fingerprint, of which only the values count.
    pub(crate) fn fingerprint(template: &str) -> Result<Template, String> {
        let pieces = split(template)?;
        let makes = Makes::Fingerprint;
        Ok(Template { pieces, makes })
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value(placeholder) => Some(placeholder),
            Piece::Text(_) => None,
        })
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Value(_) => None,
        })
    }

    pub(crate) fn has_placeholder(&self) -> bool {
        self.placeholders().next().is_some()
    }

    /// Refuses a placeholder of another language in the text.
    pub(crate) fn check_foreign(&self, names: &KnownNames<'_>) -> Result<(), String> {
        let outline: String = self.pieces.iter().map(Piece::outline).collect();
        match foreign::find(&outline, names) {
            Some(found) => Err(found.problem(self.makes, !self.has_placeholder())),
            None => Ok(()),
        }
    }

    fn check_text(&self) -> Result<(), String> {
        match self.pieces.first() {
            None => {
                return Err("a key cannot be empty; write for example `\"order:<id>\"`".to_owned());
            }
            Some(Piece::Text(text)) if text.starts_with('!') => {
                return Err(
                    "a key cannot begin with `!`, because lock-core reserves such keys".to_owned(),
                );
            }
            Some(_) => {}
        }
        let length: usize = self.texts().map(str::len).sum();
        if length > LONGEST {
            return Err(format!(
                "the text of this key has {length} bytes, but a key has at most {LONGEST}"
            ));
        }
        Ok(())
    }

    /// Requires a separator between two values, so that ("a", "bc") and ("ab", "c") make two keys.
    ///
    /// Values are encoded, so they contain no `:`, `{` or `}`.
    fn check_separators(&self) -> Result<(), String> {
        let mut before: Option<&Placeholder> = None;
        let mut separated = false;
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => separated |= text.contains([':', '{', '}']),
                Piece::Value(value) => {
                    if let Some(before) = before.filter(|_| !separated) {
                        return Err(format!(
                            "`<{}>` and `<{}>` cannot be told apart in the finished key; write `:` between them",
                            before.source, value.source,
                        ));
                    }
                    before = Some(value);
                    separated = false;
                }
            }
        }
        Ok(())
    }
}

fn split(template: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("<<") {
            text.push('<');
            rest = after;
        } else if let Some(after) = rest.strip_prefix(">>") {
            text.push('>');
            rest = after;
        } else if let Some(after) = rest.strip_prefix('<') {
            let (placeholder, after) = placeholder_at(after)?;
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
            }
            pieces.push(Piece::Value(placeholder));
            rest = after;
        } else if c == '>' {
            check_shift(template, rest)?;
            return Err(
                "this template has a `>` without a `<`; write `>>` for the character".to_owned(),
            );
        } else {
            text.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

/// Refuses a stray `>`, which may come from an operator.
///
/// In `<uid >> 4>` the first `>` ends the placeholder.
fn check_shift(template: &str, rest: &str) -> Result<(), String> {
    let stray = template.len() - rest.len();
    for (start, _) in template[..stray].rmatch_indices('<') {
        for (end, _) in rest.match_indices('>') {
            let source = &template[start + 1..stray + end];
            let Some(expr) = expression(source) else {
                continue;
            };
            return Err(match placeholder::check(&expr) {
                Ok(()) => format!(
                    "`<{source}>` would end at its first `>`; write it in parentheses: `<({})>`",
                    source.trim()
                ),
                Err(what) => not_taken(source, what),
            });
        }
    }
    Ok(())
}

fn not_taken(source: &str, what: &str) -> String {
    format!(
        "`<{source}>` contains {what}, but a placeholder takes only names, fields, indexes, calls and arithmetic"
    )
}

/// Splits off the placeholder at the beginning of `rest`.
///
/// It ends at the first `>` at which its text is an expression, so `<a.get::<u8>()>` is one placeholder.
fn placeholder_at(rest: &str) -> Result<(Placeholder, &str), String> {
    for (end, _) in rest.match_indices('>') {
        let source = &rest[..end];
        let Some(expr) = expression(source) else {
            continue;
        };
        placeholder::check(&expr).map_err(|what| not_taken(source, what))?;
        let placeholder = Placeholder {
            source: source.trim().to_owned(),
            expr,
        };
        return Ok((placeholder, &rest[end + 1..]));
    }
    Err(match rest.find('>') {
        None => "this template has a `<` that no `>` closes; write `<<` for the character".to_owned(),
        Some(end) if rest[..end].trim().is_empty() => {
            "this template has an empty `<>`; write a parameter into it, as in `<id>`, or write `<<>>` for the characters"
                .to_owned()
        }
        Some(end) if is_formatted(&rest[..end]) => {
            let (value, _) = rest[..end].split_once(':').unwrap_or_default();
            format!(
                "`<{}>` has a format, but a placeholder always uses `Display`; \
                 write `<{}>`, or a part of the value that implements `Display`",
                &rest[..end], value.trim(),
            )
        }
        Some(end) => format!(
            "`<{}>` is not an expression; write a parameter, as in `<id>` (or `<<` for the character `<`)",
            &rest[..end],
        ),
    })
}

/// Returns whether the text has a format of `format!`, such as `uid:?` or `uid:04`.
fn is_formatted(source: &str) -> bool {
    source
        .split_once(':')
        .is_some_and(|(value, format)| !format.starts_with(':') && expression(value).is_some())
}

fn expression(source: &str) -> Option<Expr> {
    if !is_lexable(source) {
        return None;
    }
    syn::parse_str(source).ok()
}

impl std::fmt::Debug for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Piece::Text(text) => write!(f, "{text:?}"),
            Piece::Value(value) => write!(f, "{value:?}"),
        }
    }
}

impl std::fmt::Debug for Placeholder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let expr: TokenStream = self.expr.to_token_stream();
        write!(f, "<{expr}>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(template: &str) -> String {
        format!("{:?}", Template::parse(template).expect(template).pieces)
    }

    fn error(template: &str) -> String {
        Template::parse(template).expect_err(template)
    }

    #[test]
    fn text_and_values_alternate() {
        assert_eq!(shown("order:<uid>"), r#"["order:", <uid>]"#);
        assert_eq!(shown("<a>:<b>"), r#"[<a>, ":", <b>]"#);
        assert_eq!(shown("nightly-report"), r#"["nightly-report"]"#);
    }

    #[test]
    fn doubled_brackets_are_characters() {
        assert_eq!(shown("a<<b>>c"), r#"["a<b>c"]"#);
        assert_eq!(shown("a>><x>"), r#"["a>", <x>]"#);
    }

    #[test]
    fn a_placeholder_ends_at_the_first_bracket_at_which_it_parses() {
        assert_eq!(
            shown("k:<a.get::<u8>()>"),
            r#"["k:", <a . get :: < u8 > ()>]"#
        );
        assert_eq!(shown("k:<f(\">\")>:<b>"), r#"["k:", <f (">")>, ":", <b>]"#);
    }

    #[test]
    fn paths_fields_indexes_calls_and_arithmetic_are_accepted() {
        for template in [
            "<self.cart.id>",
            "<pair.0.1>",
            "<lines[0].sku>",
            "<key_of(&user, 3)>",
            "<user.name()>",
            "<uid % 16>",
            "<config::REGION>",
            "<-offset>",
            "<*counter>",
            "<id as u64>",
            "<(a + b) * 2>",
            "<name[..4]>",
            "<u64::from(id)>",
        ] {
            assert!(Template::parse(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn expressions_that_decide_wait_or_run_code_are_refused() {
        assert!(error("k:<f().await>").contains("`.await`"));
        assert!(error("k:<f()?>").contains("`?`"));
        assert!(error("k:<a == b>").contains("comparison"));
        assert!(error("k:<a && b>").contains("logic"));
        assert!(error("k:<{ a }>").contains("a block"));
        assert!(error("k:<if a { b } else { c }>").contains("`if`"));
        assert!(error("k:<(|| 1)()>").contains("a closure"));
        assert!(error("k:<format!(\"x\")>").contains("a macro"));
        assert!(error("k:<f(a == b)>").contains("comparison"));
        assert!(error("k:<a = b>").contains("assignment"));
    }

    #[test]
    fn two_values_need_a_separator_that_values_cannot_hold() {
        assert!(error("<a><b>").contains("`<a>` and `<b>` cannot be told apart"));
        assert!(error("<a>-<b>").contains("write `:` between them"));
        assert!(error("k:<a>/<b>").contains("cannot be told apart"));
        assert!(Template::parse("<a>:<b>{<c>}").is_ok());
    }

    #[test]
    fn stray_and_open_brackets_say_what_to_write() {
        assert!(error("a>b").contains("`>>`"));
        assert!(error("k:<uid >> 4>").contains("`<(uid >> 4)>`"));
        assert!(error("k:<a>>b>").contains("`<(a>>b)>`"));
        assert!(error("k:<a > b>").contains("comparison"));
        assert!(Template::parse("k:<(uid >> 4)>").is_ok());
        assert!(error("order:<uid").contains("no `>` closes"));
        assert!(error("order:<>").contains("empty `<>`"));
        assert!(error("order:<uid:?>").contains("has a format"));
        assert!(error("order:<uid:04>").contains("write `<uid>`"));
        assert!(error("order:<a::>").contains("not an expression"));
        assert!(error("order:<a b>").contains("`<a b>` is not an expression"));
    }

    #[test]
    fn an_empty_a_reserved_and_a_huge_key_are_refused() {
        assert!(error("").contains("be empty"));
        assert!(error("!q").contains("`!`"));
        assert!(error(&"x".repeat(1_025)).contains("1025 bytes"));
        assert!(Template::parse(&"x".repeat(1_024)).is_ok());
    }
}
