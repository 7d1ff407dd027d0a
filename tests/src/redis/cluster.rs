//! A Redis cluster: masters that share the keys, and their replicas.

use std::collections::HashSet;
use std::time::Duration;

use super::options::PortKind;
use crate::{RedisOptions, RedisServer, wait};

const SLOTS: u16 = 16_384;

/// Nodes of one cluster: first the masters, each with a third of the slots, then a replica for each
/// of them in the same order. A failover makes a replica a master.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
    masters: usize,
}

impl RedisCluster {
    /// Three masters and a replica for each, in which a node that does not answer for `timeout` is
    /// taken for dead.
    ///
    /// # Panics
    ///
    /// As [`RedisOptions::start`], and when the nodes do not agree on the cluster.
    #[track_caller]
    pub fn start(timeout: Duration) -> RedisCluster {
        RedisCluster::with(&RedisServer::options(), 3, timeout)
    }

    /// As [`RedisCluster::start`], with so many masters, and each node with these options.
    ///
    /// # Panics
    ///
    /// As [`RedisCluster::start`].
    #[track_caller]
    pub fn with(options: &RedisOptions, masters: usize, timeout: Duration) -> RedisCluster {
        let options = vec![options.clone(); 2 * masters];
        RedisCluster::joined(RedisCluster::nodes_of(options, timeout))
    }

    /// Nodes that do not know each other yet, each with options of its own.
    #[track_caller]
    pub(super) fn nodes_of(options: Vec<RedisOptions>, timeout: Duration) -> Vec<RedisServer> {
        let nodes = options.into_iter().map(|options| node(options, timeout));
        nodes.collect()
    }

    /// A cluster of such nodes: first the masters, then a replica for each of them.
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
            // Two nodes that begin with one epoch would have to settle which is the elder.
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

    /// The command that gives a master its slots.
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
    /// When it does not come to that.
    #[track_caller]
    pub fn is_whole(&self) {
        wait::until("the cluster is whole", || self.looks_whole());
    }

    /// Whether all nodes that are up say that every slot is served, and agree by whom and since which
    /// epoch, no two masters' epochs are the same, and every replica among them follows its master.
    ///
    /// Of a slot that two nodes claim, the one with the higher epoch gets it, and of two with the same epoch
    /// one raises its own. So nothing is about to change hands by itself in a cluster that looks whole.
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

    /// All nodes: the first masters, then their replicas.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The nodes that are up.
    pub fn up(&self) -> impl Iterator<Item = &RedisServer> {
        self.nodes.iter().filter(|node| node.is_up())
    }

    /// The nodes that are up and take themselves for masters.
    #[track_caller]
    pub fn masters(&self) -> Vec<&RedisServer> {
        self.up().filter(|node| node.role() == "master").collect()
    }

    /// The slot of a key.
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

    /// The master that holds a key's slot, as it says itself.
    ///
    /// # Panics
    ///
    /// When no node, or more than one, says so.
    #[track_caller]
    pub fn master_of(&self, key: &str) -> &RedisServer {
        let mut masters = self.masters();
        // Asked for a key of another's slot, a node says whose it is.
        masters.retain(|node| node.try_cli(&["EXISTS", key]).is_ok());
        assert_eq!(masters.len(), 1, "one master has the key");
        masters[0]
    }

    /// One command about a key, put to the node that has it; the answer as redis-cli prints it.
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

    /// `redis-cluster://<host:port>,…`, of all nodes, `rediss-` if they speak TLS.
    pub fn url(&self) -> String {
        format!("{}-cluster://{}", self.nodes[0].scheme(), self.hosts())
    }

    /// `<host:port>,…`, of all nodes, as they are announced.
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
        // However long a replica has been without its master, it may take its place.
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

/// What a node knows of a master.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Share {
    id: String,
    epoch: String,
    slots: String,
}

/// Of a line of CLUSTER NODES: a master that has slots, but for those that are on their way.
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
    /// This node's id in its cluster.
    ///
    /// # Panics
    ///
    /// When it is no node of one.
    #[track_caller]
    pub fn id(&self) -> String {
        self.cli(&["CLUSTER", "MYID"])
    }

    /// The ports by which others find this node of a cluster, and its bus.
    fn announced(&self) -> (u16, u16) {
        let port = self.port_of_others();
        let own = (port, bus_of(port));
        self.options.announced.unwrap_or(own)
    }
}

/// Where a node that listens on `port` talks with the others.
pub(super) fn bus_of(port: u16) -> u16 {
    port + 10_000
}
