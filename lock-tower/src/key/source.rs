//! The parts of a request that a template can name.

use std::borrow::Cow;
use std::fmt;

use http::header::{COOKIE, HeaderName};
use http::request::Parts;

use super::NoKey;
use super::canonical::{decoded_query, path, text};

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Header(HeaderName),
    Cookie(String),
    Query(String),
    Method,
    Route,
    Path,
}

impl Source {
    /// `written` is what stands between `<` and `>`. The error says what to write.
    pub(crate) fn parse(written: &str) -> Result<Self, String> {
        let (kind, name) = match written.split_once('.') {
            Some((kind, name)) => (kind, Some(name)),
            None => (written, None),
        };
        let named = |made: fn(&str) -> Option<Source>| match name {
            None | Some("") => Err(format!("`<{kind}>` needs a name; write `<{kind}.NAME>`")),
            Some(name) => {
                made(name).ok_or_else(|| format!("`{name}` can be the name of no {kind}"))
            }
        };
        let alone = |source| match name {
            None => Ok(source),
            Some(_) => Err(format!("`<{kind}>` takes no name; write `<{kind}>`")),
        };
        match kind {
            "header" => named(|name| HeaderName::try_from(name).ok().map(Source::Header)),
            "cookie" => named(|name| is_token(name).then(|| Source::Cookie(name.into()))),
            "query" => named(|name| is_query_name(name).then(|| Source::Query(name.into()))),
            "method" => alone(Source::Method),
            "route" => alone(Source::Route),
            "path" => alone(Source::Path),
            _ => Err(unknown(written, kind, name)),
        }
    }

    /// The one value that the request has, as text; two different values are two different texts.
    pub(crate) fn read<'a>(&self, request: &'a Parts) -> Result<Cow<'a, str>, NoKey> {
        match self {
            Source::Header(name) => {
                let values = request.headers.get_all(name).iter();
                self.only(values.map(|value| Cow::Borrowed(value.as_bytes())))
            }
            Source::Cookie(name) => self.only(cookies(request, name)),
            Source::Query(name) => self.only(decoded_query(uri(request), name)),
            Source::Method => Ok(Cow::Borrowed(request.method.as_str())),
            Source::Route => Ok(route(request)),
            Source::Path => Ok(Cow::Owned(path(uri(request)))),
        }
    }

    /// Sent twice with two values, nobody can say which one the handler will take.
    fn only<'a>(
        &self,
        mut values: impl Iterator<Item = Cow<'a, [u8]>>,
    ) -> Result<Cow<'a, str>, NoKey> {
        let missing = || NoKey::Missing(Some(self.to_string()));
        let first = values.next().ok_or_else(missing)?;
        if values.any(|value| value != first) {
            return Err(NoKey::Ambiguous(self.to_string()));
        }
        if first.is_empty() {
            return Err(missing());
        }
        Ok(text(first))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Header(name) => write!(f, "header.{name}"),
            Source::Cookie(name) => write!(f, "cookie.{name}"),
            Source::Query(name) => write!(f, "query.{name}"),
            Source::Method => f.write_str("method"),
            Source::Route => f.write_str("route"),
            Source::Path => f.write_str("path"),
        }
    }
}

fn cookies<'a>(request: &'a Parts, name: &str) -> impl Iterator<Item = Cow<'a, [u8]>> {
    let headers = request.headers.get_all(COOKIE).iter();
    let pairs = headers.flat_map(|header| header.as_bytes().split(|&byte| byte == b';'));
    pairs.filter_map(move |pair| {
        let equals = pair.iter().position(|&byte| byte == b'=')?;
        let (key, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        (key == name.as_bytes()).then_some(Cow::Borrowed(value))
    })
}

/// The route that a router has matched; without one the path, as canonical as it can be.
fn route(request: &Parts) -> Cow<'_, str> {
    #[cfg(feature = "axum")]
    if let Some(route) = request.extensions.get::<axum::extract::MatchedPath>() {
        return Cow::Borrowed(route.as_str());
    }
    Cow::Owned(path(uri(request)))
}

/// In a nested router the request's own URI lacks its beginning, and two routers would collide.
fn uri(request: &Parts) -> &http::Uri {
    #[cfg(feature = "axum")]
    if let Some(original) = request.extensions.get::<axum::extract::OriginalUri>() {
        return &original.0;
    }
    &request.uri
}

/// What RFC 6265 allows as the name of a cookie.
fn is_token(name: &str) -> bool {
    let other = b"!#$%&'*+-.^_`|~";
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || other.contains(&byte))
}

/// As it reads once decoded. Quotes and backslashes are left out so that a name needs no escaping
/// wherever it is shown.
fn is_query_name(name: &str) -> bool {
    let forbidden = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '"' | '\\' | '<');
    !name.contains(forbidden)
}

