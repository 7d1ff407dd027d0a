//! The names of sources in a template.

use http::header::{self, HeaderName};

use super::{BodySource, Extension, HeadSource, Source};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Argument {
    None,
    Needed(&'static str),
    Optional(&'static str),
}

/// All kinds of sources and their arguments, including those whose feature is off.
///
/// The error for a source whose feature is off can then name the feature.
const KINDS: [(&str, Argument); 18] = [
    ("header", Argument::Needed("NAME")),
    ("cookie", Argument::Needed("NAME")),
    ("session", Argument::Needed("COOKIE")),
    ("bearer", Argument::None),
    ("ext", Argument::Needed("NAME")),
    ("idempotency-key", Argument::None),
    ("method", Argument::None),
    ("host", Argument::None),
    ("route", Argument::None),
    ("path", Argument::None),
    ("param", Argument::Needed("NAME")),
    ("query", Argument::Needed("NAME")),
    ("peer", Argument::None),
    ("forwarded", Argument::Needed("PROXIES")),
    ("x-forwarded-for", Argument::Needed("PROXIES")),
    ("json", Argument::Optional("/POINTER")),
    ("form", Argument::Needed("NAME")),
    ("body", Argument::None),
];

/// Returns the source as it is written in a template.
fn example((name, argument): (&str, Argument)) -> String {
    match argument {
        Argument::None => format!("`<{name}>`"),
        Argument::Needed(what) => format!("`<{name}.{what}>`"),
        Argument::Optional(what) => format!("`<{name}>`, `<{name}.{what}>`"),
    }
}

/// Parses the text between `<` and `>`. The error says what to write.
pub(crate) fn parse(written: &str, extensions: &[Extension]) -> Result<Source, String> {
    let (name, argument) = match written.split_once('.') {
        Some((name, argument)) => (name, Some(argument)),
        None => (written, None),
    };
    let Some(kind) = KINDS.into_iter().find(|kind| kind.0 == name) else {
        return Err(unknown(written, name, argument));
    };
    match (kind.1, argument) {
        (Argument::None, Some(_)) => {
            return Err(format!("`<{name}>` takes no name; write {}", example(kind)));
        }
        (Argument::Needed(_), None | Some("")) | (Argument::Optional(_), Some("")) => {
            return Err(format!("`<{name}>` needs a name; write {}", example(kind)));
        }
        _ => {}
    }
    of_kind(name, argument.unwrap_or_default(), extensions)
}

pub(crate) fn of_kind(
    kind: &str,
    argument: &str,
    extensions: &[Extension],
) -> Result<Source, String> {
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

/// Refuses two headers that HTTP/2 sends in another way than HTTP/1.
fn header(name: &str) -> Result<HeaderName, String> {
    match HeaderName::try_from(name) {
        Ok(header::HOST) => Err("HTTP/2 has no header `host`; write `<host>`".to_owned()),
        Ok(header::COOKIE) => {
            Err("HTTP/2 may split the header `cookie`; write `<cookie.NAME>`".to_owned())
        }
        Ok(name) => Ok(name),
        Err(_) if name == ":authority" => {
            Err("`:authority` is not a header; write `<host>`".to_owned())
        }
        Err(_) => Err(format!("`{name}` is not a valid name of a header")),
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
                "`{argument}` is not a JSON pointer; write, for example, `<json./order/sku>`, with \
                 `~1` for a slash in a name and `~0` for a tilde"
            )),
        },
        "form" => Ok(BodySource::Form(named(kind, argument, is_plain)?)),
        "body" => Ok(BodySource::Bytes),
        // The source is in the list of kinds, so its feature is off.
        _ => {
            let feature = if kind == "json" { "json" } else { "axum" };
            Err(format!(
                "`<{kind}>` needs the feature `{feature}` of lock-tower"
            ))
        }
    }
}

fn named(kind: &str, name: &str, is_valid: fn(&str) -> bool) -> Result<String, String> {
    match is_valid(name) {
        true => Ok(name.to_owned()),
        false => Err(format!("`{name}` is not a valid name of a {kind}")),
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
            "no extension is registered as `{name}`; {hint}register it by \
             `KeyTemplate::new(\"…\").extension(\"{name}\", |value: &Type| value.field)`"
        )
    })
}

fn hops(kind: &str, argument: &str) -> Result<usize, String> {
    match argument.parse() {
        Ok(hops @ 1..=32) => Ok(hops),
        _ => Err(format!(
            "`{argument}` is not a number of trusted proxies between 1 and 32; write `<{kind}.1>` \
             behind one proxy, and `<peer>` without a proxy"
        )),
    }
}

/// Returns whether RFC 6265 allows this name of a cookie.
fn is_token(name: &str) -> bool {
    let other = b"!#$%&'*+-.^_`|~";
    let mut bytes = name.bytes();
    !name.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || other.contains(&byte))
}

/// Returns whether a name of a parameter or field is plain.
///
/// Quotes and backslashes are refused, so that a response can contain the name without escaping.
fn is_plain(name: &str) -> bool {
    let forbidden = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '"' | '\\' | '<');
    !name.is_empty() && !name.contains(forbidden)
}

fn unknown(written: &str, name: &str, argument: Option<&str>) -> String {
    let names = KINDS.map(|(name, _)| name);
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
    let kind = KINDS.into_iter().find(|kind| Some(kind.0) == meant);
    let hint = match (kind, argument) {
        (Some((name, Argument::Needed(_) | Argument::Optional(_))), Some(argument)) => {
            format!("did you mean `<{name}.{argument}>`? ")
        }
        (Some(kind), _) => format!("did you mean {}? ", example(kind)),
        (None, _) if written.contains('-') => format!("did you mean `<header.{written}>`? "),
        (None, _) => String::new(),
    };
    let examples: Vec<_> = KINDS.into_iter().map(example).collect();
    format!(
        "there is no source `{written}`; {hint}the sources are {} (for other values use \
         `LockLayer::from_fn`)",
        examples.join(", ")
    )
}

/// Returns the known name that is closest to the written one.
pub(crate) fn closest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let distances = known
        .iter()
        .map(|&known| (strsim::levenshtein(written, known), known));
    distances
        .filter(|&(distance, known)| distance <= 2 && distance < known.len())
        .min()
        .map(|(_, known)| known)
}
