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

use redis::{ConnectionInfo, Pipeline, cmd};
use tokio::sync::watch;

use self::map::{ClusterReport, Map, Newest, Share, said};
use super::nodes::{ServerId, ServerList, addresses};
use super::poll::{FIRST_ANSWER, GIVEN_UP, Survey};
use super::refresh::Refresh;
use crate::base::clock::Clock;
use crate::base::error::Error;
use crate::base::machine::{sleep, timeout};
use crate::base::token::Address;
use crate::store::Failure;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::login::Login;
use crate::store::redis::wire::slots::HashSlot;

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
    pub(super) nodes: ServerList,
    state: watch::Sender<MapState>,
    pub(super) refresh: Refresh,
    /// How often a node was chosen to listen on.
    homes: AtomicUsize,
}

struct MapState {
    /// Whether no look has been made.
    unseen: bool,
    map: Map,
    /// How often slots have changed hands, or a node that did not answer has come back, maybe without its data.
    changes: u64,
    /// Why the last look found nothing.
    failure: Option<Failure>,
}

impl Cluster {
    pub(super) fn new(seeds: &[ConnectionInfo], login: Option<Arc<Login>>) -> Result<Self, Error> {
        let unusable = || Error::invalid("the URL names no nodes; write redis-cluster://host:port");
        let nodes = ServerList::new(seeds.first().cloned().ok_or_else(unusable)?, login);
        let seeds = seeds.iter().map(|seed| {
            let (host, port) = match seed.addr() {
                redis::ConnectionAddr::Tcp(host, port)
                | redis::ConnectionAddr::TcpTls { host, port, .. } => (host, *port),
                _ => return Err(unusable()),
            };
            nodes.at(host, port)
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
            refresh: Refresh::default(),
            homes: AtomicUsize::new(0),
        })
    }

