//! The interface between locks and the places that keep them.
//!
//! A store keeps keys, each with a token and an end, and a queue of waiters for each key. There are four: the
//! embedded one ([`memory`]), Redis ([`redis`]), PostgreSQL (`postgres`, over `cells`), and several stores as one
//! ([`quorum`]). The rest of the crate knows a store by the trait [`Store`] only.
//!
//! # Writing a store
//!
//! A new kind of store is one folder here, one line below that names it, and one scheme in `api/url`.
//!
//! 1. [`Store::execute`] runs an [`Operation`]. The comments of its variants are the contract. Three rules hold for
//!    all of them:
//!    * An operation that is sent twice with one token has the same effect as once: one grant, never two.
//!    * [`Outcome::Busy`] and [`Ended::Other`] are facts that the store has seen. A store that does not know answers
//!      [`Outcome::Failed`], and says by [`Failure::ambiguous`] whether the operation may have happened.
//!    * A fencing token is above every fencing token that the store gave or was told of for the key before.
//! 2. [`Store::background`] connects, reconnects and reports [`Event`]s for as long as the manager lives.
//!    A waiter also polls, so a lost event costs time and never a lock.
//! 3. [`Store::limits`] says how late a duplicate may arrive, and how long an outage is waited out.
//! 4. A store with several connections chooses the lanes ([`Store::acquire_route`], [`Store::release_route`]).
//!
//! A lease ends for its owner by a local deadline, counted from before the operation was handed to the store
//! ([`deadline`](crate::lease::deadline)). A store that knows the end itself, because it keeps a session alive for
//! example, adds that end to [`Outcome::Granted`] and to [`Grant`](crate::lease::Grant), and an [`Event`] for a
//! lease that it has lost: each is one field or one variant, and one arm in `engine/`.
//!
//! The conformance suite (`tests/it/conformance`) runs each of its cases on every store, and so says whether a store
//! keeps the contract. Add the store to its macro `on_every_store`.

#[cfg(feature = "postgres")]
mod cells;
mod event;
#[cfg(any(feature = "redis", feature = "postgres"))]
mod handed_off;
mod lane;
mod memory;
#[cfg(lock_sim)]
mod noted;
mod operation;
#[cfg(all(test, feature = "redis"))]
mod operation_tests;
mod operator;
mod outcome;
#[cfg(feature = "postgres")]
mod postgres;
mod quorum;
#[cfg(feature = "redis")]
mod redis;
mod steps;
mod vote;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use crate::audit::Finding;
pub(crate) use crate::base::BoxFuture;
use crate::base::acks::Acks;
use crate::base::share::ShareLimit;
use crate::base::token::{Address, Token};
use crate::lease::backoff::OUTAGE;

#[cfg(feature = "postgres")]
pub(crate) use self::cells::CellStore;
#[cfg(all(lock_sim, feature = "postgres"))]
pub use self::cells::by_words as cell_by_words;
pub(crate) use self::event::{Event, Events, News};
pub(crate) use self::lane::{AcquireRoute, Lane, ReleaseRoute};
pub(crate) use self::memory::MemoryStore;
#[cfg(lock_sim)]
pub(crate) use self::noted::Noted;
pub(crate) use self::operation::{
    AcquireAll, AcquireCommand, Cooldown, Extension, Operation, Queueing, Raise, Release, Replaced,
    Swap,
};
pub use self::operator::Forced;
pub(crate) use self::operator::{
    Answer, CardName, ClosedFor, Force, Held, Inspect, Inspected, OperatorOperation,
    OperatorOutcome, Pattern, Question, Scan, ScanCursor, Scanned, StoredHolder, Told,
};
pub use self::outcome::Forgotten;
pub(crate) use self::outcome::{Failure, Outcome, Remembered};
#[cfg(feature = "postgres")]
pub use self::postgres::POSTGRES_SCHEMA;
#[cfg(feature = "postgres")]
pub(crate) use self::postgres::{PostgresCells, PostgresUrl};
pub(crate) use self::quorum::{MOST_NODES, QuorumNode, QuorumStore};
#[cfg(feature = "redis")]
pub(crate) use self::redis::{RedisStore, ReplicaAcks, Servers};
pub(crate) use crate::lease::{Extended, Grant, Refusal};
pub(crate) use crate::protocol::Ended;

