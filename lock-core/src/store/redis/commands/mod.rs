//! The operations of locks as commands and scripts, and the way of each one to the server that has its key.

mod cluster;
mod dispatch;
mod fast_path;
mod native_acquire;
mod operator;
mod part;
mod release;
mod renewal;
pub(super) mod replicas;
mod script_acquire;
mod several;
mod shares;
mod vote;
mod vote_shares;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::sync::SetOnce;

use self::release::ReleaseKind;
use self::replicas::{ACKNOWLEDGED, ReplicaAcks, Replicas};
use self::shares::SharedKeys;
use super::topology::connections::Connections;
use super::topology::keeper_connection::KeeperConnection;
use super::topology::{ServerId, Servers, Topology};
use super::wire::connection::Connection;
use super::wire::keyspace::Keyspace;
use super::wire::login::Login;
use super::wire::reply::{self, Pushes};
use super::wire::scripts::{self, Scripts};
use super::wire::send_error::SendError;
use super::wire::spans::millis;
use crate::base::error::Error;
use crate::base::machine::{self, Handle};
use crate::base::settings::Settings;
use crate::base::token::Token;
use crate::store::handed_off::HandedOff;
use crate::store::{Failure, Lane, Operation, Outcome, Swap};

pub(crate) struct RedisStore {
    pub(super) topology: Arc<Topology>,
    pub(super) names: Arc<Keyspace>,
    pub(super) scripts: &'static Scripts,
    pub(super) connections: Connections,
    pub(super) keeper: Arc<KeeperConnection>,
    /// The connections of locks that replicas acknowledge, if they do.
    pub(super) replicas: Option<Replicas>,
    /// The runtime of the keeper's thread.
    pub(super) keeper_runtime: SetOnce<Handle>,
    /// How long an operation looks for a server that can serve it.
    pub(super) patience: Duration,
    pub(super) handed_off: HandedOff,
    pub(super) shared: SharedKeys,
    /// Whether all servers so far know `SET … NX GET`, which is new in Redis 7.0.
    pub(super) sets_and_gets: AtomicBool,
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
                self.end_lease(release, ReleaseKind::FreeShare, on).await
            }
            Operation::Leave(release) if self.ends_as_share(release) => {
                self.end_lease(release, ReleaseKind::LeaveShare, on).await
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
        let (from, to, ttl) = (swap.from.text(), swap.to.text(), millis(swap.ttl));
        let arguments = [from.as_str(), to.as_str(), &ttl];
        let answer = match swap.fence {
            None => scripts::SWAP.run(on, &[&lock], &arguments).await?,
            Some(fence) => {
                let mark = self.names.mark_for(&swap.key);
                let [from, to, ttl] = arguments;
                let arguments = [from, to, ttl, &fence.to_string()];
                scripts::SWAP.run(on, &[&lock, &mark], &arguments).await?
            }
        };
        Ok(reply::swapped(&answer))
    }
}
