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

use std::time::Duration;

use super::RedisStore;
use super::native_acquire::ambiguous;
use crate::base::machine;
use crate::store::redis::topology::connections::Connections;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::send_error::SendError;
use crate::store::{AcquireCommand, Ended, Extended, Failure, Operation, Outcome, Remembered};

/// The channel of a runtime's lane for operations that replicas acknowledge.
pub(in crate::store::redis) const ACKNOWLEDGED: u8 = 1;

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

pub(in crate::store::redis) struct Replicas {
    pub(super) acks: ReplicaAcks,
    pub(in crate::store::redis) connections: Connections,
}

impl RedisStore {
    /// Waits until enough replicas have all writes of this connection, or fails.
    pub(super) async fn acknowledge(
        &self,
        replicas: &Replicas,
        on: &Connection,
    ) -> Result<(), SendError> {
        let runtime = match machine::runtime() {
            Some(here) => here,
            None => self.keeper_runtime.wait().await.clone(),
        };
        let ReplicaAcks { wanted, patience } = replicas.acks;
        let acknowledged = on.acknowledged(&runtime, wanted, patience).await?;
        if acknowledged >= u64::from(wanted) {
            return Ok(());
        }
        Err(SendError::Failed(Failure::refused(format!(
            "{acknowledged} of the {wanted} replicas that `replica_acks` asks for have acknowledged \
             the lock within {patience:?}; it was given back"
        ))))
    }

    /// Confirms an outcome that grants or lengthens a lease once replicas have it. `acquire`: the acquire, if it was one about
    /// one key.
    pub(super) async fn once_acknowledged(
        &self,
        replicas: &Replicas,
        acquire: Option<&AcquireCommand>,
        outcome: Outcome,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let is_written = match &outcome {
            Outcome::Granted(_)
            | Outcome::Remembered(Remembered::Yes)
            | Outcome::Swapped(Ended::Yes) => true,
            Outcome::Extended(answers) => answers.contains(&Extended::Yes),
            _ => false,
        };
        if !is_written {
            return Ok(outcome);
        }
        let Err(trouble) = self.acknowledge(replicas, on).await else {
            return Ok(outcome);
        };
        Ok(match (outcome, acquire, trouble) {
            // Sent again, a record or a swap finds what it wrote, and writes its end once more.
            (_, _, SendError::Broken(error)) => return Err(SendError::Broken(error)),
            (Outcome::Granted(_), Some(acquire), SendError::Failed(failure)) => {
                let undo = Operation::Release(acquire.undo());
                let undone = self.send(&undo, on).await;
                let undone = matches!(undone, Ok(Outcome::Released(Ended::Yes | Ended::Absent)));
                Outcome::Failed(Failure {
                    ambiguous: failure.ambiguous || !undone,
                    ..failure
                })
            }
            // The caller of several keys gives each of them back.
            (Outcome::Granted(_), None, SendError::Failed(failure)) => {
                Outcome::Failed(ambiguous(failure))
            }
            (Outcome::Granted(_), _, trouble) => return Err(trouble),
            // It is neither renewed for the full time nor lost. It is tried again until the deadline that replicas have
            // acknowledged.
            (Outcome::Extended(answers), ..) => {
                Outcome::Extended(answers.into_iter().map(unless_extended).collect())
            }
            (Outcome::Remembered(_), ..) => Outcome::Remembered(Remembered::Unacknowledged),
            (_, _, trouble) => Outcome::Failed(ambiguous(trouble.into_failure())),
        })
    }
}

pub(super) fn unless_extended(answer: Extended) -> Extended {
    match answer {
        Extended::Yes => Extended::Unknown,
        other => other,
    }
}
