//! URLs of more than one server:
//!
//! * `redis-sentinel://[[user]:password@]host[:port][,host[:port]…][/db]?service=name`, with
//!   `&sentinel_username=…` and `&sentinel_password=…` where the sentinels ask for them;
//! * `redis-cluster://[[user]:password@]host[:port][,host[:port]…]`.
//!
//! User and password are those of the servers that keep the locks. `rediss-` stands for TLS. `valkey-` and
//! `valkeys-` mean the same.

use redis::{ConnectionInfo, IntoConnectionInfo};

use crate::base::error::Error;
use crate::base::url_query;

/// The common settings of all hosts of a URL, and the hosts.
#[derive(Debug, PartialEq, Eq)]
struct Parts<'a> {
    /// `user:password@`, as written in the URL.
    user_info: &'a str,
    hosts: Vec<&'a str>,
    database: &'a str,
    query: &'a str,
    /// The scheme of the URL of one host.
    scheme: &'static str,
}

#[derive(Debug)]
pub(crate) struct SentinelUrl {
    pub(super) sentinels: Vec<ConnectionInfo>,
    pub(super) service: String,
    /// The settings for the master, whatever its address.
    pub(super) master: ConnectionInfo,
}

pub(super) fn sentinel(url: &str) -> Result<SentinelUrl, Error> {
    let unreadable = || {
        unreadable(
            url,
            "the URL cannot be read; write \
             redis-sentinel://[user:password@]host[:port],host[:port]/db?service=name, with \
             `@`, `:`, `/`, `,` and `%` in the password percent-encoded, and \
             `&sentinel_username=…&sentinel_password=…` where the sentinels ask for them",
        )
    };
    let parts = Parts::of(url).ok_or_else(unreadable)?;
    let (mut service, mut user, mut password) = (None, "", None);
    let query = url_query::known(
        parts.query,
        &["service", "sentinel_username", "sentinel_password"],
        "a redis-sentinel:// URL takes `service`, `sentinel_username`, `sentinel_password` and \
         `replica_acks`",
    )?;
    for (name, value) in query {
        match name {
            "service" => service = Some(value),
            "sentinel_username" => user = value,
            _ => password = Some(value),
        }
    }
    let is_name = |name: &&str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        !name.is_empty() && name.chars().all(allowed)
    };
    let service = service.filter(is_name).ok_or_else(|| {
        Error::invalid(
            "the URL does not say which master to ask the sentinels for; add `?service=name`, \
             with the name of their configuration, as in \
             redis-sentinel://host:26379/0?service=mymaster",
        )
    })?;
    let sentinel_user_info = match password {
        Some(password) => format!("{user}:{password}@"),
        None if user.is_empty() => String::new(),
        None => return Err(unreadable()),
    };
    let sentinels = parts
        .hosts
        .iter()
        .map(|host| info(parts.scheme, &sentinel_user_info, host, 26_379, ""))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(unreadable)?;
    let master = info(parts.scheme, parts.user_info, "master", 0, parts.database);
    Ok(SentinelUrl {
        sentinels,
        service: service.to_owned(),
        master: master.ok_or_else(unreadable)?,
    })
}

pub(super) fn cluster(url: &str) -> Result<Vec<ConnectionInfo>, Error> {
    let unreadable = || {
        unreadable(
            url,
            "the URL cannot be read; write redis-cluster://[user:password@]host[:port],host[:port], \
             with `@`, `:`, `/`, `,` and `%` in the password percent-encoded",
        )
    };
    let parts = Parts::of(url).ok_or_else(unreadable)?;
    if !matches!(parts.database, "" | "0") {
        return Err(Error::invalid(
            "a cluster has one database, 0; write redis-cluster://host:port,host:port",
        ));
    }
    url_query::known(
        parts.query,
        &[],
        "a redis-cluster:// URL takes `replica_acks`",
    )?;
    let seeds = parts
        .hosts
        .iter()
        .map(|host| info(parts.scheme, parts.user_info, host, 6_379, ""));
    seeds.collect::<Option<Vec<_>>>().ok_or_else(unreadable)
}

/// The parser of one server's URL refuses `rediss:` where TLS is not built in.
fn unreadable(url: &str, what_to_write: &'static str) -> Error {
    if is_tls(url) {
        let tls = "for TLS turn on the feature `tls-rustls` of lock-core";
        Error::invalid(format!("{what_to_write}; {tls}"))
    } else {
        Error::invalid(what_to_write)
    }
}

fn is_tls(url: &str) -> bool {
    url.starts_with("rediss") || url.starts_with("valkeys")
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let user_info = authority.rfind('@').map_or(0, |at| at + 1);
        let (user_info, hosts) = authority.split_at(user_info);
        let parts = Self {
            user_info,
            hosts: hosts.split(',').collect(),
            database,
            query,
            scheme: if is_tls(scheme) { "rediss" } else { "redis" },
        };
        let one_each = |host: &&str| !host.is_empty() && !host.contains(['#', '?']);
        parts.hosts.iter().all(one_each).then_some(parts)
    }
}

