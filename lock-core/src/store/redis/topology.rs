//! Which servers there are, which of them is asked about a lock, and what becomes of them.

use std::future::pending;
use std::sync::Arc;

use redis::Client;

use super::cluster::{Cluster, slots::Slot};
use super::connection::{Connection, prepared};
use super::keyspace::Names;
use super::probe::Probe;
use super::push::Inbox;
use super::refresh::Lookout;
use super::sentinel::Sentinel;
use super::tls;
use super::url;
use crate::base::error::Error;
use crate::base::token::Address;
use crate::store::Failure;

/// The servers that keep the locks.
pub(super) enum Topology {
    /// One server, the same for good.
    Single(Client),
    /// One server at a time: the master that sentinels know.
    Sentinel(Sentinel),
    /// Nodes that share the keys.
    Cluster(Cluster),
}

/// One of the servers: a number, by which the connections to it are told from those to others. The
/// same address always has the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node(pub(super) u32);

impl Node {
    pub(super) const ONLY: Node = Node(0);
}

/// A topology as a URL names it.
pub(crate) struct Servers(pub(super) Topology);

impl Servers {
    pub(crate) fn single(client: &Client) -> Result<Self, Error> {
        let client = prepared(client.get_connection_info().clone());
        let client = client.map_err(|error| super::send_error::failure(error).error)?;
        Ok(Self(Topology::Single(client)))
    }

    /// The address, in small letters, of what is one server.
    pub(crate) fn single_address(&self) -> Option<String> {
        match &self.0 {
            Topology::Single(client) => Some(
                client
                    .get_connection_info()
                    .addr()
                    .to_string()
                    .to_lowercase(),
            ),
            _ => None,
        }
    }

    pub(crate) fn sentinel(url: &str) -> Result<Self, Error> {
        let sentinel = Sentinel::new(url::sentinel(url)?)?;
        Ok(Self(Topology::Sentinel(sentinel)))
    }

    pub(crate) fn cluster(url: &str) -> Result<Self, Error> {
        let cluster = Cluster::new(url::cluster(url)?)?;
        Ok(Self(Topology::Cluster(cluster)))
    }
}

#[cfg(feature = "tls-rustls")]
impl Servers {
    /// The same servers, spoken to with these certificates.
    pub(crate) fn with_certificates(
        self,
        certificates: &redis::TlsCertificates,
    ) -> Result<Self, Error> {
        let with = |info| tls::with_certificates(info, certificates);
        Ok(Self(match self.0 {
            Topology::Single(client) => {
                let info = with(client.get_connection_info().clone())?;
                let client =
                    prepared(info).map_err(|error| super::send_error::failure(error).error);
                Topology::Single(client?)
            }
            Topology::Sentinel(sentinel) => Topology::Sentinel(sentinel.spoken_to(with)?),
            Topology::Cluster(cluster) => Topology::Cluster(cluster.spoken_to(with)?),
        }))
    }
}

impl Topology {
    /// The server to ask about a lock, by its full name, where that is known.
    pub(super) fn known_node_of(&self, lock: &str) -> Option<Node> {
        match self {
            Topology::Single(_) => Some(Node::ONLY),
            Topology::Sentinel(sentinel) => sentinel.known_master(),
            Topology::Cluster(cluster) => cluster.known_owner(Slot::of(lock)),
        }
    }

    /// The server to ask about a lock, by its full name.
    pub(super) async fn node_of(&self, lock: &str) -> Result<Node, Failure> {
        match self {
            Topology::Single(_) => Ok(Node::ONLY),
            Topology::Sentinel(sentinel) => sentinel.master().await,
            Topology::Cluster(cluster) => cluster.owner(Slot::of(lock)).await,
        }
    }

    /// Until another server than `from` is to be asked about a lock.
    pub(super) async fn departure(&self, lock: &str, from: Node) {
        match self {
            Topology::Single(_) => pending().await,
            Topology::Sentinel(sentinel) => sentinel.departure(from).await,
            Topology::Cluster(cluster) => cluster.departure(Slot::of(lock), from).await,
        }
    }

    /// The server on which a manager listens for its pushes.
    pub(super) async fn home(&self, manager: Address) -> Result<Node, Failure> {
        match self {
            Topology::Single(_) => Ok(Node::ONLY),
            Topology::Sentinel(sentinel) => sentinel.home().await,
            Topology::Cluster(cluster) => cluster.home(manager).await,
        }
    }

    /// Until a manager should listen on another server.
    pub(super) async fn move_out(&self, home: Node) {
        match self {
            Topology::Single(_) => pending().await,
            Topology::Sentinel(sentinel) => sentinel.departure(home).await,
            Topology::Cluster(cluster) => cluster.expulsion(home).await,
        }
    }

    /// Whether any lock is kept there, as far as is known.
    pub(super) fn uses(&self, node: Node) -> bool {
        match self {
            Topology::Single(_) => true,
            Topology::Sentinel(sentinel) => sentinel.uses(node),
            Topology::Cluster(cluster) => cluster.uses(node),
        }
    }

