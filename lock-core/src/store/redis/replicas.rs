//! Locks that replicas have acknowledged: `WAIT` behind the write, on the connection that wrote.
//!
//! `WAIT` stops every later command of its connection, even a `PING` for half a second. So these writes,
//! acquires and renewals, have connections of their own: one for each runtime that acquires, and one for the
//! keeper's renewals. Other operations use the usual connections. `WAIT` counts the writes of its own
//! connection. Tasks that wait at the same time share one, but never one that was sent before their write was
//! answered. A slow `WAIT` delays only operations that it would fail too.
//!
//! A key that a release handed off was written by the releaser, so the waiter asks, writes the key itself, and
//! waits. A lease that passes inside a process is not written, so the replicas know all of it. A renewal that
//! finds its end late enough writes it once more, because the first write may have gone by a connection that
//! broke before it was acknowledged. With too few acknowledgements an acquire is released behind itself, and a
//! renewal counts as unanswered.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::sync::SetOnce;

use super::RedisStore;
use super::connection::Connection;
use super::connections::Connections;
use super::keyspace::Keyspace;
use super::send_error::SendError;
use super::topology::{ServerId, Topology};
use crate::base::fence::FencingToken;
use crate::store::{AcquireCommand, Extended, Failure, Operation, Outcome, Release, Released};

/// The channel of a runtime's lane for operations that replicas acknowledge.
pub(super) const ACKNOWLEDGED: u8 = 1;

/// How many replicas must acknowledge a lock, and how long the server waits for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplicaAcks {
    pub(crate) wanted: u16,
    patience: Duration,
}

impl ReplicaAcks {
    /// `None`: no replica has to. An operation may wait behind two of these waits and has one of its own, all
    /// within its own timeout.
    pub(crate) fn new(wanted: u16, operation_timeout: Duration) -> Option<Self> {
        (wanted > 0).then(|| Self {
            wanted,
            // Never 0, which means for ever.
            patience: (operation_timeout / 4).max(Duration::from_millis(1)),
        })
    }
}

pub(super) struct Replicas {
    acks: ReplicaAcks,
    connections: Connections,
    /// The keeper's runtime, for renewals and for callers outside of any runtime.
    keeper: SetOnce<Handle>,
}

impl Replicas {
    pub(super) fn new(acks: ReplicaAcks, topology: &Arc<Topology>, names: &Arc<Keyspace>) -> Self {
        Self {
            acks,
            connections: Connections::new(topology, names),
            keeper: SetOnce::new(),
        }
    }

    /// Notes the keeper's runtime. Called on it once.
    pub(super) fn run_on_this_runtime(&self) {
        let _ = self.keeper.set(Handle::current());
    }

    /// Returns the connection of a runtime, or the keeper's, if it is open.
    pub(super) fn open_connection(
        &self,
        runtime: Option<Id>,
        node: ServerId,
    ) -> Option<Connection> {
        let runtime = match runtime {
            Some(runtime) => runtime,
            None => self.keeper.get()?.id(),
        };
        self.connections.of(runtime, node)
    }

    pub(super) async fn connection(
        &self,
        runtime: Option<Id>,
        node: ServerId,
    ) -> Result<Connection, Failure> {
        match (runtime, Handle::try_current()) {
            (None, _) => self.connections.on(self.keeper.wait().await, node).await,
            (Some(runtime), Ok(here)) if here.id() == runtime => {
                self.connections.on(&here, node).await
            }
            // An undo that must follow a command on its connection is not sent on another one.
            (Some(_), _) => Err(Failure::refused("that runtime's connection is gone")),
        }
    }

    /// Waits until enough replicas have all writes of this connection, or fails.
    pub(super) async fn acknowledge(&self, on: &Connection) -> Result<(), SendError> {
        let runtime = match Handle::try_current() {
            Ok(here) => here,
            Err(_) => self.keeper.wait().await.clone(),
        };
        let ReplicaAcks { wanted, patience } = self.acks;
        let acknowledged = on.acknowledged(&runtime, wanted, patience).await?;
        if acknowledged >= u64::from(wanted) {
            return Ok(());
        }
        Err(SendError::Failed(Failure::refused(format!(
            "{acknowledged} of the {wanted} replicas that `replica_acks` asks for have acknowledged \
             the lock within {patience:?}; it was given back"
        ))))
    }
}

impl RedisStore {
    /// Confirms an outcome that grants or lengthens a lease once replicas have it. `acquire`: the acquire, if
    /// it was one.
    pub(super) async fn once_acknowledged(
        &self,
        replicas: &Replicas,
        acquire: Option<&AcquireCommand>,
        outcome: Outcome,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        match (acquire, outcome) {
            (Some(acquire), Outcome::Granted(fence)) => {
                self.granted(replicas, acquire, fence, on).await
            }
            (_, Outcome::Extended(answers)) if answers.contains(&Extended::Yes) => {
                match replicas.acknowledge(on).await {
                    Ok(()) => Ok(Outcome::Extended(answers)),
                    Err(SendError::Broken(error)) => Err(SendError::Broken(error)),
                    // It is neither renewed for the full time nor lost. It is tried again until the deadline
                    // that replicas have acknowledged.
                    Err(_) => Ok(Outcome::Extended(
                        answers.into_iter().map(unless_extended).collect(),
                    )),
                }
            }
            (_, outcome) => Ok(outcome),
        }
    }

    async fn granted(
        &self,
        replicas: &Replicas,
        acquire: &AcquireCommand,
        fence: FencingToken,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let failure = match replicas.acknowledge(on).await {
            Ok(()) => return Ok(Outcome::Granted(fence)),
            Err(SendError::Failed(failure)) => failure,
            Err(trouble) => return Err(trouble),
        };
        let release = Release {
            key: acquire.key.clone(),
            token: acquire.token,
            ttl: acquire.ttl,
            // No owner has seen it.
            fence: None,
            in_background: true,
        };
        let undone = self.send(&Operation::Release(release), on).await;
        let undone = matches!(
            undone,
            Ok(Outcome::Released(Released::Yes | Released::Absent))
        );
        Ok(Outcome::Failed(Failure {
            ambiguous: failure.ambiguous || !undone,
            ..failure
        }))
    }
}

fn unless_extended(answer: Extended) -> Extended {
    match answer {
        Extended::Yes => Extended::Unknown,
        other => other,
    }
}
