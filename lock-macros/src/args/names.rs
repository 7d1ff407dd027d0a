//! Parses the names of arguments, and the `=` and `,` around their values.

use syn::{Error, Ident, LitStr, Result, Token, ext::IdentExt as _, parse::ParseStream, token};

use crate::suggest;

/// The names that an attribute knows.
pub(crate) struct Vocabulary {
    /// All arguments, in the order of the documentation.
    pub(crate) names: &'static [&'static str],
    /// Other names for the same arguments.
    pub(crate) synonyms: &'static [(&'static str, &'static str)],
    /// Arguments that are replaced by something else, and what to do instead.
    pub(crate) replaced: &'static [(&'static str, &'static str)],
    /// Where other names are looked up after these.
    pub(crate) then: Option<&'static Vocabulary>,
}

/// The arguments of `#[distributed_lock]`.
pub(crate) const LOCK: Vocabulary = Vocabulary {
    names: &NAMES,
    synonyms: &SYNONYMS,
    replaced: &REPLACED,
    then: None,
};

const NAMES: [&str; 17] = [
    "key",
    "keys",
    "ttl",
    "wait",
    "renew",
    "max_hold",
    "cooldown",
    "on_lost",
    "on_error",
    "manager",
    "guard",
    "release",
    "reentrant",
    "interop",
    "mode",
    "permits",
    "crate",
];

/// Names of other lock libraries.
const SYNONYMS: [(&str, &str); 45] = [
    ("name", "key"),
    ("id", "key"),
    ("resource", "key"),
    ("lock_name", "key"),
    ("expire", "ttl"),
    ("expires", "ttl"),
    ("expiry", "ttl"),
    ("expiration", "ttl"),
    ("lease", "ttl"),
    ("lease_time", "ttl"),
    ("duration", "ttl"),
    ("ttl_ms", "ttl"),
    ("ttl_secs", "ttl"),
    ("lock_at_most_for", "ttl"),
    ("timeout", "wait"),
    ("wait_timeout", "wait"),
    ("wait_time", "wait"),
    ("acquire_timeout", "wait"),
    ("lock_timeout", "wait"),
    ("auto_renew", "renew"),
    ("auto_extend", "renew"),
    ("extend", "renew"),
    ("watchdog", "renew"),
    ("max_duration", "max_hold"),
    ("debounce", "cooldown"),
    ("lock_at_least_for", "cooldown"),
    ("on_fail", "on_error"),
    ("on_busy", "on_error"),
    ("fallback", "on_error"),
    ("or_else", "on_error"),
    ("locks", "manager"),
    ("client", "manager"),
    ("store", "manager"),
    ("pool", "manager"),
    ("handle", "guard"),
    ("lock", "guard"),
    ("token", "guard"),
    ("reentry", "reentrant"),
    ("shared", "mode"),
    ("kind", "mode"),
    ("limit", "permits"),
    ("concurrency", "permits"),
    ("max_concurrent", "permits"),
    ("semaphore", "permits"),
    ("path", "crate"),
];

/// Why arguments of `#[idempotent]` do not exist in `#[distributed_lock]`.
const KEEPS_NO_RESULT: &str = "it is an argument of `#[idempotent]`, which keeps the result for later calls; a lock keeps none";

/// Arguments of other lock libraries, and of `#[idempotent]`.
const REPLACED: [(&str, &str); 19] = [
    ("remember", KEEPS_NO_RESULT),
    ("fingerprint", KEEPS_NO_RESULT),
    ("errors", KEEPS_NO_RESULT),
    ("tx", KEEPS_NO_RESULT),
    (
        "blocking",
        "set the longest wait: `wait = \"2s\"`, or `wait = forever`",
    ),
    (
        "block",
        "set the longest wait: `wait = \"2s\"`, or `wait = forever`",
    ),
    (
        "nowait",
        "remove it; without `wait` the function fails with `Busy` at once if the lock is taken",
    ),
    (
        "try_lock",
        "remove it; without `wait` the function fails with `Busy` at once if the lock is taken",
    ),
    (
        "retry",
        "set the longest wait, for example `wait = \"2s\"`; the server notifies the waiter when the lock is free",
    ),
    (
        "retries",
        "set the longest wait, for example `wait = \"2s\"`; the server notifies the waiter when the lock is free",
    ),
    (
        "retry_delay",
        "set the longest wait, for example `wait = \"2s\"`; the server notifies the waiter when the lock is free",
    ),
    (
        "backoff",
        "set the longest wait, for example `wait = \"2s\"`; the server notifies the waiter when the lock is free",
    ),
    (
        "renew_every",
        "remove it; the lock is extended every third of its ttl",
    ),
    (
        "interval",
        "remove it; the lock is extended every third of its ttl",
    ),
    (
        "prefix",
        "write it into the key, or set the `namespace` of the manager",
    ),
    (
        "namespace",
        "write it into the key, or set the `namespace` of the manager",
    ),
    (
        "url",
        "pass the URL to `LockManager::connect`, and install the manager or pass it as `manager = …`",
    ),
    (
        "redis",
        "pass its URL to `LockManager::connect`, and install the manager or pass it as `manager = …`",
    ),
    ("skip", "return another value by `on_error = |_| …`"),
];

