//! Parses a URL into the store that it names.

#[cfg(any(feature = "tls-rustls", feature = "postgres-tls"))]
use crate::base::certificates::TlsCertificates;
use crate::base::error::Error;
#[cfg(feature = "redis")]
use crate::base::url_query;
#[cfg(feature = "postgres")]
use crate::store::PostgresUrl;
#[cfg(feature = "redis")]
use crate::store::Servers;

/// The store that a URL names, not opened yet.
pub(crate) enum StoreUrl {
    Memory {
        name: Option<String>,
    },
    #[cfg(feature = "redis")]
    Redis(Box<Servers>),
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresUrl>),
    Quorum(Vec<StoreUrl>),
}

impl StoreUrl {
    pub(crate) fn of(url: &str) -> Result<Self, Error> {
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(unknown_scheme("a URL without a scheme"));
        };
        if scheme != "memory" {
            no_fragment(url)?;
        }
        match scheme {
            "memory" if rest.is_empty() => Ok(StoreUrl::Memory { name: None }),
            "memory" if !rest.chars().all(names_a_store) => Err(Error::invalid(
                "`memory:` takes no parameters and no path, only a name of letters, digits, `-`, `_`, `.` and `:`; \
                 write `memory:` for a store of its own, or `memory:shop` for one that the process shares",
            )),
            "memory" => Ok(StoreUrl::Memory {
                name: Some(rest.to_owned()),
            }),
            "redis" | "rediss" | "valkey" | "valkeys" | "redis+unix" | "unix"
            | "redis-sentinel" | "rediss-sentinel" | "valkey-sentinel" | "valkeys-sentinel"
            | "redis-cluster" | "rediss-cluster" | "valkey-cluster" | "valkeys-cluster" => {
                Self::redis(scheme, url)
            }
            "postgres" | "postgresql" => Self::postgres(url),
            "redlock" | "redlocks" => Err(Error::invalid(
                "each node of a quorum is a single server, as in redis://host:port",
            )),
            _ => Err(unknown_scheme(&format!(
                "the scheme `{}`",
                scheme.escape_debug()
            ))),
        }
    }

    #[cfg(feature = "redis")]
    fn redis(scheme: &str, url: &str) -> Result<Self, Error> {
        let servers = match scheme.rsplit_once('-') {
            Some((_, "sentinel")) => Servers::sentinel(url),
            Some((_, "cluster")) => Servers::cluster(url),
            _ => Self::single(scheme, url),
        };
        servers.map(Self::redis_on)
    }

    #[cfg(feature = "redis")]
    fn single(scheme: &str, url: &str) -> Result<Servers, Error> {
        check_parameters(scheme, url)?;
        // The parser's message is not passed on, because it may repeat the URL and its password.
        let client = redis::Client::open(url).map_err(|_| {
            // The application may also have enabled TLS by a feature of the redis crate.
            Error::invalid(if matches!(scheme, "rediss" | "valkeys") {
                "the URL cannot be read, or TLS is not built in; write rediss://host:port, \
                 and turn on the feature `tls-rustls` of lock-core"
            } else {
                "the URL cannot be read; write redis://[user:password@]host[:port][/db], \
                 with `@`, `:`, `/` and `%` in the password percent-encoded"
            })
        })?;
        let settings = client.get_connection_info().redis_settings();
        if settings.username().is_some() && settings.password().is_none() {
            return Err(Error::invalid(
                "the URL has a user without a password, and the user would be ignored; write \
                 redis://user:password@host, or unix:///path?user=…&pass=…",
            ));
        }
        Ok(Servers::Single(client.get_connection_info().clone()))
    }

    /// Adds TLS certificates to the servers of the store.
    #[cfg(any(feature = "tls-rustls", feature = "postgres-tls"))]
    pub(crate) fn with_certificates(self, certificates: &TlsCertificates) -> Result<Self, Error> {
        match self {
            StoreUrl::Memory { .. } => Err(Error::invalid(
                "`tls_certificates` are for servers, but the embedded store is not a server",
            )),
            #[cfg(feature = "tls-rustls")]
            StoreUrl::Redis(servers) => servers.with_certificates(certificates).map(Self::redis_on),
            #[cfg(all(feature = "redis", not(feature = "tls-rustls")))]
            StoreUrl::Redis(_) => Err(Error::invalid(
                "TLS to Redis needs the feature `tls-rustls` of lock-core",
            )),
            #[cfg(feature = "postgres-tls")]
            StoreUrl::Postgres(url) => Ok(StoreUrl::Postgres(Box::new(
                url.with_certificates(certificates),
            ))),
            #[cfg(all(feature = "postgres", not(feature = "postgres-tls")))]
            StoreUrl::Postgres(_) => Err(Error::invalid(
                "TLS to PostgreSQL needs the feature `postgres-tls` of lock-core",
            )),
            StoreUrl::Quorum(nodes) => {
                let nodes = nodes.into_iter();
                let nodes = nodes.map(|node| node.with_certificates(certificates));
                nodes.collect::<Result<_, _>>().map(StoreUrl::Quorum)
            }
        }
    }

    /// Returns whether the store, or a node of it, is an embedded store.
    #[cfg(any(feature = "redis", feature = "postgres"))]
    pub(crate) fn has_embedded(&self) -> bool {
        match self {
            StoreUrl::Memory { .. } => true,
            #[cfg(feature = "redis")]
            StoreUrl::Redis(_) => false,
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(_) => false,
            StoreUrl::Quorum(nodes) => nodes.iter().any(Self::has_embedded),
        }
    }

    #[cfg(feature = "redis")]
    pub(crate) fn redis_on(servers: Servers) -> Self {
        StoreUrl::Redis(Box::new(servers))
    }

    #[cfg(feature = "postgres")]
    fn postgres(url: &str) -> Result<Self, Error> {
        PostgresUrl::parse(url).map(|url| StoreUrl::Postgres(Box::new(url)))
    }

    #[cfg(not(feature = "postgres"))]
    fn postgres(_: &str) -> Result<Self, Error> {
        Err(Error::invalid(
            "`postgres:` needs the feature `postgres` of lock-core",
        ))
    }

    #[cfg(not(feature = "redis"))]
    fn redis(scheme: &str, _: &str) -> Result<Self, Error> {
        Err(Error::invalid(format!(
            "`{scheme}:` needs the feature `redis` of lock-core"
        )))
    }
}

