//! How a server is to be started.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::clock::ServerClock;
use super::tls::Tls;
use crate::{Port, RedisServer, folder};

/// How to start a server; [`RedisServer::options`] makes one.
#[derive(Debug, Clone, Default)]
pub struct RedisOptions {
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) password: Option<String>,
    /// What stands in the server's own file at first, if it is to have one.
    pub(super) file: Option<String>,
    pub(super) port: PortKind,
    /// Where the others of a cluster and its clients find it, if not where it listens: its port, and
    /// that of the bus.
    pub(super) announced: Option<(u16, u16)>,
    pub(super) tls: Option<Tls>,
    /// Kept for as long as the server may be started.
    pub(super) clock: Option<ServerClock>,
}

/// Which ports beside its own a server listens on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum PortKind {
    #[default]
    Alone,
    /// That of the cluster's bus, ten thousand above.
    WithBus,
}

impl RedisOptions {
    /// Keeps every write over `kill -9` (an append-only file, synced at each write).
    #[must_use]
    pub fn append_only(self) -> Self {
        self.config("appendonly", "yes")
            .config("appendfsync", "always")
    }

    /// Asks for a password (letters and digits: it becomes part of a URL), and gives it to any master
    /// that it follows.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.config("requirepass", password)
            .config("masterauth", password)
    }

    /// Refuses writes beyond that much memory, as `"1mb"`.
    #[must_use]
    pub fn max_memory(self, size: &str) -> Self {
        self.config("maxmemory", size)
            .config("maxmemory-policy", "noeviction")
    }

    /// Speaks TLS on a port of its own, with other servers too; the harness asks on the plain one.
    #[must_use]
    pub fn tls(mut self, tls: &Tls) -> Self {
        self.tls = Some(tls.clone());
        self
    }

    /// Follows `master`, whose password it takes to be its own.
    #[must_use]
    pub fn replica_of(mut self, master: &RedisServer) -> Self {
        let port = master.port_of_others().to_string();
        self.arguments
            .extend(["--replicaof", "127.0.0.1", &port].map(str::to_owned));
        self
    }

    /// Any directive of redis.conf.
    #[must_use]
    pub fn config(mut self, directive: &str, value: &str) -> Self {
        self.arguments
            .extend([format!("--{directive}"), value.to_owned()]);
        self
    }

    /// A variable in the server's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Panics
    ///
    /// When there is no redis-server (say [`needs!(redis)`](crate::needs) first) or it does not
    /// answer.
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
            folder: folder::temporary(),
            process: Mutex::new(None),
            frozen: AtomicBool::new(false),
        };
        server.start_again();
        server
    }
}
