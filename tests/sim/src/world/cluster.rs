//! Clusters: what the nodes tell one another, each at its time.

use std::collections::BTreeMap;

use super::events::Event;
use super::{MILLI, SECOND, State};
use crate::server::{self, Bytes, Cluster, Node, SLOTS};

/// A node that was down serves again when it has heard of the others, after this time at most (Redis' `WRITABLE_DELAY`).
pub const REJOINS: u64 = 2 * SECOND;
/// The longest time until all nodes know the replica that has taken the place of a master.
pub const REPLACED: u64 = SECOND + HEARS;
/// The longest time until a node has heard of a change.
pub(super) const HEARS: u64 = 300 * MILLI;

/// What a node hears from another one.
#[derive(Clone, Debug)]
pub(super) enum News {
    /// A client has published a message.
    Message(Bytes, Bytes),
    /// These slots belong to a node now.
    Owner {
        slots: Vec<usize>,
        owner: usize,
        epoch: u64,
    },
    /// The node has heard enough from the others to serve again.
    Serves,
}

/// The messages between the nodes.
#[derive(Default)]
pub(super) struct Bus {
    /// When the last message from one node to another arrives.
    last: BTreeMap<(usize, usize), u64>,
}

impl State {
    /// Makes the servers a cluster. The first `masters` of them share the slots; the others are replicas.
    pub fn form_cluster(&mut self, masters: usize) {
        let nodes = (0..self.hosts.len()).map(|number| Node {
            id: format!("{number:040x}"),
            host: format!("10.0.0.{number}"),
            port: 6379,
        });
        let nodes: Vec<Node> = nodes.collect();
        let owners = (0..SLOTS).map(|slot| Some(slot * masters / SLOTS));
        let owners: Vec<_> = owners.collect();
        for (me, host) in self.hosts.iter_mut().enumerate() {
            let cluster = Cluster::new(nodes.clone(), me, owners.clone());
            host.server.cluster = Some(Box::new(cluster));
        }
    }

    /// The servers that keep data of their own.
    pub fn masters(&self) -> impl Iterator<Item = usize> {
        let hosts = self.hosts.iter().enumerate();
        hosts
            .filter(|(_, host)| host.server.role == server::Role::Master)
            .map(|(number, _)| number)
    }

    pub(super) fn view(&mut self, node: usize) -> &mut Cluster {
        let cluster = self.hosts[node].server.cluster.as_deref_mut();
        cluster.expect("a node of a cluster")
    }

    /// Sends the messages on that clients have published at a node.
    pub(super) fn pass_messages_on(&mut self, from: usize) {
        for (channel, message) in self.hosts[from].server.take_published() {
            for to in 0..self.hosts.len() {
                if to != from {
                    let usual = self.settings.latency;
                    let time = self.now + usual / 2 + self.rng.below(usual);
                    let news = News::Message(channel.clone(), message.clone());
                    self.send_news(from, to, time, news);
                }
            }
        }
    }

    /// Has a node hear of something, behind all that the same node has told it before.
    pub(super) fn send_news(&mut self, from: usize, to: usize, time: u64, news: News) {
        let last = self.bus.last.entry((from, to)).or_default();
        *last = time.max(*last + 1);
        let time = *last;
        self.at(time, Event::Heard { node: to, news });
    }

    /// A node hears something. One that is stopped hears it when it goes on, and one that is down when it is back.
    pub(super) fn hears(&mut self, node: usize, news: News) {
        let host = &mut self.hosts[node];
        if host.is_stopped() || !host.is_up {
            if host.is_up || !matches!(news, News::Message(..)) {
                host.unheard.push(news);
            }
            return;
        }
        match news {
            News::Message(channel, message) => {
                host.server.hear(&channel, &message);
                self.send_pushes(node);
            }
            News::Owner {
                slots,
                owner,
                epoch,
            } => {
                self.note(&[11, node as u64, owner as u64], || {
                    format!("s{node} hears that s{owner} has {} slots", slots.len())
                });
                self.view(node).hears(&slots, owner, epoch);
            }
            News::Serves => self.view(node).serves = true,
        }
    }

    /// A node goes on: it hears what it has missed.
    pub(super) fn catches_up(&mut self, node: usize) {
        for news in std::mem::take(&mut self.hosts[node].unheard) {
            self.hears(node, news);
        }
    }

    /// A node that was down begins. It serves when it has heard from the others.
    pub(super) fn rejoins(&mut self, node: usize) {
        if self.hosts[node].server.cluster.is_none() {
            return;
        }
        self.view(node).serves = false;
        let soon = self.now + self.rng.below(REJOINS);
        let news = News::Serves;
        // An operator's command to the node does not wait for it.
        self.at(soon, Event::Heard { node, news });
        self.catches_up(node);
    }

    /// Returns whether a node takes part in what an operator does with the cluster.
    pub(super) fn is_well(&self, node: usize) -> bool {
        let host = &self.hosts[node];
        host.is_up && !host.is_stopped() && host.server.refusal.is_none()
    }
}
