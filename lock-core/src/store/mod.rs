//! What a lock needs of a store, and nothing of how a store does it.
//!
//! One object-safe trait with one method for all operations: batching, a hand-over queue or several
//! keys at once will be new [`Operation`]s, not new methods. The outcomes tell three things apart
//! that must never be confused: *busy* (a fact), *not yours* (a fact), and *unknown*.

mod memory;
mod quorum;
#[cfg(feature = "redis")]
mod redis;
mod vote;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use self::vote::{VoteOperation, VoteOutcome};
use crate::audit::Finding;
pub(crate) use crate::base::BoxFuture;
use crate::base::acks::Acks;
use crate::base::clock::ServerTime;
use crate::base::error::{Error, ErrorKind};
use crate::base::fence::FencingToken;
use crate::base::token::{Address, Token};

#[cfg(feature = "redis")]
pub(crate) use self::redis::{RedisStore, ReplicaAcks, Servers};
pub(crate) use memory::MemoryStore;
pub(crate) use quorum::{MOST_NODES, QuorumNode, QuorumSettings, QuorumStore};

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

/// One thing to do in the store. Keys are the user's; the store adds its namespace.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Acquire(Acquire),
    /// Lengthens leases to their ttl. Never creates one.
    Extend(Vec<Extension>),
    /// Deletes the key if it is this lease's, leaves the queue of waiters, and gives a key that is
    /// free to the next one.
    Release(Release),
    /// As [`Release`](Operation::Release), but the key is given to no waiter: it is left free for
    /// [`GAP`](crate::lease::cohort::GAP), and those who wait first ask after that.
    Vacate(Release),
    /// Leaves the queue of waiters, and gives a key that is free to the next one. Never deletes it.
    Leave(Release),
    /// Replaces the value of this lease by a closed one that nobody can extend or release, for
    /// the cooldown; in the way of [`Release`](Operation::Release) otherwise.
    Cool(Release, Duration),
    /// Whether anybody stands in the queue of waiters. The lease goes on from task to task of its
    /// process, up to [`MOST`](crate::lease::cohort::MOST) times more from the answer on: no fencing token
    /// that it takes on the way may be another's.
    Look(Release),
    /// Asked of one node of a quorum.
    Vote(VoteOperation),
}

