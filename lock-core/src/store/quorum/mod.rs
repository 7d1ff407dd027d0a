//! Locks over independent servers: an owner holds a lock while a majority of the servers has it.
//!
//! The algorithm is Redlock (the page "Distributed Locks with Redis" of the Redis documentation). A client asks
//! all nodes at once. More than half of all nodes must agree. The ttl counts from before the first question. A
//! refused or split attempt is undone on every node.
//!
//! These locks also have a rising number, which stops an owner that was paused and writes late: see
//! [`proposal_number`]. A node that restarted without its data could give a lock away twice: see [`node_monitor`].
//!
//! A node lets a reader in beside readers, unless an earlier waiter wants the whole key. The majorities of a reader
//! and of a writer share a node, and that node refuses the second of them. Permits cannot be counted so: with two
//! permits on three nodes, each node lets two owners in, and three owners have a majority.
//!
//! A node keeps the lock as a single server does, so that clients of other libraries exclude these locks node by node. It also
//! keeps the queue of waiters, and one hash with the registers and its own name. A node gives a lock to no waiter, because one
//! node cannot know who holds a majority. It notifies its first waiter that the key is free, and the notified waiters try.

mod acquire;
#[cfg(all(test, feature = "test-util"))]
mod asked_tests;
mod bootstrap;
mod departing;
mod extend;
mod fan_out;
mod give_back;
mod hinted_handoff;
#[cfg(all(test, feature = "test-util"))]
mod late_record_tests;
mod late_votes;
mod leases;
#[cfg(all(test, feature = "test-util"))]
mod missed_tests;
#[cfg(test)]
mod model;
mod node;
mod node_monitor;
mod operator;
mod ping;
pub(crate) mod proposal_number;
mod raise;
#[cfg(test)]
mod ready_tests;
#[cfg(test)]
mod record_tests;
mod rejoin;
mod remember;
#[cfg(all(test, feature = "test-util"))]
mod repeated_tests;
mod round;
mod split_vote;
mod tally;
#[cfg(test)]
mod test_nodes;
#[cfg(all(test, feature = "test-util"))]
mod too_low_tests;
mod undo;
#[cfg(all(test, feature = "test-util"))]
mod undoing_tests;
mod vote_ledger;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::sync::{SetOnce, watch as changes};

use self::bootstrap::Bootstrap;
use self::leases::Leases;
use self::node::{Census, Node};
use self::proposal_number::ProposalNumbers;
use super::{
    AcquireRoute, BoxFuture, Events, Failure, Lane, Operation, Outcome, Store, StoreLimits,
};
use crate::audit::Finding;
use crate::base::acks::Acks;
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::machine::{self, Handle};
use crate::base::settings::Settings;
use crate::base::share::ShareLimit;
use crate::base::sync::lock;
use crate::base::token::{Address, Token, TokenSource};
use crate::lease::yield_turn::YieldedKeys;
use crate::timer::Timers;

/// The largest quorum. A set of nodes is a number with one bit for each node.
pub(crate) const MOST_NODES: usize = 15;
/// How long a manager that connects waits for the last few nodes when a majority has answered.
const STRAGGLERS: Duration = Duration::from_secs(1);

/// One node: its store, and its name in messages.
pub(crate) struct QuorumNode {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) shown: String,
}

pub(crate) struct QuorumStore {
    quorum: Arc<Quorum>,
}

/// The state that the store shares with the work that it leaves behind.
struct Quorum {
    nodes: Vec<Arc<Node>>,
    settings: Settings,
    timers: Arc<Timers>,
    numbers: ProposalNumbers,
    leases: Leases,
    yielded: YieldedKeys,
    names: TokenSource,
    known: Mutex<KnownNodes>,
    /// Notified when a node comes or goes.
    changed: Arc<changes::Sender<()>>,
    /// The runtime of the keeper's thread.
    keeper: SetOnce<Handle>,
    /// Cloned by each piece of work that delivers hints, or may leave one.
    unfinished: Arc<()>,
    /// When the last user of the manager was found gone.
    deserted: OnceLock<Moment>,
}

/// The facts that are known of the nodes.
struct KnownNodes {
    bootstrap: Bootstrap,
    /// The names of each node, once it has registered.
    names: Vec<Option<Vec<String>>>,
    /// How far the clock of each node is ahead of this process's, in microseconds.
    clocks: Vec<Option<i64>>,
    /// The error if two nodes are one server.
    same_server: Option<Error>,
}

