//! Parses the values of arguments, with one function for each kind of value.

use proc_macro2::Span;
use quote::ToTokens as _;
use syn::{
    Error, Expr, ExprLit, Ident, Lit, LitBool, LitStr, Path, Result, Token, ext::IdentExt as _,
    parse::ParseStream,
};

use super::Key;
use crate::path::ends_with;
use crate::suggest;
use crate::template::Template;

/// Parses a key: a string literal is a template, and any other expression is the key itself.
pub(crate) fn key(input: ParseStream<'_>) -> Result<Key> {
    let expr: Expr = input.parse()?;
    if let Expr::Array(_) | Expr::Tuple(_) = &expr {
        return Err(Error::new_spanned(
            &expr,
            "a list of keys is written `keys = [\"…\", \"…\"]`; `key` is one key, for example `key = \"order:<id>\"`",
        ));
    }
    one_key(expr)
}

/// The most keys of one lock, as lock-core has it.
const MOST_KEYS: usize = 16;

/// Parses a list of keys in brackets.
pub(crate) fn keys(input: ParseStream<'_>) -> Result<Vec<Key>> {
    const LIST: &str =
        "`keys` is a list in brackets, for example `keys = [\"account:<from>\", \"account:<to>\"]`";
    let expr: Expr = input.parse()?;
    let Expr::Array(list) = expr else {
        let hint = match literal(&expr) {
            Some(_) => "; one key is `key = …`",
            None => "; for keys whose number is not fixed call `LockManager::lock_all`",
        };
        return Err(Error::new_spanned(&expr, format!("{LIST}{hint}")));
    };
    if list.elems.is_empty() {
        let problem = "`keys` is empty; name at least one thing that is to be locked";
        return Err(Error::new_spanned(&list, problem));
    }
    let mut keys: Vec<Key> = Vec::new();
    for expr in list.elems {
        if keys.len() == MOST_KEYS {
            let problem = format!(
                "a lock has at most {MOST_KEYS} keys; lock what they have in common instead"
            );
            return Err(Error::new_spanned(expr, problem));
        }
        if let Expr::Array(_) | Expr::Tuple(_) = &expr {
            return Err(Error::new_spanned(
                &expr,
                format!("{LIST}, without a list inside"),
            ));
        }
        let key = one_key(expr.clone())?;
        if keys.iter().any(|other| other.text() == key.text()) {
            let problem = "this key is in the list already; remove one of the two";
            return Err(Error::new_spanned(&expr, problem));
        }
        keys.push(key);
    }
    Ok(keys)
}

fn one_key(expr: Expr) -> Result<Key> {
    match literal(&expr) {
        Some(Lit::Str(text)) => return template(text.clone()),
        Some(other) => {
            return Err(Error::new(
                other.span(),
                "a key is a template or an expression; write for example `key = \"order:<id>\"`",
            ));
        }
        None => {}
    }
    match unfilled(&expr) {
        Some(text) => Err(Error::new_spanned(
            &expr,
            format!(
                "only a string literal by itself is a template; write `key = {}`",
                text.token()
            ),
        )),
        None => Ok(Key::Expr(expr)),
    }
}

/// Finds the template in `"order:<id>".to_string()` or `format!("order:<id>")`.
///
/// No code fills in such a template. Every call would have the same key, which lock-core refuses at
/// run time.
fn unfilled(expr: &Expr) -> Option<LitStr> {
    let text: LitStr = match expr {
        Expr::MethodCall(call) => match literal(&call.receiver)? {
            Lit::Str(text) => text.clone(),
            _ => return None,
        },
        Expr::Reference(reference) => match literal(&reference.expr) {
            Some(Lit::Str(text)) => text.clone(),
            _ => return unfilled(&reference.expr),
        },
        Expr::Call(call) => match literal(call.args.first()?)? {
            Lit::Str(text) if is_from(&call.func) => text.clone(),
            _ => return None,
        },
        Expr::Macro(call) if call.mac.path.is_ident("format") => {
            syn::parse2(call.mac.tokens.clone()).ok()?
        }
        _ => return None,
    };
    let value = text.value();
    let start = value.find('<')?;
    value[start..].contains('>').then_some(text)
}

