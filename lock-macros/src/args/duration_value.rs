//! Parses durations: a literal such as `"10s"`, an expression and, for `wait`, two words.

use proc_macro2::Span;
use syn::{Error, Expr, Lit, Result, UnOp, parse::ParseStream, spanned::Spanned as _};

use super::{
    duration::{self, Bound},
    value::literal,
};

/// A duration that was checked here, or an expression of type `Duration`.
pub(crate) enum DurationValue {
    Fixed(std::time::Duration, Span),
    Expr(Expr),
}

pub(crate) enum WaitValue {
    None,
    Forever,
    For(DurationValue),
}

/// How long a result is remembered, as it is written.
pub(crate) struct Lifetime {
    pub(crate) value: LifetimeValue,
    pub(crate) written: String,
    pub(crate) span: Span,
}

pub(crate) enum LifetimeValue {
    Forever,
    For(DurationValue),
}

pub(crate) fn lifetime(input: ParseStream<'_>) -> Result<Lifetime> {
    let expr: Expr = input.parse()?;
    let span = expr.span();
    let of = |value, written: &str| {
        Ok(Lifetime {
            value,
            written: written.to_owned(),
            span,
        })
    };
    match (word(&expr), literal(&expr)) {
        (Some((word, _)), _) if word == "forever" => of(LifetimeValue::Forever, &word),
        (Some((word, span)), _) if NEVER.contains(&word.as_str()) => {
            Err(Error::new(span, endless(&word, Bound::Lifetime)))
        }
        (_, Some(Lit::Str(text))) if text.value() == "forever" => Err(Error::new(
            span,
            "write this word without quotes: `remember = forever`",
        )),
        (_, text) => {
            let written = match text {
                Some(Lit::Str(text)) => format!("\"{}\"", text.value()),
                _ => String::new(),
            };
            of(
                LifetimeValue::For(value_of(expr, Bound::Lifetime)?),
                &written,
            )
        }
    }
}

pub(crate) fn duration_value(input: ParseStream<'_>, bound: Bound) -> Result<DurationValue> {
    let expr: Expr = input.parse()?;
    match word(&expr) {
        Some((word, span)) if NEVER.contains(&word.as_str()) => {
            Err(Error::new(span, endless(&word, bound)))
        }
        _ => value_of(expr, bound),
    }
}

pub(crate) fn wait(input: ParseStream<'_>) -> Result<WaitValue> {
    let expr: Expr = input.parse()?;
    if let Expr::Path(path) = &expr {
        if path.path.is_ident("none") {
            return Ok(WaitValue::None);
        }
        if path.path.is_ident("forever") {
            return Ok(WaitValue::Forever);
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
                format!("write this word without quotes: `wait = {}`", text.value()),
            ))
        }
        Some(Lit::Bool(flag)) => Err(Error::new(
            flag.span,
            "`wait` is how long to wait for the lock: a duration such as `\"2s\"`, `none` or `forever`",
        )),
        _ => value_of(expr, Bound::Any).map(WaitValue::For),
    }
}

/// Words for "no end" and "not at all", in lower case.
///
/// A parameter with such a name can be written as `{ none }`. Constants are in upper case.
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
            "a ttl cannot be `{word}`, because it is the time that the lock outlives a crashed process; \
             write for example `\"30s\"`, which is extended while the body runs"
        ),
        Bound::Positive => {
            format!("`{word}` is not a duration; remove `max_hold` for no limit")
        }
        Bound::UpToADay => {
            format!("`{word}` is not a duration; remove `cooldown` for no cooldown")
        }
        Bound::Lifetime => format!(
            "`{word}` is not a duration; write for example `\"24h\"`, the time for which a later call gets this result"
        ),
        Bound::Any => format!("`{word}` is not a duration; write for example `\"2s\"`"),
    }
}

/// Returns a single name such as `none` or `None` in lower case, unless it is a constant.
fn word(expr: &Expr) -> Option<(String, Span)> {
    let Expr::Path(path) = expr else { return None };
    let name = path.path.get_ident().filter(|_| path.qself.is_none())?;
    let text = name.to_string();
    let constant = text.len() > 1 && !text.contains(char::is_lowercase);
    (!constant).then(|| (text.to_lowercase(), name.span()))
}

fn value_of(expr: Expr, bound: Bound) -> Result<DurationValue> {
    if let Expr::Unary(unary) = &expr
        && matches!(unary.op, UnOp::Neg(_))
        && literal(&unary.expr).is_some()
    {
        return Err(Error::new_spanned(
            &expr,
            "a duration cannot be negative; write for example `\"10s\"`",
        ));
    }
    match literal(&expr) {
        Some(Lit::Str(text)) => duration::parse(&text.value(), bound)
            .map(|duration| DurationValue::Fixed(duration, text.span()))
            .map_err(|problem| Error::new(text.span(), problem)),
        Some(other) => Err(Error::new(other.span(), not_a_duration(other))),
        None => Ok(DurationValue::Expr(expr)),
    }
}

/// Explains a literal that is not a duration, such as `10`, `10s` or `true`.
fn not_a_duration(literal: &Lit) -> String {
    let (digits, suffix) = match literal {
        Lit::Int(number) => (number.base10_digits(), number.suffix()),
        Lit::Float(number) => (number.base10_digits(), number.suffix()),
        _ => {
            return "a duration is a literal such as `\"10s\"`, or an expression of type `Duration`"
                .to_owned();
        }
    };
    if matches!(literal, Lit::Float(_)) {
        return format!(
            "`{digits}` is not a whole number; write it in quotes and in a smaller unit, \
             as in `\"1500ms\"` for one and a half seconds"
        );
    }
    match duration::unit(suffix) {
        Some(unit) => format!("write the duration in quotes: `\"{digits}{unit}\"`"),
        None => format!(
            "`{digits}` has no unit; write for example `\"{digits}s\"`, or `\"{digits}ms\"` for milliseconds"
        ),
    }
}
