//! The attribute's arguments: from `name = value` to types.

use std::collections::BTreeSet;

use proc_macro2::Span;
use syn::{
    Error, Expr, Ident, LitStr, Path, Result, Token,
    ext::IdentExt as _,
    parse::{Parse, ParseStream},
    parse_quote, token,
};

use crate::{duration::Bound, suggest, template::Template, value};

/// Every argument there is, in the order in which the documentation explains them.
const NAMES: [&str; 12] = [
    "key", "ttl", "wait", "renew", "max_hold", "cooldown", "on_lost", "on_error", "manager",
    "guard", "release", "crate",
];

/// What other lock libraries call our arguments.
const SYNONYMS: [(&str, &str); 12] = [
    ("timeout", "wait"),
    ("wait_timeout", "wait"),
    ("expire", "ttl"),
    ("expires", "ttl"),
    ("expiry", "ttl"),
    ("lease", "ttl"),
    ("name", "key"),
    ("max_duration", "max_hold"),
    ("locks", "manager"),
    ("handle", "guard"),
    ("auto_renew", "renew"),
    ("extend", "renew"),
];

pub(crate) struct LockArgs {
    pub(crate) key: Key,
    pub(crate) ttl: Amount,
    pub(crate) wait: Wait,
    pub(crate) renew: Option<bool>,
    pub(crate) max_hold: Option<Amount>,
    pub(crate) cooldown: Option<Amount>,
    /// A variant of `OnLost`.
    pub(crate) on_lost: Option<Ident>,
    pub(crate) on_error: Option<Expr>,
    pub(crate) manager: Option<Expr>,
    pub(crate) guard: Option<Ident>,
    /// A variant of `ReleaseMode`.
    pub(crate) release: Option<Ident>,
    pub(crate) krate: Path,
}

pub(crate) enum Key {
    Template(LitStr, Template),
    Expr(Expr),
}

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

pub(crate) fn default_crate() -> Path {
    parse_quote!(::lock_core)
}

impl Parse for LockArgs {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut found = Found::default();
        while !input.is_empty() {
            let name = name(input)?;
            if !found.seen.insert(name.to_string()) {
                return Err(Error::new(
                    name.span(),
                    format!("`{name}` is given twice; keep one of them"),
                ));
            }
            equals(input, &name)?;
            found.read(&name, input)?;
            if !input.is_empty() {
                comma(input, &name)?;
            }
        }
        found.finish()
    }
}

#[derive(Default)]
struct Found {
    seen: BTreeSet<String>,
    key: Option<Key>,
    ttl: Option<Amount>,
    wait: Option<Wait>,
    renew: Option<bool>,
    max_hold: Option<Amount>,
    cooldown: Option<Amount>,
    on_lost: Option<Ident>,
    on_error: Option<Expr>,
    manager: Option<Expr>,
    guard: Option<Ident>,
    release: Option<Ident>,
    krate: Option<Path>,
}

impl Found {
    fn read(&mut self, name: &Ident, input: ParseStream<'_>) -> Result<()> {
        match name.to_string().as_str() {
            "key" => self.key = Some(value::key(input)?),
            "ttl" => self.ttl = Some(value::amount(input, Bound::Ttl)?),
            "wait" => self.wait = Some(value::wait(input)?),
            "renew" => self.renew = Some(value::renew(input)?),
            "max_hold" => self.max_hold = Some(value::amount(input, Bound::Positive)?),
            "cooldown" => self.cooldown = Some(value::amount(input, Bound::UpToADay)?),
            "on_lost" => {
                self.on_lost = Some(value::word(
                    input,
                    &[("cancel", "Cancel"), ("ignore", "Ignore")],
                )?)
            }
            "on_error" => self.on_error = Some(input.parse()?),
            "manager" => self.manager = Some(input.parse()?),
            "guard" => self.guard = Some(value::guard(input)?),
            "release" => {
                self.release = Some(value::word(
                    input,
                    &[("await", "Await"), ("background", "Background")],
                )?);
            }
            _ => self.krate = Some(value::path(input)?),
        }
        Ok(())
    }

