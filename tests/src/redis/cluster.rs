//! Runs a Redis cluster: masters that share the keys, and their replicas.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::options::PortKind;
use crate::{RedisOptions, RedisServer, wait};

const SLOTS: u16 = 16_384;

/// Nodes of one cluster.
///
/// First come the masters, each with an equal share of the slots, and then a replica for each master in the
/// same order.
///
/// A failover makes a replica a master.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
    masters: usize,
}

impl RedisCluster {
    /// Starts three masters, each with a replica.
    ///
    /// The nodes take a node for dead that does not answer for `timeout`.
    ///
    /// # Panics
    ///
    /// As [`RedisOptions::start`], and when the nodes do not agree on the cluster.
    #[track_caller]
    pub fn start(timeout: Duration) -> RedisCluster {
        RedisCluster::with(&RedisServer::options(), 3, timeout)
    }

    /// Starts a cluster as [`RedisCluster::start`] does, with so many masters, and each node with these
    /// options.
    ///
    /// # Panics
    ///
    /// As [`RedisCluster::start`].
    #[track_caller]
    pub fn with(options: &RedisOptions, masters: usize, timeout: Duration) -> RedisCluster {
        let options = vec![options.clone(); 2 * masters];
        RedisCluster::joined(RedisCluster::nodes_of(options, timeout))
    }

    /// Starts nodes that do not know each other yet, each with options of its own.
    #[track_caller]
    pub(super) fn nodes_of(options: Vec<RedisOptions>, timeout: Duration) -> Vec<RedisServer> {
        let nodes = options.into_iter().map(|options| node(options, timeout));
        nodes.collect()
    }

    /// Joins such nodes to a cluster: first the masters, then a replica for each of them.
    #[track_caller]
    pub(super) fn joined(nodes: Vec<RedisServer>) -> RedisCluster {
        let masters = nodes.len() / 2;
        let cluster = RedisCluster { nodes, masters };
        cluster.join();
        cluster
    }

