//! Operations that a manager asks of a store.

use std::sync::Arc;
use std::time::Duration;

use super::operator::OperatorOperation;
use super::vote::VoteOperation;
use crate::base::fence::FencingToken;
use crate::base::record::Record;
use crate::base::token::Token;

/// One thing to do in the store. Keys are the user's; the store adds its namespace.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Acquire(AcquireCommand),
    /// Takes all keys, each for its own token, or none of them. A key that its token has already counts as free.
    ///
    /// Only for keys of one [place](crate::store::Place). The one fencing token is above all earlier ones of each key.
    AcquireAll(AcquireAll),
    /// Sees to it that no later fencing token of a held key is lower than this one, nor than those of the tasks that
    /// the lease passes to. For a key of several whose fencing token came from another server.
    Raise(Raise),
    /// Lengthens leases to their ttl. Never creates one.
    Extend(Vec<Extension>),
    /// Deletes the key if it holds this lease's token, leaves the queue of waiters, and gives a free key
    /// to the first waiter.
    Release(Release),
    /// As [`Release`](Operation::Release), but leaves the key free for [`GAP`](crate::lease::cohort::GAP). The
    /// first waiter is told to ask after that.
    Vacate(Release),
    /// Leaves the queue of waiters, and gives a free key to the first waiter. Never deletes the key.
    Leave(Release),
    /// Replaces the token by a closed value, which no client can extend or release, for the cooldown.
    /// Otherwise as [`Release`](Operation::Release), and also if the end of the cooldown has passed.
    Cool(Release, Cooldown),
    /// Replaces the token by a record for its lifetime, and tells all waiters. The key counts as cooling down.
    ///
    /// Where the token does not stand, nothing is written. Where the record cannot be written for want of memory,
    /// the token stands for one more ttl.
    Remember(Release, Arc<Record>),
    /// Deletes a record or a cooldown, and never a token.
    Forget(Arc<str>),
    /// Reads the clock by which the keys of the server end that has this key. A quorum has no such clock.
    Clock(Arc<str>),
    /// Replaces the token of a lease by another token with an end of its own. Where the second token stands already, it
    /// is only lengthened.
    ///
    /// The key is never free in between, so the fencing token stays the same, and no waiter is notified.
    Swap(Swap),
    /// A question to one node of a quorum.
    Vote(VoteOperation),
    /// A question or an order of an operator.
    Operator(OperatorOperation),
}

impl Operation {
    /// The operation's key; of several keys, the first.
    #[cfg(feature = "redis")]
    pub(crate) fn key(&self) -> &str {
        match self {
            Operation::Acquire(acquire) => &acquire.key,
            Operation::AcquireAll(all) => all.leases.first().map_or("", |(first, _)| first),
            Operation::Raise(raise) => &raise.key,
            Operation::Extend(extensions) => extensions.first().map_or("", |first| &first.key),
            Operation::Release(release)
            | Operation::Vacate(release)
            | Operation::Leave(release)
            | Operation::Cool(release, _)
            | Operation::Remember(release, _) => &release.key,
            Operation::Forget(key) | Operation::Clock(key) => key,
            Operation::Swap(swap) => &swap.key,
            Operation::Vote(vote) => vote.key(),
            Operation::Operator(operator) => operator.key(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct AcquireCommand {
    pub(crate) key: Arc<str>,
    pub(crate) token: Token,
    pub(crate) ttl: Duration,
    pub(crate) queueing: Queueing,
    /// The lease of this process whose release is still under way. The store counts its key as free.
    pub(crate) replaces: Option<Replaced>,
    /// Whether an earlier send of this token may have arrived.
    pub(crate) repeated: bool,
}

impl AcquireCommand {
    /// The release that undoes it.
    pub(crate) fn undo(&self) -> Release {
        Release {
            key: Arc::clone(&self.key),
            token: self.token,
            ttl: self.ttl,
            fence: None,
            in_background: true,
        }
    }

    /// Returns whether a refusal puts it into the queue of waiters.
    pub(crate) fn queues(&self) -> bool {
        self.queueing == Queueing::Always
    }

    /// Returns whether it is a first attempt, which supersedes no lease and enters no queue.
    #[cfg(feature = "redis")]
    pub(crate) fn is_first(&self) -> bool {
        !self.queues() && !self.repeated && self.replaces.is_none()
    }
}

/// Several keys to take at once.
#[derive(Clone, Debug)]
pub(crate) struct AcquireAll {
    /// The keys with their tokens.
    pub(crate) leases: Vec<(Arc<str>, Token)>,
    pub(crate) ttl: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Raise {
    pub(crate) key: Arc<str>,
    pub(crate) token: Token,
    pub(crate) ttl: Duration,
    pub(crate) fence: FencingToken,
}

/// Says whether a refused acquire enters the store's queue of waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queueing {
    /// Its caller does not wait.
    Never,
    /// Its caller waits, and asks again if it was not queued.
    ///
    /// A store that expects a refusal queues it now and so saves the second question. Others take it for
    /// [`Never`](Queueing::Never).
    IfContended,
    Always,
}

/// A lease of this process that has ended, maybe before the store has heard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replaced {
    pub(crate) token: Token,
    /// The fencing token, if the lease was granted: its release arrives too late to report it.
    pub(crate) fence: Option<FencingToken>,
}

#[derive(Clone, Debug)]
pub(crate) struct Extension {
    pub(crate) key: Arc<str>,
    pub(crate) token: Token,
    pub(crate) ttl: Duration,
}

impl Extension {
    /// The acquire that takes the lease again.
    pub(crate) fn acquire(&self) -> AcquireCommand {
        AcquireCommand {
            key: Arc::clone(&self.key),
            token: self.token,
            ttl: self.ttl,
            queueing: Queueing::Never,
            replaces: None,
            repeated: false,
        }
    }
}

/// For how long a key stays taken after its owner: until the later of two ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cooldown {
    /// Counted from the moment at which the store does it.
    pub(crate) span: Duration,
    /// By the store's clock, in milliseconds of Unix time. Zero has always passed.
    pub(crate) until_millis: u64,
}

/// The replacement of one token by another.
#[derive(Clone, Debug)]
pub(crate) struct Swap {
    pub(crate) key: Arc<str>,
    pub(crate) from: Token,
    pub(crate) to: Token,
    /// For how long the second token stands.
    pub(crate) ttl: Duration,
    /// The fencing token of a lock that becomes a share: those that enter beside the share have higher ones.
    pub(crate) fence: Option<FencingToken>,
}

#[derive(Clone, Debug)]
pub(crate) struct Release {
    pub(crate) key: Arc<str>,
    pub(crate) token: Token,
    /// The ttl of the lease's acquire.
    pub(crate) ttl: Duration,
    /// The fencing token of the lease, if it was granted: no later one may be lower.
    pub(crate) fence: Option<FencingToken>,
    /// Whether no caller waits for the answer. A quorum then tells all nodes before it counts as done, and in a cluster whose
    /// slot moves it fails where the queue cannot be reached.
    pub(crate) in_background: bool,
}