    /// The node that has a slot, as far as is known.
    pub(super) async fn owner(&self, slot: HashSlot) -> Result<ServerId, Failure> {
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
    pub(super) async fn home(&self, manager: Address) -> Result<ServerId, Failure> {
        self.seen().await;
        let turn = self.homes.fetch_add(1, Ordering::Relaxed);
        if turn > 0 {
            // The node before was not, or is no longer, what it should be.
            self.refresh.look_again().await;
        }
        let state = self.state.borrow();
        let Map { masters, live, .. } = &state.map;
        let mut nodes = masters.clone();
        nodes.retain(|master| live.contains(master));
        if nodes.is_empty() {
            nodes.clone_from(masters);
        }
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

    /// Calls `changed` whenever slots have changed hands, and with them the queues of waiters, if they were not lost, or a node
    /// may have lost its queues.
    pub(super) async fn changes(&self, changed: impl Fn()) {
        loop {
            let mut state = self.state.subscribe();
            let before = state.borrow_and_update().changes;
            let _ = state.wait_for(|state| state.changes != before).await;
            sleep(SETTLING).await;
            changed();
        }
    }

    /// The node that another one names in an answer. Without a host the host is the same.
    pub(in crate::store::redis) fn named(&self, address: &str, by: ServerId) -> Option<ServerId> {
        let (host, port) = address.rsplit_once(':')?;
        let port = port.parse().ok()?;
        let host = match host {
            "" | "?" => self.nodes.host(by),
            host => host.trim_matches(['[', ']']).to_owned(),
        };
        self.nodes.at(&host, port).ok()
    }

    /// Waits until another node has the slot.
    pub(super) async fn departure(&self, slot: HashSlot, from: ServerId) {
        let mut state = self.state.subscribe();
        let gone = |state: &MapState| state.map.owner(slot).is_some_and(|owner| owner != from);
        let _ = state.wait_for(gone).await;
    }

    /// Waits until the node is no master of the cluster.
    pub(super) async fn expulsion(&self, node: ServerId) {
        let mut state = self.state.subscribe();
        let gone = |state: &MapState| !state.map.masters.contains(&node);
        let _ = state.wait_for(gone).await;
    }

    pub(super) fn uses(&self, node: ServerId) -> bool {
        self.state.borrow().map.masters.contains(&node)
    }

    /// The master that follows `after` in the order of their numbers; `None`: the first one.
    pub(in crate::store::redis) async fn next_master(
        &self,
        after: Option<ServerId>,
    ) -> Result<Option<ServerId>, Failure> {
        self.seen().await;
        let state = self.state.borrow();
        let masters = state.map.masters.iter().copied();
        if masters.len() == 0 {
            return Err(state.failure.clone().unwrap_or_else(unreachable));
        }
        let later = masters.filter(|master| after.is_none_or(|after| master.0 > after.0));
        Ok(later.min_by_key(|master| master.0))
    }

    /// The nodes that answered last.
    pub(super) fn live(&self) -> Vec<ServerId> {
        self.state.borrow().map.live.clone()
    }

    pub(super) fn addresses(&self) -> String {
        addresses(self.seeds.iter().map(|&seed| self.nodes.server(seed)))
    }

    /// Keeps the map for as long as the keeper runs.
    pub(super) async fn watch(&self) {
        let mut questions = Pipeline::with_capacity(2);
        for question in ["INFO", "SLOTS"] {
            questions.add_command(cmd("CLUSTER").arg(question).take());
        }
        let mut survey = Survey::new(questions);
        let mut newest = Newest::NONE;
        let mut silent = Vec::new();
        let mut turn = 0;
        loop {
            let begun = self.refresh.begin();
            let looked = self.look(&mut survey, &mut newest, turn).await;
            turn += 1;
            self.state.send_modify(|state| {
                state.unseen = false;
                match looked {
                    Ok((map, unanswered)) => {
                        let is_new = !state.map.is_shared_as(&map);
                        let returned = silent.iter().any(|node| map.live.contains(node));
                        if !state.map.masters.is_empty() && (is_new || returned) {
                            state.changes += 1;
                        }
                        silent.retain(|node| !map.live.contains(node));
                        silent.extend(unanswered);
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

    /// Returns the map, and the masters that were asked and did not answer.
    async fn look(
        &self,
        survey: &mut Survey<ServerId>,
        before: &mut Newest,
        turn: usize,
    ) -> Result<(Map, Vec<ServerId>), Failure> {
        let asked = self.choose(turn);
        survey.keep(&asked);
        for &node in &asked {
            survey.add(node, || self.nodes.server(node));
        }
        let patience = match self.state.borrow().unseen {
            true => GIVEN_UP,
            false => FIRST_ANSWER,
        };
        let answers = survey.ask(patience).await;
        let mut live = Vec::new();
        let mut newest: Option<(ServerId, ClusterReport)> = None;
        let mut failed = None;
        let answered = |node: &ServerId| {
            let answer = answers.iter().find(|(answered, _)| answered == node);
            answer.is_some_and(|(_, answer)| answer.is_ok())
        };
        let silent = asked.iter().copied();
        let silent: Vec<_> = silent
            .filter(|node| self.uses(*node) && !answered(node))
            .collect();
        if !silent.is_empty() {
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
            let mut map = self.state.borrow().map.clone();
            map.live = live;
            return Ok((map, silent));
        }
        Ok((self.map(&said, teller, live)?, silent))
    }

    fn map(
        &self,
        said: &ClusterReport,
        teller: ServerId,
        live: Vec<ServerId>,
    ) -> Result<Map, Failure> {
        let shares = said.shares.iter().map(|share| {
            let (host, port) = &share.owner;
            let host = host.clone().unwrap_or_else(|| self.nodes.host(teller));
            Ok(Share {
                first: share.first,
                last: share.last,
                owner: self.nodes.at(&host, *port)?,
            })
        });
        let shares = shares.collect::<Result<Vec<_>, Failure>>()?;
        Ok(Map::new(&shares, live))
    }

    /// The nodes to ask this time: of the masters and of the URL's nodes, each in turn.
    fn choose(&self, turn: usize) -> Vec<ServerId> {
        let mut all = self.state.borrow().map.masters.clone();
        let seeds = self.seeds.iter().copied();
        all.extend(seeds.filter(|seed| !self.uses(*seed)));
        let count = if self.refresh.is_alert() || turn == 0 {
            ASKED_AT_ONCE
        } else {
            ASKED_REGULARLY
        };
        let first = turn * count % all.len();
        let chosen = all.iter().cycle().skip(first).take(count.min(all.len()));
        chosen.copied().collect()
    }
}

/// How often a node on which a manager only listens is asked whether it lives.
const PULSE: Duration = Duration::from_secs(1);

/// Waits until the node does not answer, or reports a cluster that does not serve: cut off from the others it
/// receives no messages.
pub(super) async fn silence(on: &Connection) {
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
