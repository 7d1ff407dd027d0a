//! A node of a cluster: its view of the cluster, and the commands about it.
//!
//! Each node has a view of its own. An operator, or the messages of other nodes, change it.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use super::pubsub::push_to;
use super::resp::{Answer, OK, Reply};
use super::slots::SLOTS;
use super::{Bytes, Data, Entry, Server};

/// The name and the address of a node.
#[derive(Clone, Debug)]
pub struct Node {
    /// 40 hexadecimal digits.
    pub id: String,
    pub host: String,
    pub port: u16,
}

/// The view that a node has of its cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The nodes have the same numbers in all views.
    pub nodes: Vec<Node>,
    /// The number of this node.
    pub me: usize,
    /// Whether this node takes the cluster for one that serves.
    pub serves: bool,
    /// The highest epoch that this node has heard of, and the one of each node's slots.
    pub epoch: u64,
    epochs: Vec<u64>,
    owners: Vec<Option<usize>>,
    /// The ranges of slots that have one owner: the first, the last, the owner. Found again after each change of `owners`.
    ranges: OnceCell<Vec<(usize, usize, usize)>>,
    /// The slots that this node gives away, and to which node.
    migrating: BTreeMap<usize, usize>,
    importing: BTreeSet<usize>,
    /// Messages that clients have published here, for the other nodes.
    published: Vec<(Bytes, Bytes)>,
}

impl Cluster {
    /// A node that believes that the slots have these owners.
    pub fn new(nodes: Vec<Node>, me: usize, owners: Vec<Option<usize>>) -> Self {
        assert_eq!(owners.len(), SLOTS);
        Self {
            me,
            serves: true,
            epoch: nodes.len() as u64,
            epochs: (1..).take(nodes.len()).collect(),
            nodes,
            owners,
            ranges: OnceCell::new(),
            migrating: BTreeMap::new(),
            importing: BTreeSet::new(),
            published: Vec::new(),
        }
    }

    pub fn owner(&self, slot: usize) -> Option<usize> {
        self.owners[slot]
    }

    /// Gives a slot to a node. That ends its move.
    pub fn assign(&mut self, slot: usize, owner: Option<usize>) {
        self.own(slot, owner);
        self.settle(slot);
    }

    fn own(&mut self, slot: usize, owner: Option<usize>) {
        self.owners[slot] = owner;
        self.ranges.take();
    }

    /// The epoch of this node's own slots.
    pub fn own_epoch(&self) -> u64 {
        self.epochs[self.me]
    }

    /// Hears that slots belong to a node. Slots of a node with a higher epoch stay. A slot that this node takes over is still
    /// on its way, from another node.
    pub fn hears(&mut self, slots: &[usize], owner: usize, epoch: u64) {
        self.epoch = self.epoch.max(epoch);
        self.epochs[owner] = self.epochs[owner].max(epoch);
        for slot in slots {
            let before = self.owners[*slot];
            if before.is_none_or(|before| before == owner || self.epochs[before] < epoch) {
                match owner != self.me && self.importing.contains(slot) {
                    true => self.own(*slot, Some(owner)),
                    false => self.assign(*slot, Some(owner)),
                }
            }
        }
    }

    /// Begins to give a slot away, as `CLUSTER SETSLOT … MIGRATING` does.
    pub fn gives(&mut self, slot: usize, to: usize) {
        self.migrating.insert(slot, to);
    }

    /// Begins to take a slot over, as `CLUSTER SETSLOT … IMPORTING` does.
    pub fn takes(&mut self, slot: usize) {
        self.importing.insert(slot);
    }

    /// Ends the move of a slot without a change, as `CLUSTER SETSLOT … STABLE` does.
    pub fn settle(&mut self, slot: usize) {
        self.migrating.remove(&slot);
        self.importing.remove(&slot);
    }

    /// The node that this one gives a slot to.
    pub fn target(&self, slot: usize) -> Option<usize> {
        self.migrating.get(&slot).copied()
    }

    pub fn is_importing(&self, slot: usize) -> bool {
        self.importing.contains(&slot)
    }

    /// Returns whether this node gives slots away, or takes them over.
    pub fn is_moving(&self) -> bool {
        !self.migrating.is_empty() || !self.importing.is_empty()
    }

