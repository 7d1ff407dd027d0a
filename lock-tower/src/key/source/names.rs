//! How a template names the parts of a request.

use http::header::{self, HeaderName};

use super::{BodySource, Extension, HeadSource, Source};

/// What one kind of source is called, and what it needs.
struct Kind {
    name: &'static str,
    argument: Argument,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Argument {
    None,
    Needed(&'static str),
    Optional(&'static str),
}

/// All that there are, whatever the features: what is not built in is told apart from what does not
/// exist.
const KINDS: [Kind; 18] = [
    kind("header", Argument::Needed("NAME")),
    kind("cookie", Argument::Needed("NAME")),
    kind("session", Argument::Needed("COOKIE")),
    kind("bearer", Argument::None),
    kind("ext", Argument::Needed("NAME")),
    kind("idempotency-key", Argument::None),
    kind("method", Argument::None),
    kind("host", Argument::None),
    kind("route", Argument::None),
    kind("path", Argument::None),
    kind("param", Argument::Needed("NAME")),
    kind("query", Argument::Needed("NAME")),
    kind("peer", Argument::None),
    kind("forwarded", Argument::Needed("PROXIES")),
    kind("x-forwarded-for", Argument::Needed("PROXIES")),
    kind("json", Argument::Optional("/POINTER")),
    kind("form", Argument::Needed("NAME")),
    kind("body", Argument::None),
];

const fn kind(name: &'static str, argument: Argument) -> Kind {
    Kind { name, argument }
}

impl Kind {
    /// As it is to be written.
    fn example(&self) -> String {
        match self.argument {
            Argument::None => format!("`<{}>`", self.name),
            Argument::Needed(what) => format!("`<{}.{what}>`", self.name),
            Argument::Optional(what) => format!("`<{0}>`, `<{0}.{what}>`", self.name),
        }
    }
}

/// `written` is what stands between `<` and `>`. The error says what to write.
pub(crate) fn parse(written: &str, extensions: &[Extension]) -> Result<Source, String> {
    let (name, argument) = match written.split_once('.') {
        Some((name, argument)) => (name, Some(argument)),
        None => (written, None),
    };
    let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
        return Err(unknown(written, name, argument));
    };
    match (kind.argument, argument) {
        (Argument::None, Some(_)) => {
            return Err(format!(
                "`<{name}>` takes no name; write {}",
                kind.example()
            ));
        }
        (Argument::Needed(_), None | Some("")) | (Argument::Optional(_), Some("")) => {
            return Err(format!("`<{name}>` needs more; write {}", kind.example()));
        }
        _ => {}
    }
    made(name, argument.unwrap_or_default(), extensions)
}

pub(crate) fn made(kind: &str, argument: &str, extensions: &[Extension]) -> Result<Source, String> {
    let head = match kind {
        "header" => HeadSource::Header(header(argument)?),
        "cookie" => HeadSource::Cookie(named(kind, argument, is_token)?),
        "session" => HeadSource::Session(named(kind, argument, is_token)?),
        "bearer" => HeadSource::Bearer,
        "ext" => HeadSource::Extension(registered(argument, extensions)?),
        "idempotency-key" => HeadSource::IdempotencyKey,
        "method" => HeadSource::Method,
        "host" => HeadSource::Host,
        "route" => HeadSource::Route,
        "path" => HeadSource::Path,
        #[cfg(feature = "axum")]
        "param" => HeadSource::Param(named(kind, argument, is_plain)?),
        "query" => HeadSource::Query(named(kind, argument, is_plain)?),
        "peer" => HeadSource::Peer,
        "forwarded" => HeadSource::Forwarded(hops(kind, argument)?),
        "x-forwarded-for" => HeadSource::XForwardedFor(hops(kind, argument)?),
        _ => return body(kind, argument).map(Source::Body),
    };
    Ok(Source::Head(head))
}

/// Two headers are not what they were in HTTP/1 where HTTP/2 is spoken.
fn header(name: &str) -> Result<HeaderName, String> {
    match HeaderName::try_from(name) {
        Ok(header::HOST) => Err("over HTTP/2 there is no header `host`; write `<host>`".to_owned()),
        Ok(header::COOKIE) => Err(
            "over HTTP/2 the header `cookie` may come in pieces; write `<cookie.NAME>`".to_owned(),
        ),
        Ok(name) => Ok(name),
        Err(_) if name == ":authority" => {
            Err("`:authority` is no header; write `<host>`".to_owned())
        }
        Err(_) => Err(format!("`{name}` can be the name of no header")),
    }
}

fn body(kind: &str, argument: &str) -> Result<BodySource, String> {
    match kind {
        #[cfg(feature = "json")]
        "json" if argument.is_empty() => Ok(BodySource::Document),
        #[cfg(feature = "json")]
        "json" => match super::json::Pointer::parse(argument) {
            Some(pointer) => Ok(BodySource::Json(pointer)),
            None => Err(format!(
                "`{argument}` is no JSON pointer; write such as `<json./order/sku>`, `~1` for a slash in a \
                 name and `~0` for a tilde"
            )),
        },
        "form" => Ok(BodySource::Form(named(kind, argument, is_plain)?)),
        "body" => Ok(BodySource::Bytes),
        // What is in the list and not here is not built in.
        _ => {
            let feature = if kind == "json" { "json" } else { "axum" };
            Err(format!(
                "`<{kind}>` needs the feature `{feature}` of lock-tower"
            ))
        }
    }
}

fn named(kind: &str, name: &str, can_be: fn(&str) -> bool) -> Result<String, String> {
    match can_be(name) {
        true => Ok(name.to_owned()),
        false => Err(format!("`{name}` can be the name of no {kind}")),
    }
}

fn registered(name: &str, extensions: &[Extension]) -> Result<Extension, String> {
    let found = extensions.iter().find(|extension| extension.name() == name);
    found.cloned().ok_or_else(|| {
        let names: Vec<_> = extensions.iter().map(Extension::name).collect();
        let hint = match closest(name, &names) {
            Some(close) => format!("did you mean `<ext.{close}>`? "),
            None => String::new(),
        };
        format!(
            "no extension is registered as `{name}`; {hint}say which by \
             `KeyTemplate::new(\"…\").extension(\"{name}\", |value: &Type| value.field)`"
        )
    })
}

fn hops(kind: &str, argument: &str) -> Result<usize, String> {
    match argument.parse() {
        Ok(hops @ 1..=32) => Ok(hops),
        _ => Err(format!(
            "`{argument}` is no number of trusted proxies; write `<{kind}.1>` behind one, at most 32 (without \
             a proxy the address is `<peer>`)"
        )),
    }
}

/// What RFC 6265 allows as the name of a cookie.
fn is_token(name: &str) -> bool {
    let other = b"!#$%&'*+-.^_`|~";
    let mut bytes = name.bytes();
    !name.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || other.contains(&byte))
}

/// As it reads once decoded. Quotes and backslashes are left out so that a name needs no escaping
/// wherever it is shown.
fn is_plain(name: &str) -> bool {
    let forbidden = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '"' | '\\' | '<');
    !name.is_empty() && !name.contains(forbidden)
}