/// Reads the URL of one server by the redis crate, which decodes user and password.
fn info(
    scheme: &str,
    user_info: &str,
    host: &str,
    default_port: u16,
    database: &str,
) -> Option<ConnectionInfo> {
    // An address of IPv6 stands in brackets.
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.ends_with(']'));
    let port = if has_port {
        String::new()
    } else {
        format!(":{default_port}")
    };
    let url = format!("{scheme}://{user_info}{host}{port}/{database}");
    let info = url.into_connection_info().ok()?;
    let of = info.redis_settings();
    // Such a user would be ignored.
    let named_only = of.username().is_some() && of.password().is_none();
    (!named_only).then_some(info)
}

#[cfg(test)]
mod tests {
    use redis::ConnectionAddr;

    use super::*;
    use crate::base::error::ErrorKind;

    fn at(info: &ConnectionInfo) -> String {
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            panic!("a TCP address");
        };
        format!("{host}:{port}")
    }

    #[test]
    fn the_users_of_sentinels_and_of_their_master_are_told_apart() {
        let url = sentinel(
            "redis-sentinel://app:s%40sam@one,two:7000,[::1]/3?service=my-master&sentinel_username=watch&sentinel_password=%3Aword",
        )
        .unwrap();
        assert_eq!(url.service, "my-master");
        let hosts: Vec<_> = url.sentinels.iter().map(at).collect();
        assert_eq!(hosts, ["one:26379", "two:7000", "::1:26379"]);
        for sentinel in &url.sentinels {
            assert_eq!(sentinel.redis_settings().username(), Some("watch"));
            assert_eq!(sentinel.redis_settings().password(), Some(":word"));
            assert_eq!(sentinel.redis_settings().db(), 0);
        }
        assert_eq!(url.master.redis_settings().username(), Some("app"));
        assert_eq!(url.master.redis_settings().password(), Some("s@sam"));
        assert_eq!(url.master.redis_settings().db(), 3);
    }

    #[test]
    fn a_sentinel_url_without_what_it_needs_says_what_to_write() {
        for url in [
            "redis-sentinel://:sesame@one",
            "redis-sentinel://:sesame@one?service=",
            "redis-sentinel://:sesame@one?service=a/b",
            "redis-sentinel://:sesame@one/x?service=a",
            "redis-sentinel://:sesame@one,,two?service=a",
            "redis-sentinel://:sesame@?service=a",
            "redis-sentinel://one?service=a&sentinel_username=sesame",
            "redis-sentinel://one?service=a&password=sesame",
            "redis-sentinel://one?service=a&service=sesame",
            "redis-sentinel://one?service=a&Service=sesame",
            "redis-sentinel://sesame@one?service=a",
            "redis-sentinel:one",
        ] {
            let error = sentinel(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
            let shown = format!("{error} {error:?}");
            assert!(shown.contains("redis-sentinel://"), "{shown}");
            assert!(!shown.contains("sesame"), "{shown}");
        }
    }

    #[test]
    fn the_nodes_of_a_cluster_share_one_user() {
        let seeds = cluster("redis-cluster://:s%2Csam@one:7000,two/0").unwrap();
        let hosts: Vec<_> = seeds.iter().map(at).collect();
        assert_eq!(hosts, ["one:7000", "two:6379"]);
        for seed in &seeds {
            assert_eq!(seed.redis_settings().password(), Some("s,sam"));
        }
    }

    #[test]
    fn a_cluster_url_with_more_than_it_takes_says_what_to_write() {
        for url in [
            "redis-cluster://:sesame@one/1",
            "redis-cluster://:sesame@one?service=a",
            "redis-cluster://sesame@one",
            "redis-cluster://:sesame@one:port",
            "redis-cluster://:sesame@",
        ] {
            let error = cluster(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
            let shown = format!("{error} {error:?}");
            assert!(shown.contains("redis-cluster://"), "{shown}");
            assert!(!shown.contains("sesame"), "{shown}");
        }
    }

    #[test]
    fn tls_is_for_all_nodes_or_names_its_feature() {
        match cluster("rediss-cluster://:sesame@one,two") {
            Ok(seeds) => {
                let mut seeds = seeds.iter().map(ConnectionInfo::addr);
                assert!(seeds.all(|addr| matches!(addr, ConnectionAddr::TcpTls { .. })));
            }
            Err(error) => {
                let shown = error.to_string();
                assert!(shown.contains("tls-rustls") && !shown.contains("sesame"));
            }
        }
    }
}
