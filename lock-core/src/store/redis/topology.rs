//! Which servers there are, and how a connection to one of them is made.

use redis::{Client, PushInfo, RedisError};
use tokio::sync::mpsc;

use super::connection::{Connection, prepared};
use super::names::Names;
use crate::store::Failure;

/// The servers that keep the locks.
pub(super) enum Topology {
    /// One server, the same for good.
    Single(Client),
}

/// One of the servers: a number, by which the connections to it are told from those to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node(u32);

impl Node {
    const ONLY: Node = Node(0);
}

impl Topology {
    pub(super) fn single(client: &Client) -> Result<Self, RedisError> {
        prepared(client).map(Topology::Single)
    }

    /// The server to ask about a lock.
    pub(super) fn node_of(&self, _lock: &str) -> Node {
        match self {
            Topology::Single(_) => Node::ONLY,
        }
    }

    /// The server on which a manager listens for its pushes.
    pub(super) fn home(&self) -> Node {
        match self {
            Topology::Single(_) => Node::ONLY,
        }
    }

    /// Connects to a server. Sets no timer, so that it works in a runtime without any: the caller
    /// bounds it.
    pub(super) async fn open(
        &self,
        node: Node,
        names: &Names,
        pushes: Option<mpsc::UnboundedSender<PushInfo>>,
    ) -> Result<Connection, Failure> {
        Connection::open(self.client(node), names.mark(), pushes).await
    }

    /// Without user and password.
    pub(super) fn address(&self) -> String {
        self.client(Node::ONLY)
            .get_connection_info()
            .addr()
            .to_string()
    }

    fn client(&self, _node: Node) -> &Client {
        match self {
            Topology::Single(client) => client,
        }
    }
}