impl Operation {
    /// The key that it is about; of several, the first.
    #[cfg(feature = "redis")]
    pub(crate) fn key(&self) -> &str {
        match self {
            Operation::Acquire(acquire) => &acquire.key,
            Operation::Extend(extensions) => extensions.first().map_or("", |first| &first.key),
            Operation::Release(release)
            | Operation::Vacate(release)
            | Operation::Leave(release)
            | Operation::Cool(release, _)
            | Operation::Look(release) => &release.key,
            Operation::Vote(vote) => vote.key(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Acquire {
    pub(crate) key: Arc<str>,
    pub(crate) token: Token,
    pub(crate) ttl: Duration,
    /// Whether to stand in the queue of waiters when refused.
    pub(crate) queue: bool,
    /// This process's own token on the key whose release is still under way: as good as free.
    pub(crate) replaces: Option<Replaced>,
    /// Whether an earlier send of this token may have arrived.
    pub(crate) repeated: bool,
}

#[cfg(feature = "redis")]
impl Acquire {
    /// Whether it is a first attempt, with nothing to step over and no wish to be queued.
    pub(crate) fn is_first(&self) -> bool {
        !self.queue && !self.repeated && self.replaces.is_none()
    }
}

/// A lease of this process that has ended, and that the store may not have heard the end of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replaced {
    pub(crate) token: Token,
    /// Its fencing token, if it was granted: its release comes too late to say it.
    pub(crate) fence: Option<FencingToken>,
}

#[derive(Clone, Debug)]
pub(crate) struct Extension {
    pub(crate) key: Arc<str>,
    pub(crate) token: Token,
    pub(crate) ttl: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Release {
    pub(crate) key: Arc<str>,
    pub(crate) token: Token,
    /// That of its acquire.
    pub(crate) ttl: Duration,
    /// The fencing token of the lease, if it was granted: no later one may be lower.
    pub(crate) fence: Option<FencingToken>,
    /// Whether nobody waits for the answer: several servers are then all told before it counts as done.
    pub(crate) in_background: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Granted(FencingToken),
    Busy(Refusal),
    /// One answer for each extension, in order.
    Extended(Vec<Extended>),
    Released(Released),
    /// Whether anybody waits.
    Waiting(bool),
    /// The answer of one node of a quorum.
    Vote(VoteOutcome),
    /// Not done, or not known to be done.
    Failed(Failure),
    /// The answer to the last of several sends of an acquire. An earlier send may still arrive.
    Repeated(Box<Outcome>),
}

impl Outcome {
    /// As the answer to the last of several sends, of which an earlier one was not answered.
    ///
    /// Late copies of a renewal, a release or a cooldown change nothing, because they act on the stored
    /// token of their own lease only. A late copy of an acquire takes the key.
    pub(crate) fn of_the_last_send(self) -> Self {
        match self {
            granted_or_not @ (Outcome::Granted(_) | Outcome::Busy(_)) => {
                Outcome::Repeated(Box::new(granted_or_not))
            }
            // The first send may have been the one that released it.
            Outcome::Released(_) => Outcome::Released(Released::Yes),
            Outcome::Vote(vote) => Outcome::Vote(vote.of_the_last_send()),
            Outcome::Failed(failure) => Outcome::Failed(Failure {
                ambiguous: true,
                ..failure
            }),
            outcome => outcome,
        }
    }
}

/// The store's word that another owner holds the key.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// The owner's work is done; a cooldown runs.
    pub(crate) cooling: bool,
    /// How long the key stays taken if nobody extends it; `None`: it never expires.
    pub(crate) remaining: Option<Duration>,
    /// Whether the owner's release will be pushed to the waiter that was refused: it stands in the queue, it
    /// hears pushes, and the owner is a client that tells the queue. Otherwise it looks again by itself.
    pub(crate) pushed: bool,
    /// What the server's clock showed, to a waiter that it may give the key to.
    pub(crate) server_time: Option<ServerTime>,
}

/// A key that the store has given to a waiter, unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) fence: FencingToken,
    /// When it ends, by the server's clock.
    pub(crate) ends: ServerTime,
}

impl Refusal {
    pub(crate) fn to_error(&self) -> Error {
        Error::busy(self.cooling, self.remaining)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extended {
    Yes,
    /// The key is gone or another owner's.
    NotOurs,
    /// Nothing is known about this key.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Released {
    Yes,
    /// There was no such key.
    Absent,
    /// The key is another owner's.
    Other,
}

/// Why an operation gave no answer that counts.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// Whether the operation may have happened all the same, now or later.
    pub(crate) ambiguous: bool,
}

impl Failure {
    /// The store will never accept this operation, and did nothing.
    #[cfg(feature = "redis")]
    pub(crate) fn misconfigured(message: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self {
            error: Error::new(ErrorKind::Misconfigured, message),
            ambiguous: false,
        }
    }

    /// The store answered, in a way that leaves nothing done.
    pub(crate) fn refused(message: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self {
            error: Error::unavailable(message),
            ambiguous: false,
        }
    }

    /// There was no answer.
    pub(crate) fn unanswered(message: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self {
            error: Error::unavailable(message),
            ambiguous: true,
        }
    }

    /// An answer that is not understood is never a grant.
    pub(crate) fn not_understood() -> Self {
        Self::unanswered("the store's answer was not understood")
    }

    /// Whether trying again cannot help.
    pub(crate) fn is_final(&self) -> bool {
        self.error.kind() != ErrorKind::Unavailable
    }
}

/// What a store has to say unasked.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// Something for the waiter with this token.
    News {
        key: Arc<str>,
        token: Token,
        /// For how long the key is given to it, as its place in the queue says: the place is left by that.
        grant: Duration,
        news: News,
    },
    /// Pushes may have been missed, or none come for now: every waiter asks again.
    Interrupted,
    /// All data was deleted (`FLUSHALL`): leases are gone, and so are the queues.
    Flushed,
}

/// What a waiter is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The key may be free now: ask.
    Ask,
    /// The key is this waiter's.
    Given(Grant),
    /// The next turn is this waiter's: ask after this long, if nothing comes before.
    Next(Duration),
}

/// The manager that a store tells its events.
#[derive(Clone)]
pub(crate) struct Events {
    pub(crate) manager: Address,
    listener: Arc<dyn Fn(Event) + Send + Sync>,
}

impl Events {
    pub(crate) fn new(manager: Address, listener: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self {
            manager,
            listener: Arc::new(listener),
        }
    }

    /// Never call it with a lock held.
    pub(crate) fn tell(&self, event: Event) {
        (self.listener)(event);
    }
}

impl Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Events")
    }
}
