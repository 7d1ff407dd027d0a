//! The servers that keep the locks, and which of them has a lock.
//!
//! The keeper's thread looks at the servers when there is trouble with one, and at sentinels every half second.
//! The newest configuration is believed, if the server that it names is a master by `ROLE`. When another server
//! takes the place of one, connections to the old one are left, the keeper listens on the new one, and every
//! waiter asks again. An operation that meets a server which cannot serve (`READONLY`, `LOADING`,
//! `CLUSTERDOWN`, a broken connection) waits for the next look and tries again, for half its timeout. It keeps
//! its token, so no lock is granted twice. A waiter that is handed a key asks for it, because the push may come
//! from another server than the clock reading of its refusal.

mod cluster;
pub(in crate::store::redis) mod connections;
pub(in crate::store::redis) mod keeper_connection;
mod nodes;
mod poll;
mod refresh;
mod sentinel;
mod url;

use std::future::pending;
use std::sync::Arc;

use redis::ConnectionInfo;

use self::cluster::Cluster;
pub(in crate::store::redis) use self::nodes::ServerId;
use self::refresh::Refresh;
use self::sentinel::Sentinel;
use self::url::SentinelUrl;
#[cfg(feature = "tls-rustls")]
use crate::base::certificates::TlsCertificates;
use crate::base::error::Error;
use crate::base::token::Address;
use crate::store::Failure;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::keyspace::Keyspace;
use crate::store::redis::wire::login::{self, Login};
use crate::store::redis::wire::probe::Probe;
use crate::store::redis::wire::push::PushReceiver;
use crate::store::redis::wire::server::Server;
use crate::store::redis::wire::slots::HashSlot;
use crate::store::redis::wire::tls;

/// The servers that keep the locks.
pub(in crate::store::redis) enum Topology {
    /// One server, which is never replaced.
    Single(Server),
    /// One server at a time: the master that sentinels name.
    Sentinel(Sentinel),
    /// Servers that share the keys.
    Cluster(Cluster),
}

/// A topology as a URL names it.
pub(crate) enum Servers {
    Single(ConnectionInfo),
    Sentinel(SentinelUrl),
    /// Some of the nodes.
    Cluster(Vec<ConnectionInfo>),
}

impl Servers {
    /// The address of a single server, in small letters.
    pub(crate) fn single_address(&self) -> Option<String> {
        match self {
            Servers::Single(info) => Some(info.addr().to_string().to_lowercase()),
            _ => None,
        }
    }

    pub(crate) fn sentinel(url: &str) -> Result<Self, Error> {
        url::sentinel(url).map(Servers::Sentinel)
    }

    pub(crate) fn cluster(url: &str) -> Result<Self, Error> {
        url::cluster(url).map(Servers::Cluster)
    }

    /// The same servers with these certificates.
    #[cfg(feature = "tls-rustls")]
    pub(crate) fn with_certificates(self, certificates: &TlsCertificates) -> Result<Self, Error> {
        let with = |info| tls::with_certificates(info, certificates);
        let with_all = |infos: Vec<_>| infos.into_iter().map(with).collect::<Result<_, _>>();
        Ok(match self {
            Servers::Single(info) => Servers::Single(with(info)?),
            Servers::Sentinel(url) => Servers::Sentinel(SentinelUrl {
                sentinels: with_all(url.sentinels)?,
                master: with(url.master)?,
                ..url
            }),
            Servers::Cluster(seeds) => Servers::Cluster(with_all(seeds)?),
        })
    }
}

impl Topology {
    /// `login`: replaces the user and the password of the servers that keep the locks. Sentinels have their own.
    pub(in crate::store::redis) fn of(
        servers: Servers,
        login: Option<Arc<Login>>,
    ) -> Result<Self, Error> {
        Ok(match servers {
            Servers::Single(info) => Topology::Single(Server::new(info, login)?),
            Servers::Sentinel(url) => Topology::Sentinel(Sentinel::new(url, login)?),
            Servers::Cluster(seeds) => Topology::Cluster(Cluster::new(&seeds, login)?),
        })
    }

