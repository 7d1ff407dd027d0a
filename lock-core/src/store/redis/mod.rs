//! Locks on Redis: on one server, on the master that sentinels name, or on a cluster. All knowledge of Redis is
//! in this folder and in `scripts/`.
//!
//! A waiter that is refused enters the queue of the key. The release's script hands the lock off: it sets the
//! key to the first waiter's token, for its *grant* (two seconds, or its ttl if that is shorter), and pushes it
//! the fencing token and the grant's end. So a hand-over needs no second question and has no race. A push
//! without receivers shows that the process is gone, and the next waiter gets the lock. The waiter's deadline
//! comes from the server's clock in its last refusal: see [`Anchor`](crate::lease::deadline::Anchor). How waiters learn
//! of a key that was deleted by hand is in `engine/events.rs`.

mod audit;
mod batch;
mod batch_flush;
mod cards;
mod cluster;
mod connection;
mod connections;
mod dispatch;
mod fast_path;
mod handed_off;
mod health;
mod keeper_connection;
mod keyspace;
mod login;
mod native_acquire;
mod operator;
mod operator_reply;
mod probe;
mod push;
mod release;
mod renewal;
mod replicas;
mod reply;
mod script_acquire;
mod scripts;
mod send_error;
mod server;
mod several;
mod shares;
mod slots;
mod spans;
mod tls;
mod topology;
mod version;
mod vote;
mod vote_shares;
mod wait;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::sync::SetOnce;

use self::connection::Connection;
use self::connections::Connections;
use self::handed_off::HandedOff;
use self::keeper_connection::KeeperConnection;
use self::keyspace::Keyspace;
use self::login::Login;
use self::release::ReleaseKind;
pub(crate) use self::replicas::ReplicaAcks;
use self::replicas::{ACKNOWLEDGED, Replicas};
use self::reply::Pushes;
use self::scripts::Scripts;
use self::send_error::SendError;
use self::shares::{ShareEnd, SharedKeys};
use self::spans::{grant, grant_in_millis, in_millis, millis};
pub(crate) use self::topology::Servers;
use self::topology::{ServerId, Topology};
use super::{
    AcquireRoute, BoxFuture, Events, Failure, Lane, Operation, Outcome, Place, Queueing,
    ReleaseRoute, Store, StoreLimits, Swap,
};
use crate::audit::Finding;
use crate::base::error::Error;
use crate::base::machine::{self, Handle};
use crate::base::settings::Settings;
use crate::base::token::{Address, Token};

pub(crate) struct RedisStore {
    topology: Arc<Topology>,
    names: Arc<Keyspace>,
    scripts: &'static Scripts,
    connections: Connections,
    keeper: Arc<KeeperConnection>,
    /// The connections of locks that replicas acknowledge, if they do.
    replicas: Option<Replicas>,
    /// The runtime of the keeper's thread.
    keeper_runtime: SetOnce<Handle>,
    /// How long an operation looks for a server that can serve it.
    patience: Duration,
    handed_off: HandedOff,
    shared: SharedKeys,
    /// Whether all servers so far know `SET … NX GET`, which is new in Redis 7.0.
    sets_and_gets: AtomicBool,
}

impl RedisStore {
    /// # Errors
    ///
    /// For a namespace that cannot be used on these servers.
    pub(crate) fn new(
        servers: Servers,
        settings: &Settings,
        replica_acks: Option<ReplicaAcks>,
    ) -> Result<Arc<Self>, Error> {
        let topology = Arc::new(Topology::of(
            servers,
            settings.credentials.clone().map(Login::by),
        )?);
        let names = Keyspace::checked(settings.namespace.clone())?;
        let (names, scripts) = match topology.is_cluster() {
            true => (names.in_slots()?, &scripts::ON_A_NODE),
            false => (names, &scripts::ON_ONE_SERVER),
        };
        let names = Arc::new(names);
        let wanted = replica_acks.map_or(0, |acks| acks.wanted);
        let keeper = KeeperConnection::new(&topology, &names, settings.connect_timeout, wanted);
        Ok(Arc::new(Self {
            connections: Connections::new(&topology, &names),
            keeper: Arc::new(keeper),
            replicas: replica_acks.map(|acks| Replicas {
                acks,
                connections: Connections::new(&topology, &names),
            }),
            handed_off: HandedOff::default(),
            shared: SharedKeys::default(),
            sets_and_gets: AtomicBool::new(true),
            names,
            scripts,
            topology,
            keeper_runtime: SetOnce::new(),
            // The caller gives up after twice as long, and could not say why.
            patience: settings.operation_timeout / 2,
        }))
    }

