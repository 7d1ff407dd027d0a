//! A `postgres://` URL.
//!
//! No message repeats a part of the URL, because it may hold a password.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};

use super::Tls;
use crate::base::error::Error;
use crate::base::url_query;
#[cfg(feature = "postgres-tls")]
use crate::base::{certificates::TlsCertificates, client_tls};

/// A peer that acknowledges nothing for so long is given up.
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);
const TAKES: &str = "a postgres:// URL takes `sslmode`, `target_session_attrs=read-write`, `application_name`, `host`, `listen` and \
    `prepare=off`; a namespace is set by `LockManager::builder`";

/// The servers of a URL, and how to speak with them.
#[derive(Clone)]
pub(crate) struct PostgresUrl {
    pub(super) config: Config,
    /// Another way to the same database, for the connection that listens.
    pub(super) listen: Option<Config>,
    /// Whether statements are prepared.
    pub(super) prepares: bool,
    #[cfg(feature = "postgres-tls")]
    pub(super) certificates: TlsCertificates,
}

impl PostgresUrl {
    /// Parses a URL.
    ///
    /// # Errors
    ///
    /// `Invalid` for a URL that cannot be read, and for parameters that are unknown or mean something else here.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let names = [
            "sslmode",
            "target_session_attrs",
            "application_name",
            "host",
            "listen",
            "prepare",
        ];
        let mut url = format!("{address}?");
        let (mut listen, mut prepares) = (None, true);
        for (name, value) in url_query::known(query, &names, TAKES)? {
            match (name, value) {
                ("listen", other) => listen = Some(listener(other)?),
                ("prepare", "off") => prepares = false,
                ("prepare", "on") => {}
                ("prepare", _) => {
                    return Err(Error::invalid("`prepare` of the URL is `on` or `off`"));
                }
                ("target_session_attrs", "read-write" | "primary") => {}
                ("target_session_attrs", _) => {
                    return Err(Error::invalid(
                        "`target_session_attrs` of the URL can only be `read-write`, which is the default, because a \
                         standby takes no locks",
                    ));
                }
                // TLS always checks the certificate and its name here.
                ("sslmode", "verify-ca" | "verify-full") => url += "sslmode=require&",
                (name, value) => url += &format!("{name}={value}&"),
            }
        }
        Ok(Self {
            config: config(&url)?,
            listen,
            prepares,
            #[cfg(feature = "postgres-tls")]
            certificates: TlsCertificates::new(),
        })
    }

    /// Sets up TLS for all connections.
    ///
    /// # Errors
    ///
    /// `Invalid` for a certificate or a key that cannot be read.
    pub(crate) fn tls(&self) -> Result<Tls, Error> {
        #[cfg(feature = "postgres-tls")]
        return Ok(Tls::new(client_tls::config(&self.certificates)?));
        #[cfg(not(feature = "postgres-tls"))]
        Ok(tokio_postgres::NoTls)
    }

    /// Adds TLS certificates. The server must then speak TLS.
    #[cfg(feature = "postgres-tls")]
    pub(crate) fn with_certificates(mut self, certificates: &TlsCertificates) -> Self {
        self.config.ssl_mode(SslMode::Require);
        self.certificates = certificates.clone();
        self
    }

    /// Returns whether a pooler may give each transaction another session.
    pub(super) fn is_pooled(&self) -> bool {
        self.listen.is_some() || !self.prepares
    }

    /// Returns whether all ways lead through a pooler, which passes no messages on.
    pub(super) fn is_deaf(&self) -> bool {
        self.listen.is_none() && self.is_pooled()
    }

    /// The way of the connection that listens.
    pub(super) fn listening(&self) -> &Config {
        self.listen.as_ref().unwrap_or(&self.config)
    }
}

/// Reads the URL of the listener. It may have parameters too, so its `&` are written `%26`.
fn listener(encoded: &str) -> Result<Config, Error> {
    let url = percent_decode_str(encoded).decode_utf8_lossy();
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(Error::invalid(
            "`listen` of the URL is another postgres:// URL of the same database, which leads past the pooler; in it write \
             `&` as %26",
        ));
    }
    config(&url)
}

fn config(url: &str) -> Result<Config, Error> {
    // The parser's message is not passed on, because it may repeat the URL and its password.
    let mut config: Config = url.parse().map_err(|_| {
        Error::invalid(
            "the URL cannot be read; write postgres://[user[:password]@]host[:port][,host…]/database, with `@`, `:`, `/`, \
             `?` and `%` in the password percent-encoded; `sslmode` is disable, prefer, require or verify-full",
        )
    })?;
    if config.get_hosts().is_empty() {
        return Err(Error::invalid(
            "the URL names no host; write postgres://user@host/database, or ?host=/run/postgresql for a socket",
        ));
    }
    if cfg!(not(feature = "postgres-tls")) {
        if config.get_ssl_mode() == SslMode::Require {
            return Err(Error::invalid(
                "`sslmode=require` of the URL needs the feature `postgres-tls` of lock-core",
            ));
        }
        config.ssl_mode(SslMode::Disable);
    }
    if config.get_application_name().is_none() {
        config.application_name("lockkit");
    }
    config
        .target_session_attrs(TargetSessionAttrs::ReadWrite)
        .keepalives_idle(UNACKNOWLEDGED)
        .keepalives_interval(Duration::from_secs(2))
        .keepalives_retries(3)
        .tcp_user_timeout(UNACKNOWLEDGED)
        .connect_timeout(Duration::from_secs(3));
    Ok(config)
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