/// Returns whether the function is `String::from` or similar, but not `LockKey::exact`.
fn is_from(func: &Expr) -> bool {
    matches!(func, Expr::Path(path) if ends_with(&path.path, "from"))
}

fn template(text: LitStr) -> Result<Key> {
    match Template::parse(&text.value()) {
        Ok(template) => Ok(Key::Template(text, template)),
        Err(problem) => Err(Error::new(text.span(), problem)),
    }
}

/// The most permits of a lock, as lock-core has it.
const MOST_PERMITS: u32 = 10_000;

/// Parses a number of permits: a literal is checked, and any other expression is the number itself.
pub(crate) fn permits(input: ParseStream<'_>) -> Result<Expr> {
    let expr: Expr = input.parse()?;
    let problem = match literal(&expr) {
        None => return Ok(expr),
        Some(Lit::Int(count)) => match count.base10_parse::<u32>() {
            Ok(0) => "`permits` is at least 1; a lock without permits would admit no caller".to_owned(),
            Ok(count) if count <= MOST_PERMITS => return Ok(expr),
            _ => format!("`permits` is at most {MOST_PERMITS}"),
        },
        Some(_) => {
            "`permits` is a number from 1 to 10000 or an expression; write for example `permits = 5`".to_owned()
        }
    };
    Err(Error::new_spanned(expr, problem))
}

/// Parses `true` or `false`.
pub(crate) fn flag(input: ParseStream<'_>, name: &Ident) -> Result<bool> {
    if input.peek(LitBool) {
        let flag: LitBool = input.parse()?;
        return Ok(flag.value);
    }
    let quoted = input
        .fork()
        .parse::<LitStr>()
        .is_ok_and(|text| matches!(text.value().as_str(), "true" | "false"));
    let hint = match (name == "renew", quoted) {
        (_, true) => ", without quotes",
        (true, false) => " (the interval is always a third of the ttl)",
        (false, false) => "",
    };
    Err(input.error(format!("`{name}` is `true` or `false`{hint}")))
}

/// Parses one of a few words, and returns the name of its variant.
pub(crate) fn word(input: ParseStream<'_>, name: &Ident, words: &[(&str, &str)]) -> Result<Ident> {
    let known = suggest::list(words.iter().map(|(word, _)| *word)).replace(" and ", " or ");
    let span = input.span();
    if input.peek(LitStr) {
        return Err(Error::new(
            span,
            format!("write this word without quotes: {known}"),
        ));
    }
    if input.peek(LitBool) || !input.peek(Ident::peek_any) {
        return Err(Error::new(span, format!("`{name}` is {known}")));
    }
    // The last name of a path, such as `OnLost::Cancel`, shows which word was meant.
    let mut written = input.call(Ident::parse_any)?;
    let is_path = input.peek(Token![::]);
    while input.parse::<Option<Token![::]>>()?.is_some() {
        written = input.call(Ident::parse_any)?;
    }
    if !is_path && let Some((_, variant)) = words.iter().find(|(word, _)| written == word) {
        return Ok(Ident::new(variant, Span::call_site()));
    }
    let text = written.to_string();
    let all = words.iter().map(|(word, _)| *word);
    let problem = match suggest::nearest(&text, all) {
        Some(word) => {
            format!("`{text}` is not known here; did you mean `{word}`? `{name}` is {known}")
        }
        None => format!("`{text}` is not known here; `{name}` is {known}"),
    };
    Err(Error::new(span, problem))
}

pub(crate) fn guard(input: ParseStream<'_>) -> Result<Ident> {
    let problem = "`guard` is the name of the lock in the body, for example `guard = lock`";
    let span = input.span();
    let wrong = |hint: &str| Err(Error::new(span, format!("{problem}{hint}")));
    if input.peek(LitStr) {
        return wrong(", without quotes");
    }
    if input.peek(Token![mut]) || input.peek(Token![ref]) || input.peek(Token![&]) {
        return wrong(" alone; it binds a `&LockHandle`, which needs no `mut`");
    }
    if input.peek(Token![_]) {
        return wrong("; remove `guard` if the body does not use it");
    }
    if !input.peek(Ident) {
        let word = input.fork().call(Ident::parse_any).ok();
        return match word {
            Some(word) => wrong(&format!("; `{word}` is a keyword")),
            None => wrong(""),
        };
    }
    let ident: Ident = input.parse()?;
    match ends(input) {
        true => Ok(ident),
        false if input.peek(Token![:]) => wrong(" alone; its type is always `&LockHandle`"),
        false => wrong(" alone"),
    }
}

