//! The arguments of the attribute.

use proc_macro2::Span;
use syn::{
    Error, Expr, Ident, Lit, LitStr, Result,
    ext::IdentExt as _,
    parse::{Parse, ParseStream},
    spanned::Spanned as _,
};

use super::words::IDEMPOTENT;
use crate::args::{
    self, DAY, DurationValue, Lifetime, LifetimeValue, LockArgs, ParsedArgs, Seen, missing, pairs,
};
use crate::template::Template;

/// Beside a lock, of which a call with `tx` takes none.
pub(crate) struct IdempotentArgs {
    pub(super) lock: LockArgs,
    pub(super) remember: Lifetime,
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) errors: Option<Expr>,
    /// The parameter that is the transaction.
    pub(super) tx: Option<Ident>,
}

pub(super) enum Fingerprint {
    None,
    Template(LitStr, Template),
}

impl Parse for IdempotentArgs {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut found = ParsedArgs::default();
        let (mut remember, mut fingerprint, mut errors, mut tx) = (None, None, None, None);
        let seen = pairs(input, &IDEMPOTENT, |name| {
            match name.to_string().as_str() {
                "remember" => remember = Some(args::lifetime(input)?),
                "fingerprint" => fingerprint = Some(self::fingerprint(input)?),
                "errors" => errors = Some(args::errors(input)?),
                "tx" => tx = Some(parameter(input)?),
                _ => found.read(name, input)?,
            }
            Ok(())
        })?;
        if ["key", "remember"]
            .iter()
            .all(|name| !seen.contains_key(*name))
        {
            return Err(missing(
                "`key` and `remember` are missing; write for example \
                 `#[idempotent(key = \"charge:<order>\", ttl = \"10s\", remember = \"24h\")]`",
            ));
        }
        let lock = found.without_ttl()?;
        let remember = remember.ok_or_else(|| {
            missing("`remember` is missing; write for example `remember = \"24h\"`")
        })?;
        match tx {
            None => lock.check_ttl()?,
            Some(_) => takes_no_lock(&seen)?,
        }
        bounds(&remember, tx.is_some())?;
        Ok(Self {
            lock,
            remember,
            fingerprint,
            errors,
            tx,
        })
    }
}

/// Refuses the arguments of a lock, because a call with `tx` takes none.
fn takes_no_lock(seen: &Seen) -> Result<()> {
    for name in ["ttl", "renew", "max_hold", "on_lost", "manager", "guard"] {
        if let Some(span) = seen.get(name) {
            return Err(Error::new(
                *span,
                format!("with `tx` no lock is taken, so there is no `{name}`; remove it"),
            ));
        }
    }
    Ok(())
}

/// Checks the life of a record, as far as it is known.
fn bounds(remember: &Lifetime, in_database: bool) -> Result<()> {
    const MINUTE: std::time::Duration = std::time::Duration::from_secs(60);
    let Lifetime {
        value,
        written,
        span,
    } = remember;
    let problem = match (value, in_database) {
        (LifetimeValue::Forever, false) => "is too long for a record in Redis",
        (LifetimeValue::For(DurationValue::Fixed(life, _)), false) if *life > DAY => {
            "is too long for a record in Redis"
        }
        (LifetimeValue::For(DurationValue::Fixed(life, _)), true) if *life > 3_650 * DAY => {
            return Err(Error::new(
                *span,
                format!(
                    "`{written}` is too long; a record lives at most `\"3650d\"`, and `forever` means that"
                ),
            ));
        }
        (LifetimeValue::For(DurationValue::Fixed(life, _)), true) if *life < MINUTE => {
            return Err(Error::new(
                *span,
                format!("`{written}` is too short; a record in a database lives at least `\"1m\"`"),
            ));
        }
        _ => return Ok(()),
    };
    Err(Error::new(
        *span,
        format!(
            "`{written}` {problem}, which lives at most `\"24h\"`; keep it in your database with `tx = …`"
        ),
    ))
}

fn fingerprint(input: ParseStream<'_>) -> Result<Fingerprint> {
    const IS: &str = "`fingerprint` is a template such as `\"<cents>\"`, or `none`";
    let expr: Expr = input.parse()?;
    if let Expr::Path(path) = &expr
        && path.path.is_ident("none")
    {
        return Ok(Fingerprint::None);
    }
    match args::literal(&expr) {
        Some(Lit::Str(text)) if text.value() == "none" => Err(Error::new(
            text.span(),
            "write this word without quotes: `fingerprint = none`",
        )),
        Some(Lit::Str(text)) => match Template::fingerprint(&text.value()) {
            Ok(template) => Ok(Fingerprint::Template(text.clone(), template)),
            Err(problem) => Err(Error::new(text.span(), problem)),
        },
        _ => Err(Error::new(expr.span(), IS)),
    }
}

/// Parses the name of a parameter.
fn parameter(input: ParseStream<'_>) -> Result<Ident> {
    let span: Span = input.span();
    let name = input.call(Ident::parse_any).ok();
    let ends = input.is_empty() || input.peek(syn::Token![,]);
    match name {
        Some(name) if ends && name != "self" => Ok(name),
        _ => Err(Error::new(
            span,
            "`tx` is the name of a parameter of type `&mut Tx<Db>`, for example `tx = tx`",
        )),
    }
}