/// Returns whether the name of an embedded store may contain the character.
///
/// A name contains nothing that other schemes give a meaning, because it would silently name another store.
fn names_a_store(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '-' | '_' | '.' | ':')
}

/// Refuses unknown parameters, because the redis crate's parser ignores them.
#[cfg(feature = "redis")]
fn check_parameters(scheme: &str, url: &str) -> Result<(), Error> {
    let (_, query) = url.split_once('?').unwrap_or((url, ""));
    let query = if scheme.ends_with("unix") {
        url_query::known(
            query,
            &["db", "user", "pass", "protocol"],
            "the URL of a socket takes `db`, `user`, `pass` and `replica_acks`, as in \
             unix:///path?db=1; a namespace is set by `LockManager::builder`",
        )?
    } else {
        url_query::known(
            query,
            &["protocol"],
            "a redis:// URL takes `replica_acks`; the database is written redis://host:port/1, and a \
             namespace is set by `LockManager::builder`",
        )?
    };
    let supported =
        |(name, value): &(&str, &str)| *name != "protocol" || matches!(*value, "3" | "resp3");
    if query.iter().all(supported) {
        Ok(())
    } else {
        Err(Error::invalid(
            "`protocol` of the URL can only be resp3, which is the default; leave it out, as in redis://host:port",
        ))
    }
}

/// Refuses a fragment, because with `#insecure` the redis crate accepts any certificate.
fn no_fragment(url: &str) -> Result<(), Error> {
    if url.contains('#') {
        return Err(Error::invalid(
            "a URL takes no `#`; in a password write `%23`. `#insecure` would accept any certificate; trust \
             the authority that signed the server's certificate by `ManagerBuilder::tls_certificates`, or by \
             the environment variable SSL_CERT_FILE",
        ));
    }
    Ok(())
}

fn unknown_scheme(what: &str) -> Error {
    Error::invalid(format!(
        "{what} names no store; write `redis://host:port`, `rediss://…`, `unix:///path`, \
         `redis-sentinel://host:port?service=name`, `redis-cluster://host:port`, `postgres://host/database` or `memory:`"
    ))
}

#[cfg(test)]
mod tests {
    use crate::{ErrorKind, LockManager};