/// A place that keeps locks. Private until 1.0, because the operations are still growing.
///
/// All operations share one method, so that a new one is a variant of [`Operation`]. Dropping the future of an
/// operation says nothing about whether the operation happened.
pub(crate) trait Store: Debug + Send + Sync {
    /// Runs one operation.
    ///
    /// Resolves when the store answers or its connection breaks. The caller decides how long it waits for that.
    fn execute(&self, operation: Operation, lane: Lane) -> BoxFuture<'_, Outcome>;

    /// Connects, receives pushes and reconnects, for as long as the manager lives.
    ///
    /// Runs on the keeper's thread. Whatever must precede the first operation is done when the call returns.
    fn background(self: Arc<Self>, events: Events) -> BoxFuture<'static, ()>;

    /// Resolves when the store can be used, or says why it cannot.
    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>>;

    /// Asks the store one question now: whether it answers, and lets this client take locks.
    fn ping(&self) -> BoxFuture<'_, Result<(), Failure>>;

    /// Lists problems of the store's settings.
    fn audit(&self) -> BoxFuture<'_, Result<Vec<Finding>, Failure>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Names the part of the store that has the key, so that trouble with one part does not delay the others.
    fn shard(&self, _key: &str) -> u32 {
        0
    }

    /// Says where several keys are.
    fn place(&self, _keys: &[Arc<str>]) -> Place {
        Place::Apart
    }

    /// Chooses the lane of an acquire by the calling task, and the address of its pushes.
    fn acquire_route(&self, manager: Address) -> AcquireRoute {
        AcquireRoute {
            lane: Lane::KEEPER,
            address: manager,
        }
    }

    /// Chooses the lane of a release that the calling task does not wait for; `None`: the keeper sends it.
    ///
    /// A later acquire of the task must arrive behind it, by the same lane.
    fn release_route(&self) -> Option<ReleaseRoute> {
        None
    }

    /// Says how late a duplicate may arrive and how long an outage is waited out.
    fn limits(&self) -> StoreLimits {
        StoreLimits::default()
    }

    /// Says why the store cannot offer such shares, if it cannot.
    fn refuses_share(&self, _: ShareLimit) -> Option<&'static str> {
        None
    }

    /// Returns SQL that finds a row while an owner has a key, by the key and the fencing token.
    fn check_sql(&self) -> Option<&'static str> {
        None
    }

    /// Says why the store has no gaps for clients of other libraries, if it has none.
    fn refuses_interop(&self) -> Option<&'static str> {
        None
    }

    /// Returns whether the store still has votes to withdraw. The keeper asks when the last handle is dropped.
    fn lingers(&self) -> bool {
        false
    }

    /// Counts the servers that hold the lease.
    fn acks(&self, _: Token) -> Acks {
        Acks::ONE_OF_ONE
    }
}

/// The place of several keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In one place with one clock and one high-water mark: [`Operation::AcquireAll`] takes them together.
    Together,
    /// In several places. Each key is taken by itself, and the marks are [raised](Operation::Raise) to the highest of the fencing
    /// tokens. A store with [`check_sql`](Store::check_sql) raises the tokens of keys in one place, too.
    Apart,
}

/// The times that depend on the kind of store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreLimits {
    /// A command that was sent and not answered has arrived by then, or never will. An acquire that may
    /// arrive late is undone once more after this time.
    pub(crate) late_duplicate: Duration,
    /// A waiter gives up when its questions have failed for this long.
    pub(crate) outage: Duration,
    /// Whether the store itself releases an acquire that it cannot grant. The release may arrive late, so the waiter
    /// asks for another lease then.
    pub(crate) releases_refused: bool,
    /// Whether the store runs [`Operation::Swap`].
    pub(crate) swaps: bool,
    /// The store gives a released key to the first waiter of its queue.
    pub(crate) hands_over: bool,
    /// Whether a lease may pass on in its process while no other process waits. Otherwise it goes back after
    /// [one count](crate::lease::cohort::MOST_IN_A_COUNT), because there are no more fencing tokens for it.
    pub(crate) long_cohorts: bool,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            late_duplicate: Duration::from_secs(6),
            outage: OUTAGE,
            releases_refused: false,
            swaps: true,
            hands_over: true,
            long_cohorts: true,
        }
    }
}