    /// The server that has a lock, by the lock's full name, if it is known.
    pub(in crate::store::redis) fn known_node_of(&self, lock: &str) -> Option<ServerId> {
        match self {
            Topology::Single(_) => Some(ServerId::ONLY),
            Topology::Sentinel(sentinel) => sentinel.known_master(),
            Topology::Cluster(cluster) => cluster.known_owner(HashSlot::of(lock)),
        }
    }

    /// The server that has a lock, by the lock's full name.
    pub(in crate::store::redis) async fn node_of(&self, lock: &str) -> Result<ServerId, Failure> {
        match self {
            Topology::Single(_) => Ok(ServerId::ONLY),
            Topology::Sentinel(sentinel) => sentinel.master().await,
            Topology::Cluster(cluster) => cluster.owner(HashSlot::of(lock)).await,
        }
    }

    /// Waits until another server than `from` has the lock.
    pub(in crate::store::redis) async fn departure(&self, lock: &str, from: ServerId) {
        match self {
            Topology::Single(_) => pending().await,
            Topology::Sentinel(sentinel) => sentinel.departure(from).await,
            Topology::Cluster(cluster) => cluster.departure(HashSlot::of(lock), from).await,
        }
    }

    /// The server on which a manager listens for its pushes.
    pub(in crate::store::redis) async fn home(
        &self,
        manager: Address,
    ) -> Result<ServerId, Failure> {
        match self {
            Topology::Single(_) => Ok(ServerId::ONLY),
            Topology::Sentinel(sentinel) => sentinel.home().await,
            Topology::Cluster(cluster) => cluster.home(manager).await,
        }
    }

    /// Waits until the manager should listen on another server.
    pub(in crate::store::redis) async fn move_out(&self, home: ServerId) {
        match self {
            Topology::Single(_) => pending().await,
            Topology::Sentinel(sentinel) => sentinel.departure(home).await,
            Topology::Cluster(cluster) => cluster.expulsion(home).await,
        }
    }

    /// Returns whether the server keeps any lock, as far as is known.
    pub(in crate::store::redis) fn uses(&self, node: ServerId) -> bool {
        match self {
            Topology::Single(_) => true,
            Topology::Sentinel(sentinel) => sentinel.uses(node),
            Topology::Cluster(cluster) => cluster.uses(node),
        }
    }