impl QuorumStore {
    pub(crate) fn new(
        nodes: Vec<QuorumNode>,
        settings: Settings,
        timers: &Arc<Timers>,
        names: TokenSource,
    ) -> Arc<Self> {
        let changed = Arc::new(changes::Sender::new(()));
        let count = nodes.len();
        let nodes = nodes.into_iter().map(|node| Node::new(node, &changed));
        let bootstrap = Bootstrap::new(count, settings.assume_fresh, timers.now());
        Arc::new(Self {
            quorum: Arc::new(Quorum {
                nodes: nodes.collect(),
                settings,
                timers: Arc::clone(timers),
                numbers: ProposalNumbers::new(),
                leases: Leases::default(),
                yielded: YieldedKeys::default(),
                names,
                known: Mutex::new(KnownNodes {
                    bootstrap,
                    names: vec![None; count],
                    clocks: vec![None; count],
                    same_server: None,
                }),
                changed,
                keeper: SetOnce::new(),
                unfinished: Arc::default(),
                deserted: OnceLock::new(),
            }),
        })
    }
}

impl Store for QuorumStore {
    fn execute(&self, operation: Operation, lane: Lane) -> BoxFuture<'_, Outcome> {
        let quorum = &self.quorum;
        let refused = |words| -> BoxFuture<'_, Outcome> {
            Box::pin(std::future::ready(Outcome::Failed(Failure::refused(words))))
        };
        match operation {
            Operation::Acquire(acquire) => Box::pin(quorum.acquire(acquire, lane)),
            // No two nodes would take the keys in one step.
            Operation::AcquireAll(_) => Box::pin(std::future::ready(Outcome::Apart)),
            Operation::Raise(raise) => Box::pin(quorum.raise(raise, lane)),
            Operation::Extend(extensions) => Box::pin(quorum.extend(extensions, lane)),
            Operation::Release(_)
            | Operation::Vacate(_)
            | Operation::Leave(_)
            | Operation::Cool(..) => Box::pin(quorum.give_back(operation, lane)),
            Operation::Remember(release, record) => {
                Box::pin(quorum.remember(release, record, lane))
            }
            Operation::Forget(key) => Box::pin(quorum.forget(key, lane)),
            Operation::Clock(_) => {
                Box::pin(std::future::ready(Outcome::Failed(Error::invalid(
                    "a schedule counts its ticks by the clock of one server, and several independent servers have no \
                     common clock; take a manager of one server, of sentinels or of a cluster for it, and let the work \
                     check the fencing token",
                ).into())))
            }
            // The engine asks no such question, by the store's limits.
            Operation::Swap(_) => refused("a quorum does not swap tokens"),
            Operation::Operator(operator) => Box::pin(quorum.operate(operator, lane)),
            Operation::Vote(_) => refused("a quorum is no node of another one"),
        }
    }

    fn background(self: Arc<Self>, events: Events) -> BoxFuture<'static, ()> {
        let nodes = self.quorum.nodes.iter();
        let stores = nodes.map(|node| Arc::clone(&node.store).background(events.clone()));
        let stores: Vec<_> = stores.collect();
        let quorum = Arc::clone(&self.quorum);
        Box::pin(async move {
            let _ = quorum.keeper.set(machine::current_runtime());
            for store in stores {
                machine::spawn(store);
            }
            for node in 0..quorum.nodes.len() {
                machine::spawn(node_monitor::monitor(Arc::clone(&quorum), node));
            }
        })
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(self.quorum.ready())
    }

    fn ping(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(self.quorum.ping())
    }

    /// Lists the problems of all nodes that answer.
    fn audit(&self) -> BoxFuture<'_, Result<Vec<Finding>, Failure>> {
        Box::pin(async move {
            let mut findings = Vec::new();
            for (_, node) in self.quorum.up() {
                for finding in node.store.audit().await? {
                    if !findings.contains(&finding) {
                        findings.push(finding);
                    }
                }
            }
            Ok(findings)
        })
    }

    fn acquire_route(&self, manager: Address) -> AcquireRoute {
        // The nodes are stores of one kind. A waiter's token is the same on all of them, so its pushes arrive
        // at the manager's own address.
        AcquireRoute {
            lane: self.quorum.nodes[0].store.acquire_route(manager).lane,
            address: manager,
        }
    }

    fn limits(&self) -> StoreLimits {
        let nodes = self.quorum.nodes.iter().map(|node| node.store.limits());
        nodes.fold(StoreLimits::default(), |longest, node| StoreLimits {
            late_duplicate: longest.late_duplicate.max(node.late_duplicate),
            outage: longest.outage.max(node.outage),
            releases_refused: false,
            // One node cannot pass a lock on alone, and several would do so one after the other.
            swaps: false,
            hands_over: false,
            ..longest
        })
    }

    fn refuses_share(&self, limit: ShareLimit) -> Option<&'static str> {
        (!limit.is_reader()).then_some(
            "permits are not offered over several servers (Redlock), because two majorities can admit more owners than \
             the limit; use one server, Sentinel or Cluster",
        )
    }

    fn lingers(&self) -> bool {
        self.quorum.lingers(self.limits().late_duplicate)
    }

    fn acks(&self, token: Token) -> Acks {
        self.quorum.leases.acks(token, self.quorum.nodes.len())
    }
}

