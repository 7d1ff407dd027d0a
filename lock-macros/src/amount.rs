//! The values that are spans of time: `"10s"`, an expression, and for `wait` two words.

use proc_macro2::Span;
use syn::{Error, Expr, Lit, Result, UnOp, parse::ParseStream};

use crate::{
    duration::{self, Bound},
    value::literal,
};

/// A duration: checked here, or an expression of type `Duration`.
pub(crate) enum Amount {
    Fixed(std::time::Duration, Span),
    Expr(Expr),
}

pub(crate) enum Wait {
    None,
    Forever,
    For(Amount),
}

pub(crate) fn amount(input: ParseStream<'_>, bound: Bound) -> Result<Amount> {
    let expr: Expr = input.parse()?;
    match word(&expr) {
        Some((word, span)) if NEVER.contains(&word.as_str()) => {
            Err(Error::new(span, endless(&word, bound)))
        }
        _ => amount_of(expr, bound),
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
    if let Some((word, span)) = word(&expr)
        && NEVER.contains(&word.as_str())
    {
        let meant = match word.as_str() {
            "none" | "zero" => "none",
            _ => "forever",
        };
        return Err(Error::new(
            span,
            format!("`wait` is a duration, `none` or `forever`; did you mean `wait = {meant}`?"),
        ));
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

/// Words for "no end" and "not at all", in small letters. A parameter of such a name can be given as
/// `{ none }`; a constant's name has capitals throughout.
const NEVER: [&str; 6] = [
    "none",
    "forever",
    "infinite",
    "infinity",
    "unlimited",
    "zero",
];

fn endless(word: &str, bound: Bound) -> String {
    match bound {
        Bound::Ttl => format!(
            "a ttl is how long the lock outlives a crashed process, so it is not `{word}`; \
             write for example `\"30s\"`: the lock is extended while the body runs"
        ),
        Bound::Positive => {
            format!("`{word}` is no duration; leave `max_hold` out for no limit")
        }
        Bound::UpToADay => {
            format!("`{word}` is no duration; leave `cooldown` out for no cooldown")
        }
        Bound::Any => format!("`{word}` is no duration; write for example `\"2s\"`"),
    }
}

/// A single name, as `none` or `None`, in small letters; not one in capitals, which is a constant.
fn word(expr: &Expr) -> Option<(String, Span)> {
    let Expr::Path(path) = expr else { return None };
    let name = path.path.get_ident().filter(|_| path.qself.is_none())?;
    let text = name.to_string();
    let constant = text.len() > 1 && !text.contains(char::is_lowercase);
    (!constant).then(|| (text.to_lowercase(), name.span()))
}

fn amount_of(expr: Expr, bound: Bound) -> Result<Amount> {
    if let Expr::Unary(unary) = &expr
        && matches!(unary.op, UnOp::Neg(_))
        && literal(&unary.expr).is_some()
    {
        return Err(Error::new_spanned(
            &expr,
            "this is negative; a duration is written like `\"10s\"`",
        ));
    }
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
    let (digits, suffix) = match literal {
        Lit::Int(number) => (number.base10_digits(), number.suffix()),
        Lit::Float(number) => (number.base10_digits(), number.suffix()),
        _ => {
            return "a duration is written like `\"10s\"`, or as an expression of type `Duration`"
                .to_owned();
        }
    };
    if matches!(literal, Lit::Float(_)) {
        return format!(
            "`{digits}` is not whole and has no quotes; write it in a smaller unit, \
             as in `\"1500ms\"` for one and a half seconds"
        );
    }
    match duration::unit(suffix) {
        Some(unit) => format!("a duration is written in quotes: `\"{digits}{unit}\"`"),
        None => format!(
            "`{digits}` has no unit; write for example `\"{digits}s\"`, or `\"{digits}ms\"` for milliseconds"
        ),
    }
}