    /// The message about servers that do not answer.
    pub(in crate::store::redis) fn silent(&self) -> &'static str {
        match self {
            _ if self.login().is_some_and(Login::is_asking) => login::SILENT,
            // A server without TLS waits for the end of the bytes that it takes for a command.
            Topology::Single(server) if tls::is_spoken(server.info()) => {
                "the server did not answer in time; does it speak TLS at this port? If not, write \
                 redis://"
            }
            _ => "the server did not answer in time",
        }
    }

    /// Returns whether the server is never replaced, so that its clock counts and there is no other server to ask.
    pub(in crate::store::redis) fn is_one_server(&self) -> bool {
        matches!(self, Topology::Single(_))
    }

    /// The kind of server that each of them must be.
    pub(in crate::store::redis) fn probe(&self) -> Probe {
        match self {
            Topology::Single(_) => Probe::Server,
            Topology::Sentinel(_) => Probe::Master,
            Topology::Cluster(_) => Probe::Node,
        }
    }

    /// Returns whether several servers share the keys.
    pub(in crate::store::redis) fn is_cluster(&self) -> bool {
        matches!(self, Topology::Cluster(_))
    }

    pub(in crate::store::redis) fn cluster(&self) -> Option<&Cluster> {
        match self {
            Topology::Cluster(cluster) => Some(cluster),
            _ => None,
        }
    }

    /// Asks for a look soon, because a server is not what it was taken for, or does not answer.
    pub(in crate::store::redis) fn doubt(&self) {
        if let Some(refresh) = self.refresh() {
            refresh.ring();
        }
    }

    /// Runs before a connection to a server is made.
    ///
    /// A master that was replaced and comes back takes itself for a master for a while. So the sentinels that
    /// answer are asked first, and those that hang are not waited for. Where a connection cannot be made,
    /// another server may have its place.
    pub(in crate::store::redis) async fn prepare_to_connect(&self) {
        match self {
            Topology::Sentinel(sentinel) => sentinel.refresh.look().await,
            _ => self.doubt(),
        }
    }

    /// Waits until the servers have been looked at again.
    pub(in crate::store::redis) async fn look_again(&self) {
        if let Some(refresh) = self.refresh() {
            refresh.look_again().await;
        }
    }

    fn refresh(&self) -> Option<&Refresh> {
        match self {
            Topology::Single(_) => None,
            Topology::Sentinel(sentinel) => Some(&sentinel.refresh),
            Topology::Cluster(cluster) => Some(&cluster.refresh),
        }
    }

    /// Waits until a server does not answer on this connection, or is cut off from the others. Where a lock's
    /// commands go by another connection, nothing else would show that. `changed` is called when waiters may have
    /// lost their entries although the connection lives.
    pub(in crate::store::redis) async fn silence(&self, on: &Connection, changed: impl Fn()) {
        let Topology::Cluster(cluster) = self else {
            return pending().await;
        };
        tokio::select! {
            biased;
            () = cluster::silence(on) => {}
            () = cluster.changes(changed) => {}
        }
    }

    /// Looks after the servers for as long as the keeper runs.
    pub(in crate::store::redis) async fn watch(&self) {
        match self {
            Topology::Single(_) => pending().await,
            Topology::Sentinel(sentinel) => sentinel.watch().await,
            Topology::Cluster(cluster) => cluster.watch().await,
        }
    }

    /// Connects to a server and listens to its pushes. It sets no timer, so that it works in a runtime without
    /// any. The caller bounds it.
    pub(in crate::store::redis) async fn open(
        &self,
        node: ServerId,
        names: &Keyspace,
        receiver: Option<&Arc<PushReceiver>>,
    ) -> Result<Connection, Failure> {
        let (server, batches) = (self.server(node), !self.is_cluster());
        let connection = Connection::open(&server, receiver, batches).await?;
        connection.probe(names, self.probe()).await?;
        connection.listen().await?;
        Ok(connection)
    }

    /// The other servers that keep these locks, or may take the place of this one. `followers`: the addresses
    /// of its replicas, as it reports them.
    pub(in crate::store::redis) fn others(
        &self,
        than: ServerId,
        followers: &[(String, u16)],
    ) -> Vec<ServerId> {
        match self {
            Topology::Single(_) => Vec::new(),
            Topology::Sentinel(sentinel) => followers
                .iter()
                .filter_map(|(host, port)| sentinel.nodes.at(host, *port).ok())
                .collect(),
            Topology::Cluster(cluster) => {
                let mut nodes = cluster.live();
                nodes.retain(|node| *node != than);
                nodes
            }
        }
    }

    /// Connects to a server, whatever its role is at the moment.
    pub(in crate::store::redis) async fn open_whatever_it_is(
        &self,
        node: ServerId,
    ) -> Result<Connection, Failure> {
        Connection::open(&self.server(node), None, false).await
    }

    fn server(&self, node: ServerId) -> Server {
        match self {
            Topology::Single(server) => server.clone(),
            Topology::Sentinel(sentinel) => sentinel.nodes.server(node),
            Topology::Cluster(cluster) => cluster.nodes.server(node),
        }
    }

    fn login(&self) -> Option<&Login> {
        match self {
            Topology::Single(server) => server.login(),
            Topology::Sentinel(sentinel) => sentinel.nodes.login(),
            Topology::Cluster(cluster) => cluster.nodes.login(),
        }
    }

    /// Asks a provider for credentials for as long as the keeper runs.
    pub(in crate::store::redis) async fn keep_credentials(&self) {
        match self.login() {
            Some(login) => login.keep().await,
            None => pending().await,
        }
    }

    /// The address of a server, without user and password.
    pub(in crate::store::redis) fn address_of(&self, node: ServerId) -> String {
        self.server(node).address()
    }

    /// The addresses in the URL, without user and password.
    pub(in crate::store::redis) fn address(&self) -> String {
        match self {
            Topology::Single(server) => server.address(),
            Topology::Sentinel(sentinel) => sentinel.addresses(),
            Topology::Cluster(cluster) => cluster.addresses(),
        }
    }
}
