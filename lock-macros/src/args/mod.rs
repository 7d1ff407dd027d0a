//! Parses the arguments of the attribute, which are written `name = value`.

mod duration;
mod duration_value;
mod names;
mod value;

use std::collections::BTreeSet;

use proc_macro2::Span;
use quote::ToTokens as _;
use syn::{
    Error, Expr, Ident, LitStr, Path, Result,
    parse::{Parse, ParseStream},
    parse_quote,
};

pub(crate) use duration_value::{DurationValue, WaitValue};
pub(crate) use value::path;

use crate::template::Template;
use duration::Bound;
use duration_value::{duration_value, wait};
use names::{comma, equals, name};

pub(crate) struct LockArgs {
    pub(crate) key: Keys,
    pub(crate) ttl: DurationValue,
    pub(crate) wait: WaitValue,
    pub(crate) renew: Option<bool>,
    pub(crate) max_hold: Option<DurationValue>,
    pub(crate) cooldown: Option<DurationValue>,
    /// The name of a variant of `OnLost`.
    pub(crate) on_lost: Option<Ident>,
    pub(crate) on_error: Option<Expr>,
    pub(crate) manager: Option<Expr>,
    pub(crate) guard: Option<Ident>,
    /// The name of a variant of `ReleaseMode`.
    pub(crate) release: Option<Ident>,
    pub(crate) reentrant: Option<bool>,
    pub(crate) interop: Option<bool>,
    pub(crate) krate: Path,
}

/// The value of `key`, or the list of `keys`.
pub(crate) enum Keys {
    One(Key),
    All(Vec<Key>),
}

impl Keys {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Key> {
        match self {
            Keys::One(key) => std::slice::from_ref(key),
            Keys::All(keys) => keys,
        }
        .iter()
    }
}

pub(crate) enum Key {
    Template(LitStr, Template),
    Expr(Expr),
}

impl Key {
    /// Returns the key as it is written.
    pub(crate) fn text(&self) -> String {
        match self {
            Key::Template(literal, _) => literal.value(),
            Key::Expr(expr) => expr.to_token_stream().to_string(),
        }
    }
}

pub(crate) fn default_crate() -> Path {
    parse_quote!(::lock_core)
}

impl Parse for LockArgs {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut found = ParsedArgs::default();
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
struct ParsedArgs {
    seen: BTreeSet<String>,
    key: Option<Keys>,
    ttl: Option<DurationValue>,
    wait: Option<WaitValue>,
    renew: Option<bool>,
    max_hold: Option<DurationValue>,
    cooldown: Option<DurationValue>,
    on_lost: Option<Ident>,
    on_error: Option<Expr>,
    manager: Option<Expr>,
    guard: Option<Ident>,
    release: Option<Ident>,
    reentrant: Option<bool>,
    interop: Option<bool>,
    krate: Option<Path>,
}

impl ParsedArgs {
    fn read(&mut self, name: &Ident, input: ParseStream<'_>) -> Result<()> {
        match name.to_string().as_str() {
            "key" | "keys" if self.key.is_some() => {
                return Err(Error::new(
                    name.span(),
                    "`key` and `keys` are given; keep `keys`, and write all keys into its list",
                ));
            }
            "key" => self.key = Some(Keys::One(value::key(input)?)),
            "keys" => self.key = Some(Keys::All(value::keys(input)?)),
            "ttl" => self.ttl = Some(duration_value(input, Bound::Ttl)?),
            "wait" => self.wait = Some(wait(input)?),
            "renew" => self.renew = Some(value::flag(input, name)?),
            "max_hold" => self.max_hold = Some(duration_value(input, Bound::Positive)?),
            "cooldown" => self.cooldown = Some(duration_value(input, Bound::UpToADay)?),
            "on_lost" => {
                let words = [("cancel", "Cancel"), ("ignore", "Ignore")];
                self.on_lost = Some(value::word(input, name, &words)?);
            }
            "on_error" => self.on_error = Some(value::on_error(input)?),
            "manager" => self.manager = Some(value::manager(input)?),
            "guard" => self.guard = Some(value::guard(input)?),
            "release" => {
                let words = [("await", "Await"), ("background", "Background")];
                self.release = Some(value::word(input, name, &words)?);
            }
            "reentrant" => self.reentrant = Some(value::flag(input, name)?),
            "interop" => self.interop = Some(value::flag(input, name)?),
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
                    "`key` is missing; write for example `key = \"order:<id>\"`",
                ));
            }
            (_, None) => {
                return Err(missing(
                    "`ttl` is missing; write the time that the lock outlives a crashed process, for example `ttl = \"10s\"`",
                ));
            }
        };
        Ok(LockArgs {
            key,
            ttl,
            wait: self.wait.unwrap_or(WaitValue::None),
            renew: self.renew,
            max_hold: self.max_hold,
            cooldown: self.cooldown,
            on_lost: self.on_lost,
            on_error: self.on_error,
            manager: self.manager,
            guard: self.guard,
            release: self.release,
            reentrant: self.reentrant,
            interop: self.interop,
            krate: self.krate.unwrap_or_else(default_crate),
        })
    }
}