    /// Returns the connections of a lane; `None`: it goes by the keeper's connection.
    fn connections(&self, lane: Lane) -> Option<&Connections> {
        match &self.replicas {
            Some(replicas) if lane.channel() == ACKNOWLEDGED => Some(&replicas.connections),
            _ if lane.runtime().is_some() || self.topology.is_cluster() => Some(&self.connections),
            _ => None,
        }
    }

    /// Returns the open connection of a lane. The keeper undoes on another runtime's connection too.
    fn open_connection(&self, lane: Lane, node: ServerId) -> Option<Connection> {
        let Some(connections) = self.connections(lane) else {
            return self.keeper.open_connection(node);
        };
        let runtime = match lane.runtime() {
            Some(runtime) => runtime,
            None => self.keeper_runtime.get()?.id(),
        };
        connections.of(runtime, node)
    }

    async fn connection(&self, lane: Lane, node: ServerId) -> Result<Connection, Failure> {
        let Some(connections) = self.connections(lane) else {
            return self.keeper.connection_to(node).await;
        };
        match (lane.runtime(), machine::runtime()) {
            (None, _) => connections.on(self.keeper_runtime.wait().await, node).await,
            (Some(runtime), Some(here)) if here.id() == runtime => {
                connections.on(&here, node).await
            }
            // An undo that must follow a command on its connection is not sent on another one.
            _ => Err(Failure::refused("that runtime's connection is gone")),
        }
    }

    /// Says what a push is worth to a waiter that was refused on this connection.
    ///
    /// A pushed grant counts by the clock that the refusal showed, and on one server only: elsewhere another server,
    /// with another clock, may give the key. Where replicas acknowledge locks, the grant was written on another
    /// connection, of which `WAIT` on the waiter's own says nothing. The waiter then asks, and so writes the key.
    fn pushes_to(&self, waiter: Token, on: &Connection) -> Pushes {
        Pushes {
            arrive: on
                .tells(waiter)
                .unwrap_or_else(|| self.keeper.is_listening()),
            are_grants: self.topology.is_one_server() && self.replicas.is_none(),
        }
    }

    async fn send(&self, operation: &Operation, on: &Connection) -> Result<Outcome, SendError> {
        if let Some(mut fast) = self.fast_path(operation, on) {
            return self.send_fast(&mut fast, on).await;
        }
        match operation {
            Operation::Acquire(acquire) => self.acquire_by_script(acquire, on).await,
            Operation::AcquireAll(all) => self.acquire_all(all, on).await,
            Operation::Raise(raise) => self.raise(raise, on).await,
            Operation::Extend(extensions) => self.extend(extensions, on).await,
            Operation::Release(release) if self.ends_as_share(release) => {
                self.end_share(release, ShareEnd::Free, on).await
            }
            Operation::Leave(release) if self.ends_as_share(release) => {
                self.end_share(release, ShareEnd::Leave, on).await
            }
            Operation::Release(release) => self.end_lease(release, ReleaseKind::Free, on).await,
            Operation::Vacate(release) => self.end_lease(release, ReleaseKind::Vacate, on).await,
            Operation::Leave(release) => self.end_lease(release, ReleaseKind::Leave, on).await,
            Operation::Cool(release, cooldown) => {
                self.end_lease(release, ReleaseKind::Cool(*cooldown), on)
                    .await
            }
            Operation::Remember(release, record) => self.remember(release, record, on).await,
            Operation::Forget(key) => {
                let lock = self.names.lock(key);
                let answer = scripts::FORGET.run(on, &[&lock], &[]).await?;
                Ok(reply::forgotten(&answer))
            }
            Operation::Clock(key) => {
                let lock = self.names.lock(key);
                let answer = scripts::CLOCK.run(on, &[&lock], &[]).await?;
                Ok(reply::clock(&answer))
            }
            Operation::Swap(swap) => self.swap(swap, on).await,
            Operation::Vote(vote) => self.vote(vote, on).await,
            Operation::Operator(operator) => Box::pin(self.operate(operator, on)).await,
        }
    }

    async fn swap(&self, swap: &Swap, on: &Connection) -> Result<Outcome, SendError> {
        let lock = self.names.lock(&swap.key);
        let (from, to) = (swap.from.text(), swap.to.text());
        let arguments = [from.as_str(), to.as_str(), &millis(swap.ttl)];
        let answer = scripts::SWAP.run(on, &[&lock], &arguments).await?;
        Ok(reply::swapped(&answer))
    }
}