    fn ranges(&self) -> &[(usize, usize, usize)] {
        self.ranges.get_or_init(|| {
            let mut ranges = Vec::new();
            let mut first = 0;
            for range in self.owners.chunk_by(|one, next| one == next) {
                let last = first + range.len() - 1;
                ranges.extend(range[0].map(|owner| (first, last, owner)));
                first = last + 1;
            }
            ranges
        })
    }
}

pub(super) fn asking(server: &mut Server, _: &[&[u8]]) -> Answer {
    of(server)?;
    server.session().asking = true;
    Ok(OK)
}

/// The fields that the kit reads, and some more.
pub(super) fn info(server: &mut Server, _: &[&[u8]]) -> Answer {
    let cluster = of(server)?;
    let state = if cluster.serves { "ok" } else { "fail" };
    let ranges = cluster.ranges().iter();
    let assigned: usize = ranges.map(|(first, last, _)| last - first + 1).sum();
    let (nodes, epoch) = (cluster.nodes.len(), cluster.epoch);
    Ok(Reply::Report(format!(
        "cluster_state:{state}\r\ncluster_slots_assigned:{assigned}\r\ncluster_known_nodes:{nodes}\r\n\
         cluster_current_epoch:{epoch}\r\n"
    )))
}

/// The ranges with their masters. Their replicas, which the kit does not read, are left out.
pub(super) fn slots(server: &mut Server, _: &[&[u8]]) -> Answer {
    let cluster = of(server)?;
    let ranges = cluster.ranges().iter().map(|&(first, last, owner)| {
        let Node { id, host, port } = &cluster.nodes[owner];
        let node = vec![
            Reply::text(host),
            Reply::Int((*port).into()),
            Reply::text(id),
            Reply::Map(Vec::new()),
        ];
        let [first, last] = [first, last].map(|slot| Reply::Int(slot as i64));
        Reply::Array(vec![first, last, Reply::Array(node)])
    });
    Ok(Reply::Array(ranges.collect()))
}

/// No part of the kit uses it.
pub(super) fn shards(server: &mut Server, _: &[&[u8]]) -> Answer {
    of(server)?;
    Err("ERR the simulated server does not know CLUSTER SHARDS".into())
}

fn of(server: &Server) -> Result<&Cluster, super::resp::Failure> {
    let cluster = server.cluster.as_deref();
    cluster.ok_or_else(|| "ERR This instance has cluster support disabled".into())
}

impl Server {
    /// Notes a message for the clients of the other nodes.
    pub(super) fn pass_on(&mut self, channel: &[u8], message: &[u8]) {
        if let Some(cluster) = &mut self.cluster {
            cluster.published.push((channel.to_vec(), message.to_vec()));
        }
    }

    /// Takes the messages that were published here since the last call.
    pub fn take_published(&mut self) -> Vec<(Bytes, Bytes)> {
        let cluster = self.cluster.as_mut();
        cluster.map_or_else(Vec::new, |cluster| std::mem::take(&mut cluster.published))
    }

    /// Tells the clients of this node a message that was published on another one.
    pub fn hear(&mut self, channel: &[u8], message: &[u8]) {
        for conn in self.listeners.get(channel).cloned().unwrap_or_default() {
            let push = push_to(channel, message, self.sessions[&conn].protocol);
            self.pushes.push((conn, push));
        }
    }

    /// Takes a key out, as `MIGRATE` does. Returns its value, and for how many milliseconds it lives on.
    pub fn give_away(&mut self, key: &[u8], micros: i64) -> Option<(Data, Option<i64>)> {
        self.set_time(micros);
        let now = self.now;
        let entry = self.find(key)?.clone();
        self.remove(key);
        self.settle();
        Some((entry.data, entry.ends.map(|ends| (ends - now).max(1))))
    }

    /// Puts a key in that another node has given away.
    pub fn take_in(&mut self, key: &[u8], data: Data, left: Option<i64>, micros: i64) {
        self.set_time(micros);
        let ends = left.map(|left| self.now + left);
        self.put(key, Entry { data, ends });
        self.settle();
    }
}
