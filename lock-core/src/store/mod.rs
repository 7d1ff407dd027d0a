//! What a lock needs of a store, and nothing of how a store does it.
//!
//! One object-safe trait with one method for all operations: batching, a hand-over queue or several
//! keys at once will be new [`Operation`]s, not new methods. The outcomes tell three things apart
//! that must never be confused: *busy* (a fact), *not yours* (a fact), and *unknown*.

mod event;
mod memory;
mod operation;
mod outcome;
mod quorum;
#[cfg(feature = "redis")]
mod redis;
mod vote;

use std::fmt::Debug;
use std::sync::Arc;

use crate::audit::Finding;
pub(crate) use crate::base::BoxFuture;
use crate::base::acks::Acks;
use crate::base::token::{Address, Token};

pub(crate) use self::event::{Event, Events, News};
pub(crate) use self::memory::MemoryStore;
pub(crate) use self::operation::{Acquire, Extension, Operation, Release, Replaced};
pub(crate) use self::outcome::{Extended, Failure, Outcome, Released};
pub(crate) use self::quorum::{MOST_NODES, QuorumNode, QuorumSettings, QuorumStore};
#[cfg(feature = "redis")]
pub(crate) use self::redis::{RedisStore, ReplicaAcks, Servers};
pub(crate) use crate::lease::{Grant, Refusal};

/// Where locks live. Private until 1.0: the operations are still growing.
///
/// Every operation may be sent twice with one token and then answers the same: the same grant,
/// never two. Dropping the future of an operation says nothing about whether it happened.
pub(crate) trait Store: Debug + Send + Sync {
    /// Runs one operation. Resolves whenever the store answers or its link breaks; how long to wait
    /// for that is the caller's business.
    fn execute(&self, operation: Operation, lane: Lane) -> BoxFuture<'_, Outcome>;

    /// What the store does on its own for as long as its manager lives: connect, receive pushes,
    /// reconnect. Runs on the keeper's thread; what must precede the first operation is done by the
    /// time the call returns.
    fn background(self: Arc<Self>, events: Events) -> BoxFuture<'static, ()>;

    /// Resolves when the store can be used, or says why it cannot.
    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>>;

    /// What is wrong with how the store is set up.
    fn audit(&self) -> BoxFuture<'_, Result<Vec<Finding>, Failure>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Keys of one number live on one server, those of others elsewhere: what is the matter with one
    /// of them must not keep the others waiting.
    fn shard(&self, _key: &str) -> u32 {
        0
    }

    /// The lane of the calling task, to be able to undo on it what was sent on it.
    fn lane(&self) -> Lane {
        Lane::Keeper
    }

    /// As [`lane`](Store::lane), for acquires and what undoes them.
    fn acquiring_lane(&self) -> Lane {
        self.lane()
    }

    /// Whether the key went from waiter to waiter a moment ago: whoever wants to wait asks to be queued
    /// at once.
    fn is_contended(&self, _key: &str) -> bool {
        false
    }

    /// Where a waiter is told what becomes of it, if it asks on this lane.
    fn address(&self, manager: Address, _lane: Lane) -> Address {
        manager
    }

    /// The lane of the calling task, if whatever is sent by it from now on is done in that order; and
    /// whether so much goes by it that it goes together.
    fn ordered_lane(&self) -> Option<(Lane, bool)> {
        None
    }

    /// On how many servers the lease stands, of how many.
    fn acks(&self, _: Token) -> Acks {
        Acks::ONE_OF_ONE
    }
}

/// Which link an operation goes by. Within one lane operations arrive in the order they were sent;
/// nothing relies on an order between lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The keeper's own link, driven by its thread.
    Keeper,
    /// The link of one of the application's runtimes, driven there.
    #[cfg(feature = "redis")]
    Runtime(tokio::runtime::Id),
    /// As those, for what replicas have to acknowledge before it counts; `None`: the keeper's.
    #[cfg(feature = "redis")]
    Acknowledged(Option<tokio::runtime::Id>),
}

#[cfg(feature = "redis")]
impl Lane {
    /// Whether the calling task may connect it, if need be.
    pub(crate) fn is_here(self) -> bool {
        match self {
            Lane::Keeper | Lane::Acknowledged(None) => true,
            Lane::Runtime(runtime) | Lane::Acknowledged(Some(runtime)) => {
                tokio::runtime::Handle::try_current().is_ok_and(|handle| handle.id() == runtime)
            }
        }
    }
}