    #[cfg(feature = "redis")]
    #[test]
    fn a_wrong_url_says_what_to_write_and_never_repeats_its_password() {
        for url in [
            "",
            "localhost:6379",
            "http://user:sesame@localhost",
            "redis//user:sesame@localhost",
            "redis://user:sesame@local host:port",
            "redis://user:sesame@localhost:99999",
            "redis://user:sesame@localhost/notadb",
            "redlock://:sesame@a,:sesame@A:6379,c",
            "redlock://:sesame@a/1,:sesame@a/2,c",
            "redlock:sesame",
            "redlock://:sesame@a,b,c?max_ttl=sesame",
            "redlock://:sesame@a,b:port,c",
            "memory:/shop",
        ] {
            let error = LockManager::connect_lazy(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("sesame"), "{shown}");
            assert!(
                ["redis://", "memory:", "redlock://", "listed twice", "10s"]
                    .iter()
                    .any(|words| shown.contains(words)),
                "{shown}"
            );
        }
    }

    #[cfg(feature = "redis")]
    #[test]
    fn no_part_of_a_url_is_ignored() {
        for url in [
            "redis://localhost?replica_ack=2",
            "redis://localhost?replicas=2",
            "redis://localhost?namespace=sesame",
            "redis://localhost?db=3",
            "redis://localhost?user=sesame",
            "redis://localhost/0?Replica_Acks=2",
            "redis://localhost?%72eplica_acks=2",
            "redis://localhost?replica_acks",
            "redis://localhost?replica_acks=1&replica_acks=1",
            "redis://localhost?protocol=resp3&protocol=resp3",
            "redis://localhost?protocol=resp2",
            "redis://localhost?sesame",
            "redis://localhost/0#sesame",
            "redis://localhost?protocol=resp3#sesame",
            "redis://sesame@localhost",
            "redis://:a#sesame@localhost",
            "unix:///redis.sock?database=1",
            "unix:///redis.sock?db=1&db=2",
            "unix:///redis.sock?password=sesame",
            "unix:///redis.sock?user=sesame",
            "unix:///redis#1.sock",
            "redlock://a,b,c?max_ttl=1m&max_ttl=2m",
            "redlock://a,b,c#sesame",
            "redlock://sesame@a,b,c",
        ] {
            let error = LockManager::connect_lazy(url).map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("sesame"), "{shown}");
        }
        for url in [
            "redis://localhost?protocol=resp3",
            "redis://localhost/3?replica_acks=0&protocol=3",
            "redis://user:sesame@localhost",
            "redis://:sesame@localhost",
            "valkey://localhost",
        ] {
            assert!(LockManager::connect_lazy(url).is_ok(), "{url}");
        }
        #[cfg(unix)]
        for url in [
            "unix:///redis.sock?db=1&user=a&pass=sesame",
            "redis+unix:///redis.sock?pass=sesame&protocol=resp3",
        ] {
            assert!(LockManager::connect_lazy(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn an_embedded_store_takes_a_name_and_nothing_else() {
        for url in [
            "memory:?x=1",
            "memory:shop?x=1",
            "memory:?namespace=sesame",
            "memory:shop?",
            "memory:#sesame",
            "memory:/shop",
            "memory://shop",
            "memory:user@sesame",
            "memory: shop",
            "memory:shop\n",
            "memory:a,b",
            "memory:a%20b",
        ] {
            let error = LockManager::connect_lazy(url).map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
            let shown = error.to_string();
            assert!(shown.contains("memory:shop"), "{shown}");
            assert!(!shown.contains("sesame"), "{shown}");
        }
        for url in [
            "memory:",
            "memory:shop",
            "memory:shop_1.test-2",
            "memory:tests::büro",
            "memory:?replica_acks=0",
        ] {
            assert!(LockManager::connect_lazy(url).is_ok(), "{url}");
        }
    }

    #[cfg(not(feature = "redis"))]
    #[test]
    fn every_kind_of_server_names_the_feature_that_is_missing() {
        for url in [
            "redis://:sesame@a",
            "redis-sentinel://:sesame@a?service=b",
            "redis-cluster://:sesame@a",
        ] {
            let error = LockManager::connect_lazy(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
            let shown = error.to_string();
            assert!(shown.contains("feature `redis`"), "{shown}");
            assert!(!shown.contains("sesame"), "{shown}");
        }
    }

    #[cfg(not(feature = "tls-rustls"))]
    #[test]
    fn tls_without_its_feature_names_the_feature() {
        let error = LockManager::connect_lazy("rediss://localhost").unwrap_err();
        assert!(
            error.to_string().contains("tls-rustls")
                || error.to_string().contains("feature `redis`"),
            "{error}"
        );
    }
}
