//! One reader for each kind of value that an argument takes.

use proc_macro2::Span;
use syn::{
    Error, Expr, ExprLit, Ident, Lit, LitBool, LitStr, Path, Result, Token, ext::IdentExt as _,
    parse::ParseStream,
};

use crate::{
    args::{Amount, Key, Wait},
    duration::{self, Bound},
    suggest,
    template::Template,
};

/// A string literal is always a template; every other expression is the key itself.
pub(crate) fn key(input: ParseStream<'_>) -> Result<Key> {
    let expr: Expr = input.parse()?;
    match literal(&expr) {
        Some(Lit::Str(text)) => template(text.clone()),
        Some(other) => Err(Error::new(
            other.span(),
            "a key is a template or an expression; write for example `key = \"order:<id>\"`",
        )),
        None => Ok(Key::Expr(expr)),
    }
}

fn template(text: LitStr) -> Result<Key> {
    match Template::parse(&text.value()) {
        Ok(template) => Ok(Key::Template(text, template)),
        Err(problem) => Err(Error::new(text.span(), problem)),
    }
}

pub(crate) fn amount(input: ParseStream<'_>, bound: Bound) -> Result<Amount> {
    amount_of(input.parse()?, bound)
}

fn amount_of(expr: Expr, bound: Bound) -> Result<Amount> {
    match literal(&expr) {
        Some(Lit::Str(text)) => duration::parse(&text.value(), bound)
            .map(|duration| Amount::Fixed(duration, text.span()))
            .map_err(|problem| Error::new(text.span(), problem)),
        Some(other) => Err(Error::new(other.span(), not_a_duration(other))),
        None => Ok(Amount::Expr(expr)),
    }
}

/// `10`, `10s` and `true` are what hands write out of habit.
fn not_a_duration(literal: &Lit) -> String {
    match literal {
        Lit::Int(number) if matches!(number.suffix(), "ms" | "s" | "m" | "h") => {
            format!("a duration is written in quotes: `\"{number}\"`")
        }
        Lit::Int(number) => format!(
            "`{number}` has no unit; write for example `\"{number}s\"`, or `\"{number}ms\"` for milliseconds"
        ),
        _ => "a duration is written like `\"10s\"`, or as an expression of type `Duration`"
            .to_owned(),
    }
}

pub(crate) fn wait(input: ParseStream<'_>) -> Result<Wait> {
    let expr: Expr = input.parse()?;
    if let Expr::Path(path) = &expr {
        if path.path.is_ident("none") {
            return Ok(Wait::None);
        }
        if path.path.is_ident("forever") {
            return Ok(Wait::Forever);
        }
    }
    match literal(&expr) {
        Some(Lit::Str(text)) if matches!(text.value().as_str(), "none" | "forever") => {
            Err(Error::new(
                text.span(),
                format!(
                    "this word is written without quotes: `wait = {}`",
                    text.value()
                ),
            ))
        }
        Some(Lit::Bool(flag)) => Err(Error::new(
            flag.span,
            "`wait` is how long to wait for the lock: a duration such as `\"2s\"`, `none` or `forever`",
        )),
        _ => amount_of(expr, Bound::Any).map(Wait::For),
    }
}

pub(crate) fn renew(input: ParseStream<'_>) -> Result<bool> {
    let span = input.span();
    let wrong = || Error::new(span, "`renew` is `true` or `false`");
    if !input.peek(LitBool) {
        return Err(wrong());
    }
    let flag: LitBool = input.parse()?;
    ends(input).then_some(flag.value).ok_or_else(wrong)
}

/// One of a few words, given as the variant that it stands for.
pub(crate) fn word(input: ParseStream<'_>, words: &[(&str, &str)]) -> Result<Ident> {
    let known = suggest::list(words.iter().map(|(word, _)| *word)).replace(" and ", " or ");
    let span = input.span();
    if input.peek(LitStr) {
        return Err(Error::new(
            span,
            format!("this word is written without quotes: {known}"),
        ));
    }
    if !input.peek(Ident::peek_any) {
        return Err(Error::new(span, format!("this is {known}")));
    }
    let written = input.call(Ident::parse_any)?;
    let Some((_, variant)) = words.iter().find(|(word, _)| written == word) else {
        let meant = suggest::nearest(&written.to_string(), words.iter().map(|(word, _)| *word))
            .map_or_else(String::new, |word| format!("; did you mean `{word}`?"));
        let choice = if meant.is_empty() {
            "; write"
        } else {
            " It is"
        };
        return Err(Error::new(
            span,
            format!("`{written}` is not known here{meant}{choice} {known}"),
        ));
    };
    Ok(Ident::new(variant, Span::call_site()))
}

pub(crate) fn guard(input: ParseStream<'_>) -> Result<Ident> {
    let problem =
        "`guard` is the name under which the body sees the lock, for example `guard = lock`";
    if input.peek(LitStr) {
        let text: LitStr = input.parse()?;
        return Err(Error::new(
            text.span(),
            format!("{problem}, without quotes"),
        ));
    }
    if input.peek(Ident) {
        let ident: Ident = input.parse()?;
        if ends(input) {
            return Ok(ident);
        }
        return Err(Error::new(ident.span(), problem));
    }
    Err(input.error(problem))
}

pub(crate) fn path(input: ParseStream<'_>) -> Result<Path> {
    if input.peek(LitStr) {
        return Err(
            input.error("`crate` is a path without quotes, for example `crate = ::lock_core`")
        );
    }
    input.call(Path::parse_mod_style).map_err(|error| {
        Error::new(
            error.span(),
            "`crate` is the path of the library, for example `crate = ::lock_core`",
        )
    })
}

fn ends(input: ParseStream<'_>) -> bool {
    input.is_empty() || input.peek(Token![,])
}

/// The literal that `expr` is, also when a macro or a pair of parentheses wraps it.
fn literal(expr: &Expr) -> Option<&Lit> {
    match expr {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        Expr::Group(group) => literal(&group.expr),
        Expr::Paren(paren) => literal(&paren.expr),
        _ => None,
    }
}
