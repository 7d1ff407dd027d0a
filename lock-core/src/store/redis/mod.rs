//! Locks on Redis: on one server, on the master that sentinels name, or on a cluster. All knowledge of Redis is
//! in this folder and in `scripts/`.
//!
//! A waiter that is refused enters the queue of the key. The release's script hands the lock off: it sets the
//! key to the first waiter's token, for its *grant* (two seconds, or its ttl if that is shorter), and pushes it
//! the fencing token and the grant's end. So a hand-over needs no second question and has no race. A push
//! without receivers shows that the process is gone, and the next waiter gets the lock. The waiter's deadline
//! comes from the server's clock in its last refusal: see [`Anchor`](crate::lease::deadline::Anchor). How waiters learn
//! of a key that was deleted by hand is in `engine/events.rs`.

mod care;
mod commands;
mod topology;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::commands::RedisStore;
use self::commands::replicas::ACKNOWLEDGED;
pub(crate) use self::commands::replicas::ReplicaAcks;
pub(crate) use self::topology::Servers;
use self::wire::connection::UNACKNOWLEDGED;
use self::wire::slots::HashSlot;
use super::{
    AcquireRoute, BoxFuture, Events, Failure, Lane, Operation, Outcome, Place, Queueing,
    ReleaseRoute, Store, StoreLimits,
};
use crate::audit::Finding;
use crate::base::machine;
use crate::base::token::Address;

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
                self.handed_off.check(|look| self.ask(look, Lane::KEEPER)),
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
            let slot = HashSlot::of(&self.names.lock(key));
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
            late_duplicate: UNACKNOWLEDGED + Duration::from_secs(1),
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