const KINDS: [(&str, bool); 6] = [
    ("header", true),
    ("cookie", true),
    ("query", true),
    ("method", false),
    ("route", false),
    ("path", false),
];

fn unknown(written: &str, kind: &str, name: Option<&str>) -> String {
    let close = KINDS
        .iter()
        .map(|&(known, named)| (distance(&kind.to_lowercase(), known), known, named))
        .filter(|&(distance, ..)| distance <= 2)
        .min();
    let hint = match (close, name) {
        (Some((_, known, true)), Some(name)) => format!("did you mean `<{known}.{name}>`? "),
        (Some((_, known, true)), None) => format!("did you mean `<{known}.NAME>`? "),
        (Some((_, known, false)), _) => format!("did you mean `<{known}>`? "),
        (None, _) if written.contains('-') => format!("did you mean `<header.{written}>`? "),
        (None, _) => String::new(),
    };
    format!(
        "there is no source `{written}`; {hint}the sources are `<header.NAME>`, `<cookie.NAME>`, \
         `<query.NAME>`, `<method>`, `<route>` and `<path>` (for anything else use \
         `LockLayer::from_fn`)"
    )
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

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, Request};

    fn read(written: &str, request: http::request::Builder) -> Result<String, NoKey> {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        Source::parse(written)
            .unwrap()
            .read(&parts)
            .map(Cow::into_owned)
    }

    #[test]
    fn a_header_is_read_whatever_its_case() {
        let request = Request::post("/").header("x-user-id", "42");
        assert_eq!(read("header.X-User-Id", request).unwrap(), "42");
    }

    #[test]
    fn an_absent_or_empty_value_is_missing() {
        let missing = |name: &str| Err(NoKey::Missing(Some(name.into())));
        assert_eq!(read("header.a", Request::post("/")), missing("header.a"));
        assert_eq!(
            read("header.a", Request::post("/").header("a", "")),
            missing("header.a")
        );
        assert_eq!(
            read("cookie.a", Request::post("/").header("cookie", "b=1")),
            missing("cookie.a")
        );
        assert_eq!(
            read("query.a", Request::post("/?a=&b=1")),
            missing("query.a")
        );
    }

    #[test]
    fn two_different_values_are_ambiguous_and_two_equal_ones_are_one() {
        let request = Request::post("/").header("a", "1").header("a", "2");
        assert_eq!(
            read("header.a", request),
            Err(NoKey::Ambiguous("header.a".into()))
        );
        let request = Request::post("/").header("a", "1").header("a", "1");
        assert_eq!(read("header.a", request).unwrap(), "1");
        let request = Request::post("/").header("cookie", "a=1; a=2");
        assert_eq!(
            read("cookie.a", request),
            Err(NoKey::Ambiguous("cookie.a".into()))
        );
        let request = Request::post("/?a=1&a=2");
        assert_eq!(
            read("query.a", request),
            Err(NoKey::Ambiguous("query.a".into()))
        );
    }

    #[test]
    fn a_cookie_is_found_among_others_and_in_several_headers() {
        let request = Request::post("/")
            .header("cookie", "aa=0;x=a=1")
            .header("cookie", " a = b=c ;d=1");
        assert_eq!(read("cookie.a", request).unwrap(), "b=c");
    }

    #[test]
    fn header_values_that_are_no_utf8_stay_different() {
        let raw = |bytes: &[u8]| {
            let value = HeaderValue::from_bytes(bytes).unwrap();
            read("header.a", Request::post("/").header("a", value)).unwrap()
        };
        let values = [
            raw(b"j\xF6rg"),
            raw(b"j\xFCrg"),
            raw("jörg".as_bytes()),
            raw(b"j%F6rg"),
        ];
        let different: std::collections::HashSet<_> = values.iter().collect();
        assert_eq!(different.len(), values.len());
    }

    #[test]
    fn two_spellings_of_a_path_are_one() {
        let spelled = |uri: &str| read("path", Request::post(uri)).unwrap();
        assert_eq!(spelled("/users/%31"), spelled("/users/1"));
        assert_eq!(spelled("/a%2fb"), spelled("/a%2Fb"));
        assert_ne!(spelled("/a%2Fb"), spelled("/a/b"));
        assert_ne!(spelled("/a%252Fb"), spelled("/a%2Fb"));
    }

    #[test]
    fn without_a_router_the_route_is_the_path() {
        assert_eq!(
            read("route", Request::post("/users/%31")).unwrap(),
            "/users/1"
        );
    }

    #[cfg(feature = "axum")]
    #[test]
    fn in_a_nested_router_the_path_is_the_whole_one() {
        let original = axum::extract::OriginalUri("/api/users/1?a=b".parse().unwrap());
        let request = || Request::post("/users/1").extension(original.clone());
        assert_eq!(read("path", request()).unwrap(), "/api/users/1");
        assert_eq!(read("query.a", request()).unwrap(), "b");
    }
}
