//! A cluster: every key has a slot, every slot a node, and both may change.
//!
//! The redis crate's own cluster client is not used. It repeats a command by itself when a connection breaks,
//! so that a repeated release answers "no such key", and a lease that was released in order would be reported
//! as lost. Here the repeating code knows that it repeats. That client also needs a runtime with timers for its
//! pauses, and sends `ASKING` before the first command of a pipeline only.
//!
//! An older map, or that of a node that is cut off, is believed when no node has reported the newest one for 5
//! s. A `PUBLISH` cannot reveal dead waiters in a cluster, because their connection may lead to another node.

mod map;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::{Client, ConnectionInfo, Pipeline, cmd};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use self::map::{ClusterReport, Map, Newest, Share, said};
use super::ServerId;
use super::nodes::ServerList;
use super::poll::{FIRST_ANSWER, Survey};
use super::refresh::Refresh;
use crate::base::clock::Clock;
use crate::base::error::Error;
use crate::base::token::Address;
use crate::store::Failure;
use crate::store::redis::connection::Connection;
use crate::store::redis::keyspace::Keyspace;
use crate::store::redis::probe::Probe;
use crate::store::redis::push::PushReceiver;
use crate::store::redis::send_error::failure;
use crate::store::redis::slots::HashSlot;

/// Changes are reported by the node that is asked wrongly. A manager that only waits asks no node, so it looks
/// at this interval.
const INTERVAL: Duration = Duration::from_secs(2);
/// The number of nodes that are asked at once without trouble, others each time ...
const ASKED_REGULARLY: usize = 2;
/// ... and with trouble.
const ASKED_AT_ONCE: usize = 6;
/// After slots have changed hands more of them may, so waiters are told once for all of them.
const SETTLING: Duration = Duration::from_millis(100);

pub(in crate::store::redis) struct Cluster {
    seeds: Vec<ServerId>,
    nodes: ServerList,
    state: watch::Sender<MapState>,
    refresh: Refresh,
    /// How often a node was chosen to listen on.
    homes: AtomicUsize,
}

struct MapState {
    /// Whether no look has been made.
    unseen: bool,
    map: Map,
    /// How often slots have changed hands.
    changes: u64,
    /// Why the last look found nothing.
    failure: Option<Failure>,
}

impl Cluster {
    pub(in crate::store::redis) fn new(seeds: Vec<ConnectionInfo>) -> Result<Self, Error> {
        let unusable = || Error::invalid("the URL names no nodes; write redis-cluster://host:port");
        let nodes = ServerList::new(seeds.first().cloned().ok_or_else(unusable)?);
        let seeds = seeds.iter().map(|seed| {
            let (host, port) = match seed.addr() {
                redis::ConnectionAddr::Tcp(host, port)
                | redis::ConnectionAddr::TcpTls { host, port, .. } => (host, *port),
                _ => return Err(unusable()),
            };
            nodes.at(host, port).map_err(|error| failure(error).error)
        });
        Ok(Self {
            seeds: seeds.collect::<Result<_, _>>()?,
            nodes,
            state: watch::Sender::new(MapState {
                unseen: true,
                map: Map::empty(),
                changes: 0,
                failure: None,
            }),
            refresh: Refresh::new(),
            homes: AtomicUsize::new(0),
        })
    }

    /// The same, with settings that are made of its own.
    #[cfg(feature = "tls-rustls")]
    pub(in crate::store::redis) fn spoken_to(
        self,
        with: impl Fn(ConnectionInfo) -> Result<ConnectionInfo, Error>,
    ) -> Result<Self, Error> {
        let infos = self.seeds.iter().map(|&seed| self.client(seed));
        let infos = infos.map(|client| with(client.get_connection_info().clone()));
        Self::new(infos.collect::<Result<_, _>>()?)
    }

    /// The node that has a slot, as far as is known.
    pub(in crate::store::redis) async fn owner(&self, slot: HashSlot) -> Result<ServerId, Failure> {
        if let Some(node) = self.known_owner(slot) {
            return Ok(node);
        }
        self.seen().await;
        if let Some(node) = self.known_owner(slot) {
            return Ok(node);
        }
        self.refresh.look_again().await;
        let state = self.state.borrow();
        state.map.owner(slot).ok_or_else(|| {
            state.failure.clone().unwrap_or_else(|| {
                Failure::refused("no node of the cluster serves the slot of the key")
            })
        })
    }