/// Parses any expression except a literal, which is never a manager.
pub(crate) fn manager(input: ParseStream<'_>) -> Result<Expr> {
    let expr: Expr = input.parse()?;
    let Some(literal) = literal(&expr) else {
        return Ok(expr);
    };
    let is_url = matches!(literal, Lit::Str(text) if text.value().contains(':'));
    Err(Error::new(
        literal.span(),
        match is_url {
            true => {
                "`manager` is a `LockManager`; make it once with `LockManager::connect(\"…\")` and name it here"
            }
            false => {
                "`manager` is an expression for a `LockManager`, for example `manager = self.locks`"
            }
        },
    ))
}

/// Parses a function from the lock's error to the return value.
///
/// It checks the parameters of a closure, because the compiler would report a mistake three times.
pub(crate) fn on_error(input: ParseStream<'_>) -> Result<Expr> {
    const TAKES: &str =
        "`on_error` takes the lock's error and makes the return value of the function";
    let expr: Expr = input.parse()?;
    if let Some(literal) = literal(&expr) {
        let hint = format!("{TAKES}; write `|_| {}`", literal.to_token_stream());
        return Err(Error::new(literal.span(), hint));
    }
    let Expr::Closure(closure) = &expr else {
        return Ok(expr);
    };
    if let Some(asyncness) = &closure.asyncness {
        return Err(Error::new(
            asyncness.span,
            format!("{TAKES}; it cannot be `async`, because it would make a future"),
        ));
    }
    match closure.inputs.len() {
        1 => Ok(expr),
        0 => Err(Error::new_spanned(
            closure.inputs_begin,
            format!("{TAKES}; write `|_|`"),
        )),
        _ => Err(Error::new_spanned(
            &closure.inputs,
            format!("{TAKES}; write `|error|`"),
        )),
    }
}

/// Parses a function from an error to `bool`.
pub(crate) fn errors(input: ParseStream<'_>) -> Result<Expr> {
    const TAKES: &str =
        "`errors` says which errors are remembered, by a closure from the error to `bool`";
    const EXAMPLE: &str = "write for example `errors = |error| error.is_final()`";
    let expr: Expr = input.parse()?;
    if let Some(literal) = literal(&expr) {
        return Err(Error::new(literal.span(), format!("{TAKES}; {EXAMPLE}")));
    }
    let Expr::Closure(closure) = &expr else {
        return Ok(expr);
    };
    match (&closure.asyncness, closure.inputs.len()) {
        (Some(asyncness), _) => Err(Error::new(
            asyncness.span,
            format!("{TAKES}; it cannot be `async`"),
        )),
        (None, 1) => Ok(expr),
        (None, _) => Err(Error::new_spanned(
            closure.inputs_begin,
            format!("{TAKES}; {EXAMPLE}"),
        )),
    }
}

pub(crate) fn path(input: ParseStream<'_>) -> Result<Path> {
    if input.peek(LitStr) {
        return Err(
            input.error("`crate` is a path without quotes, for example `crate = ::lock_core`")
        );
    }
    let path = input.call(Path::parse_mod_style).map_err(|error| {
        Error::new(
            error.span(),
            "`crate` is the path of the library, for example `crate = ::lock_core`",
        )
    })?;
    if input.peek(Token![-]) {
        return Err(input.error(
            "a path to a crate has `_` in place of `-`; write for example `crate = ::lock_core`",
        ));
    }
    Ok(path)
}

fn ends(input: ParseStream<'_>) -> bool {
    input.is_empty() || input.peek(Token![,])
}

/// Returns the literal in `expr`, even inside of parentheses or an invisible group of a macro.
pub(crate) fn literal(expr: &Expr) -> Option<&Lit> {
    match expr {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        Expr::Group(group) => literal(&group.expr),
        Expr::Paren(paren) => literal(&paren.expr),
        _ => None,
    }
}
