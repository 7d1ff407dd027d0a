//! Operations on a key, and their replies.

use std::sync::Arc;

use super::Millis;
use crate::base::record::StoredRecord;
use crate::base::token::Token;

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Acquire(Acquire),
    /// Lengthens a lease to its ttl. Never creates one.
    Extend {
        token: Token,
        ttl: Millis,
    },
    /// Replaces the token of a lease by another one with an end of its own: a ticket, its use, a downgrade.
    Swap {
        from: Token,
        to: Token,
        ttl: Millis,
        /// The fencing token of a lock that others may enter when the second token is there.
        fence: Option<u64>,
    },
    End(End),
    /// Deletes a record or a cooldown, and never a token.
    Forget,
    Force(Force),
}

/// An operator's order against the holder that the operator has seen.
#[derive(Clone, Debug)]
pub(crate) struct Force {
    pub(crate) holder: Token,
    /// The fencing token that the holder has named.
    pub(crate) fence: Option<u64>,
    /// The time for which the key stays taken if the holder's process listens.
    pub(crate) grace: Millis,
    /// Whether a free key goes to the first waiter. One node of a quorum cannot know who holds a majority.
    pub(crate) serves: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Acquire {
    pub(crate) token: Token,
    pub(crate) ttl: Millis,
    pub(crate) grant: Millis,
    /// Whether the caller enters the queue if it is refused.
    pub(crate) waits: bool,
    /// A lease of the caller's process whose release is under way. Its key counts as free.
    pub(crate) replaces: Option<Token>,
    /// The fencing token of that lease, whose release arrives too late to report it.
    pub(crate) used: Option<u64>,
}

/// The end of a lease, or of a wait.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) token: Token,
    pub(crate) fence: Option<u64>,
    pub(crate) way: Way,
}

#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// The key goes to the waiters.
    Release,
    /// Only the queue is left, and no lease ends.
    Leave,
    /// The key stays free for this long, for clients that enter no queue.
    Vacate(Millis),
    /// The key stays taken until the later of two ends.
    Cool { span: Millis, until: Millis },
    /// A record takes the place of the token for its lifetime. Without memory for it, the token stays for its ttl.
    Remember {
        record: Arc<StoredRecord>,
        lifetime: Millis,
        ttl: Millis,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    /// With the fencing token.
    Granted(u64),
    Busy(Refused),
    /// None of several keys was taken, because the one with this index is another owner's.
    BusyAt(usize, Refused),
    /// Whether the lease was lengthened, or the token was replaced.
    Done(Ended),
    Ended {
        how: Ended,
        /// Whether the operation gave the key to a waiter.
        gave: bool,
    },
    /// The holder was told, and its key, or its share, stays taken for the grace.
    Told,
    /// With the token of the owner before.
    Forgotten(Token),
    /// There is no memory for it. Nothing was done, except that a lease without room for its record stays for its ttl.
    NoRoom,
}

/// Says what the operation found that ends or changes a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The lease, and it was done.
    Yes,
    /// There was no such key.
    Absent,
    /// The key is another owner's.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Refused {
    /// The time until the key ends, or until the caller must ask again. `None`: the key is free.
    pub(crate) left: Option<Millis>,
    /// Whether the caller has a place in the queue.
    pub(crate) queued: bool,
    /// As many shares are inside as the limit of the share that asks.
    pub(crate) is_full: bool,
}
