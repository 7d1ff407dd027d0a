//! Locks that replicas have acknowledged: `WAIT` behind the write, on the connection that wrote.
//!
//! `WAIT` stops whatever stands behind it on its connection, so these writes have connections of
//! their own: one for each runtime that acquires, and one for the keeper's renewals. Releases, and
//! all that needs no acknowledgement, go where they always go.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::sync::SetOnce;

use super::RedisStore;
use super::connection::Connection;
use super::connections::Links;
use super::keyspace::Names;
use super::send_error::Trouble;
use super::topology::{Node, Topology};
use crate::base::fence::FencingToken;
use crate::store::{Acquire, Extended, Failure, Operation, Outcome, Release, Released};

/// The channel of a runtime's lane for operations that replicas acknowledge.
pub(super) const ACKNOWLEDGED: u8 = 1;

/// How many replicas are to acknowledge a lock, and how long the server waits for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplicaAcks {
    pub(crate) wanted: u16,
    patience: Duration,
}

impl ReplicaAcks {
    /// `None`: no replica has to. An operation may stand behind two of these waits and has one of its
    /// own, all within its own time.
    pub(crate) fn new(wanted: u16, operation_timeout: Duration) -> Option<Self> {
        (wanted > 0).then(|| Self {
            wanted,
            // Never 0, which is for ever.
            patience: (operation_timeout / 4).max(Duration::from_millis(1)),
        })
    }
}

pub(super) struct Replicas {
    acks: ReplicaAcks,
    links: Links,
    /// The keeper's runtime: renewals are sent there, and what comes from outside of any runtime.
    keeper: SetOnce<Handle>,
}

impl Replicas {
    pub(super) fn new(acks: ReplicaAcks, topology: &Arc<Topology>, names: &Arc<Names>) -> Self {
        Self {
            acks,
            links: Links::new(topology, names),
            keeper: SetOnce::new(),
        }
    }

    /// To be called on the keeper's runtime, once.
    pub(super) fn run_on_this_runtime(&self) {
        let _ = self.keeper.set(Handle::current());
    }

    /// The connection of a runtime, or the keeper's, if it is there and alive.
    pub(super) fn open_connection(&self, runtime: Option<Id>, node: Node) -> Option<Connection> {
        let runtime = match runtime {
            Some(runtime) => runtime,
            None => self.keeper.get()?.id(),
        };
        self.links.of(runtime, node)
    }

    pub(super) async fn connection(
        &self,
        runtime: Option<Id>,
        node: Node,
    ) -> Result<Connection, Failure> {
        match (runtime, Handle::try_current()) {
            (None, _) => self.links.on(self.keeper.wait().await, node).await,
            (Some(runtime), Ok(here)) if here.id() == runtime => self.links.on(&here, node).await,
            // What is to be undone behind another command is not undone behind it elsewhere.
            (Some(_), _) => Err(Failure::refused("that runtime's connection is gone")),
        }
    }

    /// Whether enough replicas have what was written on this connection; or what to say.
    pub(super) async fn acknowledge(&self, on: &Connection) -> Result<(), Trouble> {
        let runtime = match Handle::try_current() {
            Ok(here) => here,
            Err(_) => self.keeper.wait().await.clone(),
        };
        let ReplicaAcks { wanted, patience } = self.acks;
        let acknowledged = on.acknowledged(&runtime, wanted, patience).await?;
        if acknowledged >= u64::from(wanted) {
            return Ok(());
        }
        Err(Trouble::Failed(Failure::refused(format!(
            "{acknowledged} of the {wanted} replicas that `replica_acks` asks for have acknowledged \
             the lock within {patience:?}; it was given back"
        ))))
    }
}

impl RedisStore {
    /// What an operation was answered on this connection counts once replicas have it, where it grants
    /// or lengthens something. `acquire`: if it was one.
    pub(super) async fn once_acknowledged(
        &self,
        replicas: &Replicas,
        acquire: Option<&Acquire>,
        outcome: Outcome,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        match (acquire, outcome) {
            (Some(acquire), Outcome::Granted(fence)) => {
                self.granted(replicas, acquire, fence, on).await
            }
            (_, Outcome::Extended(answers)) if answers.contains(&Extended::Yes) => {
                match replicas.acknowledge(on).await {
                    Ok(()) => Ok(Outcome::Extended(answers)),
                    Err(Trouble::Broken(error)) => Err(Trouble::Broken(error)),
                    // Not the time that was asked for, and no loss either: tried again until the
                    // deadline that replicas have acknowledged.
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
        acquire: &Acquire,
        fence: FencingToken,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        let failure = match replicas.acknowledge(on).await {
            Ok(()) => return Ok(Outcome::Granted(fence)),
            Err(Trouble::Failed(failure)) => failure,
            Err(trouble) => return Err(trouble),
        };
        let release = Release {
            key: acquire.key.clone(),
            token: acquire.token,
            ttl: acquire.ttl,
            // Nobody has seen it.
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