    pub(in crate::store::redis) fn known_owner(&self, slot: HashSlot) -> Option<ServerId> {
        self.state.borrow().map.owner(slot)
    }

    /// A node to listen on. Each node receives the messages that are published on any.
    pub(in crate::store::redis) async fn home(
        &self,
        manager: Address,
    ) -> Result<ServerId, Failure> {
        self.seen().await;
        let turn = self.homes.fetch_add(1, Ordering::Relaxed);
        if turn > 0 {
            // The node before was not, or is no longer, what it should be.
            self.refresh.look_again().await;
        }
        let state = self.state.borrow();
        let masters = state.map.masters().iter();
        let live = masters.filter(|master| state.map.live().contains(master));
        let nodes = match live.copied().collect::<Vec<_>>() {
            live if live.is_empty() => state.map.masters().to_vec(),
            live => live,
        };
        match nodes.len() {
            0 => Err(state.failure.clone().unwrap_or_else(unreachable)),
            // Managers are spread over the nodes.
            count => Ok(nodes[manager.spread().wrapping_add(turn) % count]),
        }
    }

    async fn seen(&self) {
        let mut state = self.state.subscribe();
        let _ = state.wait_for(|state| !state.unseen).await;
    }

    /// Notes a node's report that another node has the slot.
    pub(in crate::store::redis) fn moved(&self, slot: HashSlot, to: ServerId) {
        self.state.send_modify(|state| {
            state.map.set_owner(slot, to);
            state.changes += 1;
        });
        self.refresh.ring();
    }

    /// Waits until slots have changed hands, and with them the queues of waiters, if they were not lost.
    pub(in crate::store::redis) async fn change(&self) {
        let mut state = self.state.subscribe();
        let before = state.borrow_and_update().changes;
        let _ = state.wait_for(|state| state.changes != before).await;
        sleep(SETTLING).await;
    }

    /// The node that another one names in an answer. Without a host the host is the same.
    pub(in crate::store::redis) fn named(&self, address: &str, by: ServerId) -> Option<ServerId> {
        let (host, port) = address.rsplit_once(':')?;
        let port = port.parse().ok()?;
        let host = match host {
            "" | "?" => self.nodes.address(by).0,
            host => host.trim_matches(['[', ']']).to_owned(),
        };
        self.nodes.at(&host, port).ok()
    }

    /// Waits until another node has the slot.
    pub(in crate::store::redis) async fn departure(&self, slot: HashSlot, from: ServerId) {
        let mut state = self.state.subscribe();
        let gone = |state: &MapState| state.map.owner(slot).is_some_and(|owner| owner != from);
        let _ = state.wait_for(gone).await;
    }

    /// Waits until the node is no master of the cluster.
    pub(in crate::store::redis) async fn expulsion(&self, node: ServerId) {
        let mut state = self.state.subscribe();
        let gone = |state: &MapState| !state.map.masters().contains(&node);
        let _ = state.wait_for(gone).await;
    }

    pub(in crate::store::redis) fn uses(&self, node: ServerId) -> bool {
        self.state.borrow().map.masters().contains(&node)
    }

    pub(in crate::store::redis::topology) fn refresh(&self) -> &Refresh {
        &self.refresh
    }

    pub(in crate::store::redis) async fn open(
        &self,
        node: ServerId,
        names: &Keyspace,
        inbox: Option<&Arc<PushReceiver>>,
    ) -> Result<Connection, Failure> {
        let connection = Connection::open(&self.nodes.client(node), inbox).await?;
        connection.probe(names, Probe::Node).await?;
        Ok(connection.one_by_one())
    }

    /// The nodes of the URL.
    pub(in crate::store::redis::topology) fn nodes(&self) -> &ServerList {
        &self.nodes
    }

    /// The nodes that answered last.
    pub(in crate::store::redis) fn live(&self) -> Vec<ServerId> {
        self.state.borrow().map.live().to_vec()
    }

    pub(in crate::store::redis) fn addresses(&self) -> String {
        let addresses = self.seeds.iter().map(|&node| {
            let (host, port) = self.nodes.address(node);
            format!("{host}:{port}")
        });
        addresses.collect::<Vec<_>>().join(",")
    }