    #[track_caller]
    fn join(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            // Two nodes that begin with the same epoch would have to resolve the conflict first.
            node.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
            if index < self.masters {
                node.cli(
                    &self
                        .share(index)
                        .iter()
                        .map(String::as_str)
                        .collect::<Vec<_>>(),
                );
            }
            let (port, bus) = self.nodes[0].announced();
            let (port, bus) = (port.to_string(), bus.to_string());
            node.cli(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        wait::until("the nodes know each other", || {
            let knows_all = |node: &RedisServer| {
                let known = node.cli(&["CLUSTER", "NODES"]);
                !known.contains("handshake") && known.lines().count() == self.nodes.len()
            };
            self.nodes.iter().all(knows_all)
        });
        for index in 0..self.masters {
            let master = self.nodes[index].id();
            self.nodes[self.masters + index].cli(&["CLUSTER", "REPLICATE", &master]);
        }
        self.is_whole();
    }

    /// Returns the command that gives a master its slots.
    fn share(&self, index: usize) -> Vec<String> {
        let of = |index: usize| usize::from(SLOTS) * index / self.masters;
        let slots = of(index)..of(index + 1);
        let mut command = vec!["CLUSTER".to_owned(), "ADDSLOTS".to_owned()];
        command.extend(slots.map(|slot| slot.to_string()));
        command
    }

    /// Waits until it [looks whole](RedisCluster::looks_whole).
    ///
    /// # Panics
    ///
    /// When the cluster does not become whole.
    #[track_caller]
    pub fn is_whole(&self) {
        wait::until("the cluster is whole", || self.looks_whole());
    }

    /// Returns whether all nodes that are up agree on a complete and settled cluster.
    ///
    /// * Every slot is served, and the nodes agree by which master and since which epoch.
    /// * No two masters have the same epoch.
    /// * Every replica follows its master.
    ///
    /// Two nodes that claim one slot resolve it by the higher epoch, and of two masters with the same epoch
    /// one raises its own. So no slot is about to change its master by itself in a cluster that looks whole.
    pub fn looks_whole(&self) -> bool {
        let serves = |node: &RedisServer| {
            let info = node.info("replication");
            let follows = info.get("master_link_status").is_none_or(|it| it == "up");
            follows && node.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
        };
        let shares = |node: &RedisServer| {
            let slots = node.cli(&["CLUSTER", "NODES"]);
            let mut slots: Vec<_> = slots.lines().filter_map(share_of).collect();
            slots.sort();
            slots
        };
        let mut up = self.up();
        let Some(first) = up.next() else {
            return false;
        };
        let agreed = shares(first);
        let epochs: HashSet<_> = agreed.iter().map(|share| share.epoch.clone()).collect();
        agreed.len() == self.masters
            && epochs.len() == agreed.len()
            && self.up().all(|node| serves(node) && shares(node) == agreed)
    }

    /// Returns all nodes: first the masters, then their replicas.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// Returns the nodes that are up.
    pub fn up(&self) -> impl Iterator<Item = &RedisServer> {
        self.nodes.iter().filter(|node| node.is_up())
    }

    /// Returns the nodes that are up and call themselves masters.
    #[track_caller]
    pub fn masters(&self) -> Vec<&RedisServer> {
        self.up().filter(|node| node.role() == "master").collect()
    }

    /// Returns the slot of a key.
    ///
    /// # Panics
    ///
    /// When no node is up.
    #[track_caller]
    pub fn slot(&self, key: &str) -> u16 {
        let node = self.up().next().expect("a node that is up");
        let slot = node.cli(&["CLUSTER", "KEYSLOT", key]);
        slot.parse().expect("a slot")
    }

    /// Returns the master that says that it holds a key's slot.
    ///
    /// # Panics
    ///
    /// When no node, or more than one, says that.
    #[track_caller]
    pub fn master_of(&self, key: &str) -> &RedisServer {
        let mut masters = self.masters();
        // A node that is asked for a key of a foreign slot answers with a redirection, which is an error.
        masters.retain(|node| node.try_cli(&["EXISTS", key]).is_ok());
        assert_eq!(masters.len(), 1, "one master has the key");
        masters[0]
    }

    /// Returns the replica that a master had when the cluster was started.
    ///
    /// # Panics
    ///
    /// When the server was not started as a master of this cluster.
    #[track_caller]
    pub fn replica_of(&self, master: &RedisServer) -> &RedisServer {
        let mut masters = self.nodes[..self.masters].iter();
        let index = masters.position(|node| node.port() == master.port());
        &self.nodes[self.masters + index.expect("a master")]
    }

    /// Asks a replica to take its master's place, and waits until it has it.
    ///
    /// The replica gives up when the election takes more than 5 s, as on a busy machine. It is then asked again.
    ///
    /// # Panics
    ///
    /// When it does not become the master.
    #[track_caller]
    pub fn promote(&self, replica: &RedisServer) {
        let gives_up = Duration::from_secs(6);
        let mut asked: Option<Instant> = None;
        wait::until("the replica is the master", || {
            if asked.is_none_or(|asked| asked.elapsed() > gives_up) {
                replica.cli(&["CLUSTER", "FAILOVER"]);
                asked = Some(Instant::now());
            }
            replica.role() == "master"
        });
    }

    /// Sends a command about a key to the node that has the key.
    ///
    /// Returns the answer as redis-cli prints it.
    ///
    /// # Panics
    ///
    /// When no node has the key, or the answer is an error.
    #[track_caller]
    pub fn cli(&self, key: &str, arguments: &[&str]) -> String {
        let mut answers = self.up().map(|node| node.try_cli(arguments));
        let answer =
            answers.find(|answer| !matches!(answer, Err(error) if error.starts_with("MOVED")));
        let answer = answer.expect("a node that has the key");
        answer.unwrap_or_else(|error| panic!("{} {key}: {error}", arguments[0]))
    }

    /// Returns `redis-cluster://<host:port>,…` of all nodes, or `rediss-cluster://…` if they speak TLS.
    pub fn url(&self) -> String {
        format!("{}-cluster://{}", self.nodes[0].scheme(), self.hosts())
    }

    /// Returns `<host:port>,…` of all nodes, as they are announced.
    pub(super) fn hosts(&self) -> String {
        let ports = self.nodes.iter().map(|node| node.announced().0);
        let hosts = ports.map(|port| format!("127.0.0.1:{port}"));
        hosts.collect::<Vec<_>>().join(",")
    }
}

#[track_caller]
fn node(options: RedisOptions, timeout: Duration) -> RedisServer {
    let mut options = options
        .config("cluster-enabled", "yes")
        .config("cluster-config-file", "nodes.conf")
        .config("cluster-node-timeout", &timeout.as_millis().to_string())
        // A replica may take its master's place even after a long time without it.
        .config("cluster-replica-validity-factor", "0")
        .config("repl-diskless-sync-delay", "0")
        .config("repl-ping-replica-period", "1");
    if let Some((port, bus)) = options.announced {
        options = options
            .config("cluster-announce-port", &port.to_string())
            .config("cluster-announce-bus-port", &bus.to_string());
    }
    options.port = PortKind::WithBus;
    options.start()
}

/// A node's knowledge of a master.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Share {
    id: String,
    epoch: String,
    slots: String,
}

/// Parses a line of CLUSTER NODES: a master that has slots, without the slots that are migrating.
fn share_of(line: &str) -> Option<Share> {
    let fields: Vec<_> = line.split(' ').collect();
    let (flags, epoch, slots) = (fields.get(2)?, fields.get(6)?, fields.get(8..)?);
    if !flags.contains("master") || flags.contains("fail") {
        return None;
    }
    let slots = slots.iter().filter(|slot| !slot.starts_with('['));
    let slots = slots.copied().collect::<Vec<_>>().join(" ");
    (!slots.is_empty()).then(|| Share {
        id: fields[0].to_owned(),
        epoch: (*epoch).to_owned(),
        slots,
    })
}

impl RedisServer {
    /// Returns this node's id in its cluster.
    ///
    /// # Panics
    ///
    /// When the server is no node of a cluster.
    #[track_caller]
    pub fn id(&self) -> String {
        self.cli(&["CLUSTER", "MYID"])
    }

    /// Returns the ports at which others find this node and its bus.
    fn announced(&self) -> (u16, u16) {
        let port = self.port_of_others();
        let own = (port, bus_of(port));
        self.options.announced.unwrap_or(own)
    }
}

/// Returns the port of the bus on which a node that listens on `port` talks to the others.
pub(super) fn bus_of(port: u16) -> u16 {
    port + 10_000
}