impl Store for RedisStore {
    fn execute(&self, operation: Operation, lane: Lane) -> BoxFuture<'_, Outcome> {
        let mut operation = operation;
        let lane = match (&mut operation, &self.replicas) {
            (Operation::Extend(_), Some(_)) => Lane::KEEPER.on_channel(ACKNOWLEDGED),
            (Operation::Remember(..) | Operation::Swap(_), Some(_)) => {
                lane.on_channel(ACKNOWLEDGED)
            }
            (Operation::Acquire(acquire), _) if acquire.queueing == Queueing::IfContended => {
                // A key that went from waiter to waiter a moment ago is taken.
                let contended = match acquire.token.share() {
                    Some(_) => self.shared.is_shared_by(acquire),
                    None => self.handed_off.has(&acquire.key),
                };
                acquire.queueing = match contended {
                    true => Queueing::Always,
                    false => Queueing::Never,
                };
                lane
            }
            _ => lane,
        };
        self.ask(operation, lane)
    }

    fn background(self: Arc<Self>, events: Events) -> BoxFuture<'static, ()> {
        // In a cluster waiters are notified wherever their manager listens, and only there.
        if !self.topology.is_cluster() {
            self.connections.listen(events.clone());
        }
        let (manager, identity) = (events.manager, events.identity.clone());
        Box::pin(async move {
            let runtime = machine::current_runtime();
            // The connections that renew leases, where it is not the keeper's own.
            match &self.replicas {
                Some(replicas) => replicas.connections.watch(runtime.id(), events.clone()),
                None if self.topology.is_cluster() => {
                    self.connections.watch(runtime.id(), events.clone());
                }
                None => {}
            }
            let _ = self.keeper_runtime.set(runtime);
            tokio::join!(
                self.keeper.run(events),
                self.topology.watch(),
                self.topology.keep_credentials(),
                self.check_handed_off(),
                self.keep_cards(manager, identity),
            );
        })
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            self.keeper.connection().await?;
            self.keeper.audited.wait().await;
            Ok(())
        })
    }

    /// Asks on the keeper's connection, which leads to the server that has the locks; in a cluster to one master.
    fn ping(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            let (connection, _) = self.keeper.connection().await?;
            connection.probe(&self.names, self.topology.probe()).await
        })
    }

    fn audit(&self) -> BoxFuture<'_, Result<Vec<Finding>, Failure>> {
        let keeper = Arc::clone(&self.keeper);
        Box::pin(async move {
            let runtime = self.keeper_runtime.wait().await;
            let findings = runtime.spawn(async move {
                let (connection, home) = keeper.connection().await?;
                keeper.findings(home, &connection).await
            });
            findings
                .await
                .unwrap_or_else(|_| Err(Failure::refused("the lock manager has ended")))
        })
    }

    fn shard(&self, key: &str) -> u32 {
        self.topology.cluster().map_or(0, |cluster| {
            let slot = slots::HashSlot::of(&self.names.lock(key));
            cluster.known_owner(slot).map_or(u32::MAX, |node| node.0)
        })
    }

    fn place(&self, keys: &[Arc<str>]) -> Place {
        self.place_of(keys)
    }

    fn acquire_route(&self, manager: Address) -> AcquireRoute {
        let lane = Lane::of_this_task();
        if self.replicas.is_some() {
            let lane = lane.on_channel(ACKNOWLEDGED);
            return AcquireRoute {
                lane,
                address: manager,
            };
        }
        // In a cluster waiters are notified wherever their manager listens, and only there.
        let runtime = lane.runtime().filter(|_| !self.topology.is_cluster());
        AcquireRoute {
            lane,
            address: runtime.map_or(manager, |runtime| manager.on(runtime)),
        }
    }

    fn release_route(&self) -> Option<ReleaseRoute> {
        let lane = Lane::of_this_task();
        lane.runtime()?;
        let (_, connection) = self.at_hand(lane)?;
        Some(ReleaseRoute {
            lane,
            batched: connection.is_busy(),
        })
    }

    fn limits(&self) -> StoreLimits {
        StoreLimits {
            // The sockets give up by then, and their unsent bytes are lost.
            late_duplicate: connection::UNACKNOWLEDGED + Duration::from_secs(1),
            releases_refused: self.replicas.is_some(),
            ..StoreLimits::default()
        }
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("address", &self.topology.address())
            .finish_non_exhaustive()
    }
}