    /// What to say of servers that do not answer.
    pub(super) fn silent(&self) -> &'static str {
        match self {
            // A server that does not speak TLS waits for the end of what it takes for a command.
            Topology::Single(client) if tls::is_spoken(client.get_connection_info()) => {
                "the server did not answer in time; does it speak TLS at this port? If not, write \
                 redis://"
            }
            _ => "the server did not answer in time",
        }
    }

    /// Whether it is the same server for good, so that its clock may be relied on and there is nobody
    /// else to ask.
    pub(super) fn is_one_server(&self) -> bool {
        matches!(self, Topology::Single(_))
    }

    /// Whether a key's server is one of several at a time.
    pub(super) fn is_cluster(&self) -> bool {
        match self {
            Topology::Single(_) => false,
            Topology::Sentinel(_) => false,
            Topology::Cluster(_) => true,
        }
    }

    pub(super) fn cluster(&self) -> Option<&Cluster> {
        match self {
            Topology::Cluster(cluster) => Some(cluster),
            _ => None,
        }
    }

    /// A server is not what it was taken for, or does not answer: looked at soon.
    pub(super) fn doubt(&self) {
        if let Some(lookout) = self.lookout() {
            lookout.ring();
        }
    }

    /// Before a server is connected to. A master that comes back after it was replaced takes itself for
    /// one for a while, so the sentinels that answer are asked first; those that hang are not waited for.
    /// And where a connection does not come about, another server may have its place.
    pub(super) async fn prepare_to_connect(&self) {
        match self {
            Topology::Sentinel(sentinel) => sentinel.lookout().look().await,
            _ => self.doubt(),
        }
    }

    /// Until the servers have been looked at again.
    pub(super) async fn look_again(&self) {
        if let Some(lookout) = self.lookout() {
            lookout.look_again().await;
        }
    }

    fn lookout(&self) -> Option<&Lookout> {
        match self {
            Topology::Single(_) => None,
            Topology::Sentinel(sentinel) => Some(sentinel.lookout()),
            Topology::Cluster(cluster) => Some(cluster.lookout()),
        }
    }

    /// Until waiters may have lost their places, without the connection on which they listen.
    pub(super) async fn change(&self) {
        match self {
            Topology::Cluster(cluster) => cluster.change().await,
            _ => pending().await,
        }
    }

    /// Until a server does not answer on this connection, or is cut off from the others. Where a lock's
    /// commands go by another connection, nothing else would tell.
    pub(super) async fn silence(&self, on: &Connection) {
        match self {
            Topology::Cluster(_) => super::cluster::silence(on).await,
            _ => pending().await,
        }
    }

    /// Looks after the servers, on the keeper's thread, for as long as it runs.
    pub(super) async fn watch(&self) {
        match self {
            Topology::Single(_) => pending().await,
            Topology::Sentinel(sentinel) => sentinel.watch().await,
            Topology::Cluster(cluster) => cluster.watch().await,
        }
    }

    /// Connects to a server, and listens to what it pushes. Sets no timer, so that it works in a runtime without any: the caller
    /// bounds it.
    pub(super) async fn open(
        &self,
        node: Node,
        names: &Names,
        inbox: Option<&Arc<Inbox>>,
    ) -> Result<Connection, Failure> {
        let connection = match self {
            Topology::Single(client) => {
                let connection = Connection::open(client, inbox).await?;
                connection.probe(names, Probe::Server).await?;
                connection
            }
            Topology::Sentinel(sentinel) => sentinel.open(node, names, inbox).await?,
            Topology::Cluster(cluster) => cluster.open(node, names, inbox).await?,
        };
        connection.listen().await?;
        Ok(connection)
    }

    /// The others that keep the locks of this one, or take its place one day. `followers`: where its
    /// replicas are, as it says itself.
    pub(super) fn others(&self, than: Node, followers: &[(String, u16)]) -> Vec<Node> {
        match self {
            Topology::Single(_) => Vec::new(),
            Topology::Sentinel(sentinel) => followers
                .iter()
                .filter_map(|(host, port)| sentinel.nodes().at(host, *port).ok())
                .collect(),
            Topology::Cluster(cluster) => {
                let mut nodes = cluster.live();
                nodes.retain(|node| *node != than);
                nodes
            }
        }
    }

    /// Connects to a server, whatever it is at the moment.
    pub(super) async fn open_whatever_it_is(&self, node: Node) -> Result<Connection, Failure> {
        let client = match self {
            Topology::Single(client) => client.clone(),
            Topology::Sentinel(sentinel) => sentinel.nodes().client(node),
            Topology::Cluster(cluster) => cluster.nodes().client(node),
        };
        Connection::open(&client, None).await
    }

    /// Where a server is, without user and password.
    pub(super) fn address_of(&self, node: Node) -> String {
        match self {
            Topology::Single(_) => self.address(),
            Topology::Sentinel(sentinel) => sentinel.nodes().name(node),
            Topology::Cluster(cluster) => cluster.nodes().name(node),
        }
    }

    /// Of the servers that the URL names, without user and password.
    pub(super) fn address(&self) -> String {
        match self {
            Topology::Single(client) => client.get_connection_info().addr().to_string(),
            Topology::Sentinel(sentinel) => sentinel.addresses(),
            Topology::Cluster(cluster) => cluster.addresses(),
        }
    }
}