    /// Keeps the map for as long as the keeper runs.
    pub(in crate::store::redis) async fn watch(&self) {
        let mut questions = Pipeline::with_capacity(2);
        for question in ["INFO", "SLOTS"] {
            questions.add_command(cmd("CLUSTER").arg(question).take());
        }
        let mut survey = Survey::new(questions);
        let mut newest = Newest::NONE;
        let mut turn = 0;
        loop {
            let begun = self.refresh.begin();
            let looked = self.look(&mut survey, &mut newest, turn).await;
            turn += 1;
            self.state.send_modify(|state| {
                state.unseen = false;
                match looked {
                    Ok(map) => {
                        if !state.map.is_empty() && !state.map.is_shared_as(&map) {
                            state.changes += 1;
                        }
                        state.map = map;
                        state.failure = None;
                    }
                    Err(failure) => state.failure = Some(failure),
                }
            });
            self.refresh.end(begun);
            self.refresh.rest(INTERVAL).await;
        }
    }

    async fn look(
        &self,
        survey: &mut Survey<ServerId>,
        before: &mut Newest,
        turn: usize,
    ) -> Result<Map, Failure> {
        let asked = self.choose(turn);
        survey.keep(&asked);
        for &node in &asked {
            survey.add(node, || self.client(node));
        }
        let answers = survey.ask(FIRST_ANSWER).await;
        let mut live = Vec::new();
        let mut newest: Option<(ServerId, ClusterReport)> = None;
        let mut failed = None;
        let answered = |node: &ServerId| {
            let answer = answers.iter().find(|(answered, _)| answered == node);
            answer.is_some_and(|(_, answer)| answer.is_ok())
        };
        if asked.iter().any(|node| self.uses(*node) && !answered(node)) {
            // Another node will take its place.
            self.refresh.alarm();
        }
        for (node, answers) in answers {
            match answers.and_then(|answers| said(&answers)) {
                Ok(said) => {
                    if said.serves {
                        live.push(node);
                    }
                    let newer = newest.as_ref().is_none_or(|(_, newest)| {
                        (said.serves, said.epoch) > (newest.serves, newest.epoch)
                    });
                    if newer {
                        newest = Some((node, said));
                    }
                }
                Err(failure) if failure.is_final() => failed = Some(failure),
                Err(_) => {}
            }
        }
        let Some((teller, said)) = newest else {
            return Err(failed.unwrap_or_else(unreachable));
        };
        if !before.gives_way_to((said.serves, said.epoch), Clock::System.now()) {
            return Ok(self.state.borrow().map.with_live(live));
        }
        self.map(&said, teller, live)
    }

    fn map(
        &self,
        said: &ClusterReport,
        teller: ServerId,
        live: Vec<ServerId>,
    ) -> Result<Map, Failure> {
        let shares = said.shares.iter().map(|share| {
            let (host, port) = &share.owner;
            let host = host.clone().unwrap_or_else(|| self.nodes.address(teller).0);
            Ok(Share {
                first: share.first,
                last: share.last,
                owner: self.nodes.at(&host, *port).map_err(failure)?,
            })
        });
        let shares = shares.collect::<Result<Vec<_>, Failure>>()?;
        Ok(Map::new(&shares, live))
    }

    /// The nodes to ask this time: of the masters and of the URL's nodes, each in turn.
    fn choose(&self, turn: usize) -> Vec<ServerId> {
        let mut all: Vec<ServerId> = self.state.borrow().map.masters().to_vec();
        all.extend(
            self.seeds
                .iter()
                .filter(|seed| !all.contains(seed))
                .copied()
                .collect::<Vec<_>>(),
        );
        let count = if self.refresh.is_alert() || turn == 0 {
            ASKED_AT_ONCE
        } else {
            ASKED_REGULARLY
        };
        let first = turn * count % all.len();
        let chosen = all.iter().cycle().skip(first).take(count.min(all.len()));
        chosen.copied().collect()
    }

    fn client(&self, node: ServerId) -> Client {
        self.nodes.client(node)
    }
}

/// How often a node on which a manager only listens is asked whether it lives.
const PULSE: Duration = Duration::from_secs(1);

/// Waits until the node does not answer, or reports a cluster that does not serve: cut off from the others it
/// receives no messages.
pub(in crate::store::redis) async fn silence(on: &Connection) {
    let question = cmd("CLUSTER").arg("INFO").take();
    loop {
        sleep(PULSE).await;
        let Ok(Ok(answer)) = timeout(PULSE, on.send(&question)).await else {
            return;
        };
        if !map::serves(&answer) {
            return;
        }
    }
}

fn unreachable() -> Failure {
    Failure::refused("no node of the cluster can be reached")
}
