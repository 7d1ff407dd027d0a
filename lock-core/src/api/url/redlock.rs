//! Parses a `redlock:` URL. Everything here is pure.
//!
//! The form is `redlock://a,b,c,d,e[?max_ttl=10m][&assume_fresh=true]`, and each node is
//! `[user[:password]@]host[:port][/db]`. `redlocks://…` uses TLS for all nodes. In a password `,`,
//! `@`, `:`, `/`, `?` and `%` are percent-encoded.

use std::time::Duration;

use crate::base::error::Error;
use crate::base::url_query;

/// The default `max_ttl` of a quorum.
///
/// It is longer than the cooldown of a form that must not be sent twice. It is also short enough to
/// run without a server for that time.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(10 * 60);

const FORM: &str = "write redlock://host:port,host:port,host:port, each with its own user:password@ and /db if it needs them";

/// The error for `replica_acks` on several servers.
pub(crate) const NO_REPLICAS: &str = "`replica_acks` is for one master and its replicas; leave it out, because over several servers a \
    majority holds each lock and replicas have no vote";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RedlockUrl {
    /// A `redis:` URL for each node.
    pub(crate) nodes: Vec<String>,
    pub(crate) max_ttl: Duration,
    pub(crate) assume_fresh: bool,
}

/// Parses `rest`, the part after `redlock:`, into nodes with the given scheme.
///
/// No message repeats a part of the URL, because the URL may hold passwords.
pub(crate) fn parse(scheme: &str, rest: &str) -> Result<RedlockUrl, Error> {
    let Some(rest) = rest.strip_prefix("//") else {
        return Err(Error::invalid(format!("the URL names no nodes; {FORM}")));
    };
    let (list, options) = rest.split_once('?').unwrap_or((rest, ""));
    let nodes: Vec<String> = list
        .split(',')
        .map(|node| format!("{scheme}://{node}"))
        .collect();
    if list.split(',').any(|node| node.trim().is_empty()) {
        return Err(Error::invalid(format!(
            "a node of the URL is empty; {FORM}"
        )));
    }
    let mut url = RedlockUrl {
        nodes,
        max_ttl: MAX_TTL,
        assume_fresh: false,
    };
    let options = url_query::known(
        options,
        &["max_ttl", "assume_fresh", "replica_acks"],
        "a redlock:// URL takes `max_ttl=10m` and `assume_fresh=true`",
    )?;
    for option in options {
        match option {
            ("max_ttl", duration) => {
                url.max_ttl = parse_duration(duration).ok_or_else(|| {
                    Error::invalid(
                        "`max_ttl` of the URL is not a duration; write 500ms, 10s, 2m or 1h",
                    )
                })?;
            }
            ("assume_fresh", "true") => url.assume_fresh = true,
            ("assume_fresh", "false") => url.assume_fresh = false,
            ("assume_fresh", _) => {
                return Err(Error::invalid(
                    "`assume_fresh` of the URL must be `true` or `false`",
                ));
            }
            _ => return Err(Error::invalid(NO_REPLICAS)),
        }
    }
    Ok(url)
}

fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(millis)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn each_node_is_a_redis_url_of_its_own() {
        let url = parse("redis", "//a,me:sesame@b:7000/2,[::1]:7001").unwrap();
        assert_eq!(
            url.nodes,
            [
                "redis://a",
                "redis://me:sesame@b:7000/2",
                "redis://[::1]:7001"
            ]
        );
        assert_eq!((url.max_ttl, url.assume_fresh), (MAX_TTL, false));
    }

    #[test]
    fn options_follow_the_nodes() {
        let url = parse("redis", "//a,b,c?max_ttl=90s&assume_fresh=true").unwrap();
        assert_eq!(url.nodes.len(), 3);
        assert_eq!(
            (url.max_ttl, url.assume_fresh),
            (Duration::from_secs(90), true)
        );
        for (text, duration) in [
            ("250ms", 250),
            ("3s", 3_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(duration)));
        }
        for text in [
            "",
            "5",
            "s",
            "-1s",
            "1d",
            "1.5s",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn errors_do_not_repeat_the_url() {
        for rest in [
            "",
            "a,b",
            "//",
            "//a,,b",
            "//a,",
            "//a?max_ttl=soon",
            "//a?password=sesame",
            "//a?max_ttl=1m&max_ttl=2m",
            "//a?MAX_TTL=1m",
            "//sesame@a?assume_fresh=maybe",
        ] {
            let error = parse("redis", rest).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{rest}");
            assert!(!error.to_string().contains("sesame"), "{error}");
        }
    }
}
