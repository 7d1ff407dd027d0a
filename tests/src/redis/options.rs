//! Describes how to start a server.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::clock::ServerClock;
use super::tls::Tls;
use crate::{Port, RedisServer, folder};

/// Options for the start of a server; [`RedisServer::options`] makes them.
#[derive(Debug, Clone, Default)]
pub struct RedisOptions {
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) password: Option<String>,
    /// The first content of the server's own file, if it has one.
    pub(super) file: Option<String>,
    pub(super) port: PortKind,
    /// The ports at which others find the server, if these are not its own.
    ///
    /// The first is for clients and the nodes of its cluster, the second for the bus.
    pub(super) announced: Option<(u16, u16)>,
    pub(super) tls: Option<Tls>,
    /// The options keep the clock for as long as the server may be started.
    pub(super) clock: Option<ServerClock>,
}

/// The ports that a server listens on beside its own.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum PortKind {
    #[default]
    Alone,
    /// The port of the cluster's bus, ten thousand above.
    WithBus,
}

impl RedisOptions {
    /// Keeps every write over `kill -9` (an append-only file, synced at each write).
    #[must_use]
    pub fn append_only(self) -> Self {
        self.config("appendonly", "yes")
            .config("appendfsync", "always")
    }

    /// Requires a password, and sends the same password to any master that the server follows.
    ///
    /// The password has letters and digits only, because it becomes part of a URL.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.config("requirepass", password)
            .config("masterauth", password)
    }

    /// Refuses writes beyond this much memory, for example `"1mb"`.
    #[must_use]
    pub fn max_memory(self, size: &str) -> Self {
        self.config("maxmemory", size)
            .config("maxmemory-policy", "noeviction")
    }

    /// Speaks TLS on a port of its own, also with other servers. The harness asks on the plain port.
    #[must_use]
    pub fn tls(mut self, tls: &Tls) -> Self {
        self.tls = Some(tls.clone());
        self
    }

    /// Follows `master`, which is expected to have the same password.
    #[must_use]
    pub fn replica_of(mut self, master: &RedisServer) -> Self {
        let port = master.port_of_others().to_string();
        self.arguments
            .extend(["--replicaof", "127.0.0.1", &port].map(str::to_owned));
        self
    }

    /// Sets any directive of redis.conf.
    #[must_use]
    pub fn config(mut self, directive: &str, value: &str) -> Self {
        self.arguments
            .extend([format!("--{directive}"), value.to_owned()]);
        self
    }

    /// Sets a variable in the server's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Panics
    ///
    /// When there is no redis-server (say [`needs!(redis)`](crate::needs) first), or the server does
    /// not answer.
    #[track_caller]
    pub fn start(self) -> RedisServer {
        let port = || match self.port {
            PortKind::Alone => Port::free(),
            PortKind::WithBus => Port::free_with_bus(),
        };
        let server = RedisServer {
            port: port(),
            tls_port: self.tls.as_ref().map(|_| port()),
            options: self,
            folder: folder::in_memory(),
            process: Mutex::new(None),
            frozen: AtomicBool::new(false),
        };
        server.start_again();
        server
    }
}
