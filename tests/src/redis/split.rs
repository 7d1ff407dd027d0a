//! Runs a cluster that a test can part: the connections between the parts pass through proxies.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::cluster::bus_of;
use crate::fake::first_request;
use crate::junction::Junction;
use crate::{Port, Proxy, RedisCluster, RedisOptions, RedisServer};

/// A cluster whose first master can be cut off from the other nodes, and from clients.
///
/// The cluster has three masters and a replica for each.
///
/// The nodes and their clients know each other by ports on which a junction listens. The junction
/// tells from the first bytes of a connection from which part it comes. A node names itself on the
/// bus, and a client by its user.
#[derive(Debug)]
pub struct SplitCluster {
    cluster: RedisCluster,
    /// The proxies from the nodes to the first master, from it to them, and from its clients to them.
    between_parts: Vec<Proxy>,
    /// The proxy from the clients of the others to the first master.
    from_clients: Proxy,
    _junctions: Vec<Junction>,
}

/// The user whose connections come from the part of the first master.
const INSIDE: &str = "inside";

const NODES: usize = 6;

impl SplitCluster {
    /// Starts a cluster whose nodes take a node for dead that does not answer for `timeout`.
    ///
    /// A node that takes the cluster for dead still answers reads.
    ///
    /// # Panics
    ///
    /// As [`RedisCluster::start`].
    #[track_caller]
    pub fn start(timeout: Duration) -> SplitCluster {
        let doors: Vec<_> = (0..NODES).map(|_| (Port::free(), Port::free())).collect();
        let first = doors[0].0.number();
        let options = doors.iter().map(|(port, bus)| RedisOptions {
            announced: Some((port.number(), bus.number())),
            ..RedisServer::options().config("cluster-allow-reads-when-down", "yes")
        });
        // The addresses behind the junctions are known once the servers have ports.
        let nodes = RedisCluster::nodes_of(options.collect(), timeout);

        let from_clients = Proxy::to(nodes[0].address());
        let mut between_parts = Vec::new();
        let mut junctions = Vec::new();
        for ((port, bus), node) in doors.into_iter().zip(&nodes) {
            let (of_node, of_bus) = (Proxy::to(node.address()), Proxy::to(bus_address(node)));
            let is_first = port.number() == first;
            let ways = Ways {
                open: node.address(),
                between: of_node.address(),
                from_clients: from_clients.address(),
            };
            junctions.push(Junction::at(port, move |said| {
                let request = first_request(said)?;
                Some(ways.of(&request, is_first))
            }));
            let ways = (of_bus.address(), bus_address(node));
            junctions.push(Junction::at(bus, move |said| {
                let crosses = is_first || sender(said)? == first;
                Some(if crosses { ways.0 } else { ways.1 })
            }));
            between_parts.extend([of_node, of_bus]);
        }
        for node in &nodes {
            let rights = ["on", "nopass", "~*", "&*", "+@all"];
            node.cli(&[&["ACL", "SETUSER", INSIDE], &rights[..]].concat());
        }
        SplitCluster {
            cluster: RedisCluster::joined(nodes),
            between_parts,
            from_clients,
            _junctions: junctions,
        }
    }

    /// Returns the cluster with all its nodes.
    pub fn cluster(&self) -> &RedisCluster {
        &self.cluster
    }

    /// Returns the master that can be cut off.
    pub fn first(&self) -> &RedisServer {
        &self.cluster.nodes()[0]
    }

    /// Returns the replica that takes its place.
    pub fn replica(&self) -> &RedisServer {
        &self.cluster.nodes()[NODES / 2]
    }

    /// Returns `redis-cluster://…` for a client on the side of the other nodes.
    pub fn url(&self) -> String {
        self.cluster.url()
    }

    /// Returns `redis-cluster://…` for a client on the side of the first master.
    pub fn inside_url(&self) -> String {
        format!("redis-cluster://{INSIDE}:{INSIDE}@{}", self.cluster.hosts())
    }

    /// Parts the first master and its clients from all others, without a FIN or RST.
    pub fn part(&self) {
        self.from_clients.black_hole();
        for way in &self.between_parts {
            way.black_hole();
        }
    }

    /// Cuts the clients of the others off from the first master.
    ///
    /// The nodes still see each other.
    pub fn part_clients(&self) {
        self.from_clients.black_hole();
    }

    /// Ends the partition. Held bytes arrive late.
    pub fn heal(&self) {
        self.from_clients.pass();
        for way in &self.between_parts {
            way.pass();
        }
    }
}

/// The addresses to which the connections to a node's own port lead.
struct Ways {
    open: SocketAddr,
    between: SocketAddr,
    from_clients: SocketAddr,
}

impl Ways {
    fn of(&self, request: &[String], to_first: bool) -> SocketAddr {
        let inside = request.iter().any(|word| word == INSIDE);
        // A replica begins with `PING`; a client begins with its user.
        let node = request.len() == 1 && request[0] == "PING";
        match (to_first, inside, node) {
            (true, true, _) | (false, false, _) => self.open,
            (true, false, true) | (false, true, _) => self.between,
            (true, false, false) => self.from_clients,
        }
    }
}

fn bus_address(node: &RedisServer) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, bus_of(node.port())))
}

/// Returns the announced port of the node that begins to talk on the bus.
fn sender(said: &[u8]) -> Option<u16> {
    let header: &[u8; 12] = said.first_chunk()?;
    // The kind, the length and the version of the message come before the port.
    assert_eq!(&header[..4], b"RCmb", "a message of the cluster's bus");
    Some(u16::from_be_bytes([header[10], header[11]]))
}
