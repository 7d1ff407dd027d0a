//! Operations on a key, and their replies.

use super::Millis;
use crate::base::token::Token;

#[derive(Clone, Debug)]
pub(super) enum Operation {
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
    },
    End(End),
    /// Deletes a record or a cooldown, and never a token.
    Forget,
    Force(Force),
}

/// An operator's order against the holder that the operator has seen.
#[derive(Clone, Debug)]
pub(super) struct Force {
    pub(super) holder: Token,
    /// The fencing token that the holder has named.
    pub(super) fence: Option<u64>,
    /// The time for which the key stays taken if the holder's process listens.
    pub(super) grace: Millis,
}

#[derive(Clone, Debug)]
pub(super) struct Acquire {
    pub(super) token: Token,
    pub(super) ttl: Millis,
    pub(super) grant: Millis,
    /// Whether the caller enters the queue if it is refused.
    pub(super) waits: bool,
    /// A lease of the caller's process whose release is under way. Its key counts as free.
    pub(super) replaces: Option<Token>,
    /// The fencing token of that lease, whose release arrives too late to report it.
    pub(super) used: Option<u64>,
}

/// The end of a lease, or of a wait.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) token: Token,
    pub(super) fence: Option<u64>,
    pub(super) way: Way,
}

#[derive(Clone, Debug)]
pub(super) enum Way {
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
        record: Vec<u8>,
        lifetime: Millis,
        ttl: Millis,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Yes,
    /// The key is free.
    Absent,
    /// The key is another owner's.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Refused {
    /// The time until the key ends, or until the caller must ask again. `None`: the key is free.
    pub(super) left: Option<Millis>,
    /// Whether the caller has a place in the queue.
    pub(super) queued: bool,
    /// As many shares are inside as the limit of the share that asks.
    pub(super) is_full: bool,
}
