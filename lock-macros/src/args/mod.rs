//! Parses the arguments of the attribute, which are written `name = value`.

mod duration;
mod duration_value;
mod names;
mod value;

use std::collections::BTreeMap;

use proc_macro2::Span;
use quote::ToTokens as _;
use syn::{
    Error, Expr, Ident, LitStr, Path, Result,
    parse::{Parse, ParseStream},
    parse_quote,
};

pub(crate) use duration::DAY;
pub(crate) use duration_value::{DurationValue, Lifetime, LifetimeValue, WaitValue, lifetime};
pub(crate) use names::{LOCK, Vocabulary};
pub(crate) use value::{errors, literal, path};

use crate::template::Template;
use duration::Bound;
use duration_value::{duration_value, wait};
use names::{comma, equals, name};

pub(crate) struct LockArgs {
    pub(crate) key: Keys,
    /// `None` if no lock is taken.
    pub(crate) ttl: Option<DurationValue>,
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
    pub(crate) share: Option<Share>,
    pub(crate) krate: Path,
}

/// A lock that several owners have at a time.
pub(crate) enum Share {
    Reader,
    Permits(Expr),
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
        found.seen = pairs(input, &LOCK, |name| found.read(name, input))?;
        found.finish()
    }
}

/// Parses `name = value, …`, calls `read` for each value, and returns the place of each name.
pub(crate) fn pairs(
    input: ParseStream<'_>,
    vocabulary: &Vocabulary,
    mut read: impl FnMut(&Ident) -> Result<()>,
) -> Result<Seen> {
    let mut seen = Seen::new();
    while !input.is_empty() {
        let name = name(input, vocabulary)?;
        if seen.insert(name.to_string(), name.span()).is_some() {
            return Err(Error::new(
                name.span(),
                format!("`{name}` is given twice; keep one of them"),
            ));
        }
        equals(input, &name)?;
        read(&name)?;
        if !input.is_empty() {
            comma(input, &name)?;
        }
    }
    Ok(seen)
}

/// The arguments that are given, and where their names stand.
pub(crate) type Seen = BTreeMap<String, Span>;

#[derive(Default)]
pub(crate) struct ParsedArgs {
    pub(crate) seen: Seen,
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
    reads: bool,
    permits: Option<Expr>,
    krate: Option<Path>,
}

impl ParsedArgs {
    /// Parses the value of an argument.
    pub(crate) fn read(&mut self, name: &Ident, input: ParseStream<'_>) -> Result<()> {
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
            "mode" => {
                let words = [("read", "Read"), ("write", "Write")];
                self.reads = value::word(input, name, &words)? == "Read";
            }
            "permits" => self.permits = Some(value::permits(input)?),
            _ => self.krate = Some(value::path(input)?),
        }
        Ok(())
    }

    /// Returns the share, unless another argument rules it out.
    fn share(&mut self) -> Result<Option<Share>> {
        let permits = self.permits.take();
        let conflicts: &[(&str, &str)] = match (&permits, self.reads) {
            (None, false) => return Ok(None),
            (Some(_), _) => &[
                (
                    "mode",
                    "`mode` does not go with `permits`; a reader has no limit, and a function without `mode` and \
                     `permits` waits for all permits",
                ),
                (
                    "keys",
                    "`keys` does not go with `permits`; a lock of several keys has one owner",
                ),
                (
                    "cooldown",
                    "`cooldown` does not go with `permits`, because other owners have the key beside this one",
                ),
            ],
            (None, true) => &[
                (
                    "keys",
                    "`keys` does not go with `mode = read`; a lock of several keys has one owner",
                ),
                (
                    "cooldown",
                    "`cooldown` does not go with `mode = read`, because other readers have the key beside this one",
                ),
            ],
        };
        for (name, problem) in conflicts {
            if let Some(span) = self.seen.get(*name) {
                return Err(Error::new(*span, problem));
            }
        }
        if self.interop == Some(true) {
            let problem =
                "`interop` goes with locks that one owner has; a reader or a permit leaves no gaps";
            return Err(Error::new(self.seen["interop"], problem));
        }
        Ok(Some(permits.map_or(Share::Reader, Share::Permits)))
    }

    fn finish(mut self) -> Result<LockArgs> {
        let share = self.share()?;
        if self.key.is_none() && self.ttl.is_none() {
            return Err(missing(
                "`key` and `ttl` are missing; write for example `#[distributed_lock(key = \"order:<id>\", ttl = \"10s\")]`",
            ));
        }
        let mut args = self.without_ttl()?;
        args.share = share;
        args.check_ttl()?;
        Ok(args)
    }

    /// Returns the arguments, whether there is a `ttl` or not.
    pub(crate) fn without_ttl(self) -> Result<LockArgs> {
        let Some(key) = self.key else {
            return Err(missing(
                "`key` is missing; write for example `key = \"order:<id>\"`",
            ));
        };
        Ok(LockArgs {
            key,
            ttl: self.ttl,
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
            share: None,
            krate: self.krate.unwrap_or_else(default_crate),
        })
    }
}

impl LockArgs {
    pub(crate) fn check_ttl(&self) -> Result<()> {
        match self.ttl {
            Some(_) => Ok(()),
            None => Err(missing(
                "`ttl` is missing; write the time that the lock outlives a crashed process, for example `ttl = \"10s\"`",
            )),
        }
    }
}

/// Makes the error for an argument that is missing.
pub(crate) fn missing(what: &str) -> Error {
    Error::new(Span::call_site(), what)
}