/// Parses the name of an argument. The error suggests a name.
pub(crate) fn name(input: ParseStream<'_>, vocabulary: &Vocabulary) -> Result<Ident> {
    let names = vocabulary.names;
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
            suggest::list(names.iter().copied()),
        )));
    }
    let name = input.call(Ident::parse_any)?;
    let written = name.to_string();
    if names.contains(&written.as_str()) {
        return Ok(name);
    }
    Err(Error::new(name.span(), vocabulary.unknown(&written)))
}

impl Vocabulary {
    /// Explains a name that is no argument.
    fn unknown(&self, written: &str) -> String {
        let start = format!("there is no argument `{written}`");
        let meant = match self.known_word(written) {
            Some(Known::Replaced(instead)) => return format!("{start}; {instead}"),
            Some(Known::Synonym(meant)) => Some(meant),
            None => suggest::nearest(written, self.names.iter().copied()),
        };
        let all = suggest::list(self.names.iter().copied());
        match meant {
            Some(meant) => format!("{start}; did you mean `{meant}`? The arguments are {all}"),
            None => format!("{start}; the arguments are {all}"),
        }
    }

    /// Finds a word in the own lists first, and then in the others. A synonym of an argument that does not exist here is
    /// none.
    fn known_word(&self, written: &str) -> Option<Known> {
        let mut vocabularies = std::iter::successors(Some(self), |vocabulary| vocabulary.then);
        vocabularies.find_map(|vocabulary| {
            let find = |list: &[(&str, &'static str)]| {
                let found = list.iter().find(|(other, _)| *other == written);
                found.map(|(_, word)| *word)
            };
            let synonym = find(vocabulary.synonyms).filter(|meant| self.names.contains(meant));
            let replaced = || find(vocabulary.replaced).map(Known::Replaced);
            synonym.map(Known::Synonym).or_else(replaced)
        })
    }
}

/// A name of another library or attribute.
enum Known {
    Synonym(&'static str),
    Replaced(&'static str),
}

/// Parses the `=` after a name, and requires a value after it.
pub(crate) fn equals(input: ParseStream<'_>, name: &Ident) -> Result<()> {
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

/// Parses the `,` between two arguments.
pub(crate) fn comma(input: ParseStream<'_>, name: &Ident) -> Result<()> {
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
        "keys" => "[\"account:<from>\", \"account:<to>\"]",
        "ttl" => "\"10s\"",
        "wait" => "\"2s\"",
        "renew" | "reentrant" => "false",
        "interop" => "true",
        "max_hold" => "\"30s\"",
        "cooldown" => "\"2s\"",
        "on_lost" => "ignore",
        "on_error" => "|error| …",
        "remember" => "\"24h\"",
        "fingerprint" => "\"<cents>\"",
        "errors" => "|error| error.is_final()",
        "tx" => "tx",
        "manager" => "self.locks",
        "guard" => "lock",
        "release" => "background",
        "mode" => "read",
        "permits" => "5",
        _ => "::lock_core",
    };
    format!("write for example `{name} = {value}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_of_another_library_suggests_an_argument() {
        let unknown = |other: &str| LOCK.unknown(other);
        for (other, ours) in SYNONYMS {
            assert!(NAMES.contains(&ours), "{ours}");
            assert!(unknown(other).contains(&format!("did you mean `{ours}`?")));
        }
        let others = SYNONYMS.map(|(other, _)| other);
        for other in others.iter().chain(REPLACED.iter().map(|(other, _)| other)) {
            assert!(!NAMES.contains(other), "{other}");
        }
        for (other, instead) in REPLACED {
            assert!(!others.contains(&other), "{other} is in both lists");
            assert!(unknown(other).ends_with(instead));
        }
    }
}