fn unknown(written: &str, name: &str, argument: Option<&str>) -> String {
    let names = KINDS.map(|kind| kind.name);
    let lower = name.to_lowercase();
    let meant = match lower.as_str() {
        "ip" | "addr" | "address" | "client" | "remote" => Some("peer"),
        "authorization" | "auth" | "token" | "jwt" => Some("bearer"),
        "uri" | "url" => Some("path"),
        "extension" | "extensions" | "user" | "tenant" => Some("ext"),
        "verb" => Some("method"),
        "hostname" | "authority" | ":authority" | "domain" => Some("host"),
        _ => closest(&lower, &names),
    };
    let kind = KINDS.iter().find(|kind| Some(kind.name) == meant);
    let hint = match (kind, argument) {
        (
            Some(Kind {
                name,
                argument: Argument::Needed(_) | Argument::Optional(_),
            }),
            Some(argument),
        ) => {
            format!("did you mean `<{name}.{argument}>`? ")
        }
        (Some(kind), _) => format!("did you mean {}? ", kind.example()),
        (None, _) if written.contains('-') => format!("did you mean `<header.{written}>`? "),
        (None, _) => String::new(),
    };
    let examples: Vec<_> = KINDS.iter().map(Kind::example).collect();
    format!(
        "there is no source `{written}`; {hint}the sources are {} (for anything else use \
         `LockLayer::from_fn`)",
        examples.join(", ")
    )
}

/// The one that was most likely meant.
pub(crate) fn closest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let distances = known.iter().map(|&known| (distance(written, known), known));
    distances
        .filter(|&(distance, known)| distance <= 2 && distance < known.len())
        .min()
        .map(|(_, known)| known)
}

/// How many letters differ (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.chars().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}