impl Quorum {
    fn quorum(&self) -> usize {
        tally::quorum(self.nodes.len())
    }

    /// How long a node may take. It is small against the ttl, and less than the caller waits for all nodes.
    fn patience(&self, ttl: Duration) -> Duration {
        (self.settings.operation_timeout / 5 * 4).min(ttl / 8)
    }

    /// Finishes work that was begun, even if its caller does not wait.
    fn leave_behind(&self, work: impl Future<Output = ()> + Send + 'static) {
        // Work that is dropped, because there is no keeper either, leaves hints.
        let here = machine::runtime();
        if let Some(runtime) = here.as_ref().or(self.keeper.get()) {
            let unfinished = Arc::clone(&self.unfinished);
            runtime.spawn(async move {
                work.await;
                drop(unfinished);
            });
        }
    }

    /// Returns whether the manager still has votes to withdraw. After the longest ttl every vote has ended, also on a
    /// node that never answers.
    fn lingers(&self, late_duplicate: Duration) -> bool {
        let now = self.timers.now();
        let deserted = *self.deserted.get_or_init(|| now);
        let open = Arc::strong_count(&self.unfinished) > 1
            || self.nodes.iter().any(|node| node.hints.any(now));
        open && now < deserted + self.settings.max_ttl + late_duplicate
    }

    /// The nodes that are worth asking.
    fn up(&self) -> impl Iterator<Item = (usize, &Arc<Node>)> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter(|(_, node)| node.is_up())
    }

    /// Waits for nodes that have not answered yet, if there are too few without them.
    async fn gather(&self) {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            let Census { up, new } = Node::census(&self.nodes);
            if up >= self.quorum() || new == 0 || changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// The failure of a quorum in which two nodes are one server.
    fn same_server(&self) -> Option<Failure> {
        let same_server = lock(&self.known).same_server.clone();
        same_server.map(Failure::from)
    }

    /// Waits until enough nodes answer. Fails if two of them are one server.
    async fn ready(&self) -> Result<(), Failure> {
        let mut changed = self.changed.subscribe();
        let start = self.timers.now();
        loop {
            changed.borrow_and_update();
            let Census { up, new } = Node::census(&self.nodes);
            let (enough, all_known) = (up >= self.quorum(), new == 0);
            let late = self.timers.now() >= start + STRAGGLERS;
            if let Some(same_server) = self.same_server() {
                return Err(same_server);
            }
            if enough && (all_known || late) {
                return Ok(());
            }
            if all_known {
                return Err(self.too_few(None));
            }
            tokio::select! {
                biased;
                changed = changed.changed() => if changed.is_err() {
                    return Err(Failure::refused("the lock manager has ended"));
                },
                () = self.timers.at(start + STRAGGLERS), if !late => {}
            }
        }
    }

    /// Explains why there is no majority. `kept_out`: how many nodes came back without data, and for how long
    /// they do not vote.
    fn too_few(&self, kept_out: Option<(usize, Duration)>) -> Failure {
        let of = self.nodes.len();
        let final_ones = self.nodes.iter().filter_map(|node| node.final_failure());
        let final_ones: Vec<Failure> = final_ones.collect();
        // With so many nodes that refuse for good there can never be a majority.
        if final_ones.len() > of - self.quorum()
            && let Some(failure) = final_ones.into_iter().next()
        {
            return failure;
        }
        let up = self.up().count();
        let mut message = format!(
            "no majority of the {of} nodes can be had: {up} of them answer, and it takes {}",
            self.quorum()
        );
        if let Some((count, wait)) = kept_out {
            let seconds = wait.as_secs_f64().ceil();
            message += &format!(
                "; {count} of these came without data, which they may have lost, and do not vote for \
                 another {seconds} s. `assume_fresh` has no effect on a server that a process has met: if \
                 none of them holds a lock, end all processes that use them, delete the namespace's key \
                 `!r` (`lockkit:!r`) on all of them, and begin with `assume_fresh`"
            );
        }
        Failure::refused(message)
    }
}

impl fmt::Debug for QuorumStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<&str> = self.quorum.nodes.iter().map(|node| &*node.shown).collect();
        f.debug_struct("QuorumStore")
            .field("nodes", &nodes)
            .finish_non_exhaustive()
    }
}