    fn finish(self) -> Result<LockArgs> {
        let missing = |what: &str| Error::new(Span::call_site(), what);
        let (key, ttl) = match (self.key, self.ttl) {
            (Some(key), Some(ttl)) => (key, ttl),
            (None, None) => {
                return Err(missing(
                    "`key` and `ttl` are missing; write for example `#[distributed_lock(key = \"order:<id>\", ttl = \"10s\")]`",
                ));
            }
            (None, _) => {
                return Err(missing(
                    "`key` is missing: say what is locked, for example `key = \"order:<id>\"`",
                ));
            }
            (_, None) => {
                return Err(missing(
                    "`ttl` is missing: say how long the lock outlives a crashed process, for example `ttl = \"10s\"`",
                ));
            }
        };
        Ok(LockArgs {
            key,
            ttl,
            wait: self.wait.unwrap_or(Wait::None),
            renew: self.renew,
            max_hold: self.max_hold,
            cooldown: self.cooldown,
            on_lost: self.on_lost,
            on_error: self.on_error,
            manager: self.manager,
            guard: self.guard,
            release: self.release,
            krate: self.krate.unwrap_or_else(default_crate),
        })
    }
}

/// A known argument's name, or an error that says which name was meant.
fn name(input: ParseStream<'_>) -> Result<Ident> {
    if input.peek(LitStr) {
        let literal: LitStr = input.parse()?;
        return Err(Error::new(
            literal.span(),
            "an argument needs its name; write `key = \"…\"`",
        ));
    }
    if !input.peek(Ident::peek_any) {
        return Err(input.error(format!(
            "an argument is written `name = value`; the names are {}",
            suggest::list(NAMES),
        )));
    }
    let name = input.call(Ident::parse_any)?;
    let written = name.to_string();
    if NAMES.contains(&written.as_str()) {
        return Ok(name);
    }
    let problem = match written.as_str() {
        "reentrant" => "`reentrant` is not available yet; leave it out".to_owned(),
        "keys" => "a list of keys is not available yet; lock one key with `key = …`".to_owned(),
        _ => unknown(&written),
    };
    Err(Error::new(name.span(), problem))
}

fn unknown(written: &str) -> String {
    let synonym = SYNONYMS
        .iter()
        .find(|(other, _)| *other == written)
        .map(|(_, ours)| *ours);
    let meant = synonym
        .or_else(|| suggest::nearest(written, NAMES))
        .map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
    let end = if meant.is_empty() { ";" } else { "" };
    format!(
        "there is no argument `{written}`{meant}{end} The arguments are {}",
        suggest::list(NAMES)
    )
    .replace("; The", "; the")
}

fn equals(input: ParseStream<'_>, name: &Ident) -> Result<()> {
    if input.peek(Token![=]) && !input.peek(Token![==]) {
        let equals: Token![=] = input.parse()?;
        if input.is_empty() || input.peek(Token![,]) {
            return Err(Error::new(
                equals.span,
                format!("`{name}` has no value; {}", example(name)),
            ));
        }
        return Ok(());
    }
    let span = if input.is_empty() || input.peek(Token![,]) || input.peek(token::Paren) {
        name.span()
    } else {
        input.span()
    };
    Err(Error::new(
        span,
        format!("`{name}` needs `=` and a value; {}", example(name)),
    ))
}

fn comma(input: ParseStream<'_>, name: &Ident) -> Result<()> {
    if input.peek(Token![,]) {
        input.parse::<Token![,]>()?;
        return Ok(());
    }
    Err(input.error(format!(
        "the value of `{name}` ends before this; write `,` between two arguments"
    )))
}

fn example(name: &Ident) -> String {
    let value = match name.to_string().as_str() {
        "key" => "\"order:<id>\"",
        "ttl" => "\"10s\"",
        "wait" => "\"2s\"",
        "renew" => "false",
        "max_hold" => "\"30s\"",
        "cooldown" => "\"2s\"",
        "on_lost" => "ignore",
        "on_error" => "|error| …",
        "manager" => "self.locks",
        "guard" => "lock",
        "release" => "background",
        _ => "::lock_core",
    };
    format!("write for example `{name} = {value}`")
}
