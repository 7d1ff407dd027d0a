//! Answers of a store. *Busy*, *not ours* and *unknown* are three different answers.

use super::operator::{Forced, OperatorOutcome};
use super::vote::VoteOutcome;
use crate::base::clock::ServerTime;
use crate::base::error::{Error, ErrorKind};
use crate::base::fence::FencingToken;
use crate::base::token::Token;
use crate::lease::{Extended, Refusal};
use crate::protocol::Ended;

#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The lease ends for its owner by [`deadline`](crate::lease::deadline::deadline), counted from before the
    /// operation was handed to the store. Of several keys all are granted.
    Granted(FencingToken),
    Busy(Refusal),
    /// None of several keys was taken, because the one with this index is another owner's.
    BusyAt(usize, Refusal),
    /// None of several keys was taken, because they are not in one place at the moment.
    Apart,
    /// The mark is high enough.
    Raised,
    /// One answer for each extension, in order.
    Extended(Vec<Extended>),
    Released(Ended),
    Remembered(Remembered),
    /// With the token of the lease whose record or cooldown was deleted.
    Forgotten(Forgotten, Option<Token>),
    Clock(ServerTime),
    /// `Yes`: the second token has the key.
    Swapped(Ended),
    /// The answer of one node of a quorum.
    Vote(VoteOutcome),
    Operator(OperatorOutcome),
    /// Not done, or not known to be done.
    Failed(Failure),
    /// The answer to the last of several sends of an acquire or of a swap. An earlier send may still arrive.
    Repeated(Box<Outcome>),
}

impl Outcome {
    /// Marks the answer to the last of several sends, of which an earlier one was not answered.
    ///
    /// The answer to a record does not change: a copy of it that was sent before finds its own record, and a key that
    /// is absent may have lost the record since.
    ///
    /// Late copies of a renewal, a release, a cooldown or a swap change nothing, because they act on the stored
    /// token of their own lease only. A late copy of an acquire takes the key, and then a late copy of a swap of its
    /// token finds that token.
    pub(crate) fn of_the_last_send(self) -> Self {
        match self {
            answer @ (Outcome::Granted(_)
            | Outcome::Busy(_)
            | Outcome::BusyAt(..)
            | Outcome::Apart
            | Outcome::Swapped(_)) => Outcome::Repeated(Box::new(answer)),
            // The first send may have released it.
            Outcome::Released(_) => Outcome::Released(Ended::Yes),
            // The first send may have deleted it.
            Outcome::Forgotten(Forgotten::Nothing, owner) => {
                Outcome::Forgotten(Forgotten::Yes, owner)
            }
            Outcome::Vote(vote) => Outcome::Vote(vote.of_the_last_send()),
            // The first send may have freed the key, or the holder had changed before.
            Outcome::Operator(OperatorOutcome::Forced(Forced::Changed)) => {
                Outcome::Failed(Failure::unanswered(
                    "the answer to the order was lost, and the holder that was seen is gone by now; inspect the key again",
                ))
            }
            Outcome::Failed(failure) => Outcome::Failed(Failure {
                ambiguous: true,
                ..failure
            }),
            outcome => outcome,
        }
    }

    /// Returns true if this answers a request that ends a lease.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self, Outcome::Released(_) | Outcome::Remembered(_))
    }
}

/// The answer to a record at the end of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remembered {
    Yes,
    /// As `Yes`, and too few replicas or nodes have acknowledged it.
    Unacknowledged,
    /// There was no such key.
    Absent,
    /// The key is another owner's.
    Other,
    /// There was no memory for the record. The token stands for one more ttl.
    NoRoom,
}

/// Says whether a key had a record or a cooldown, as [`LockManager::forget`](crate::LockManager::forget) reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Forgotten {
    /// The record or the cooldown was deleted.
    Yes,
    /// The key was free.
    Nothing,
    /// An owner holds the lock, and keeps it.
    Held,
}

/// Says why an operation gave no answer that counts.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// Whether the operation may have happened all the same, now or later.
    pub(crate) ambiguous: bool,
    /// Whether the waiter may stand in a queue all the same, now or later, such as that of one node of a quorum.
    pub(crate) queued: bool,
}

/// Says that nothing was done.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            error,
            ambiguous: false,
            queued: false,
        }
    }
}

impl Failure {
    /// The store will never accept this operation, and did nothing.
    #[cfg(any(feature = "redis", feature = "postgres"))]
    pub(crate) fn misconfigured(message: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::Misconfigured, message).into()
    }

    /// The store answered, and did nothing.
    pub(crate) fn refused(message: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Error::unavailable(message).into()
    }

    /// There was no answer.
    pub(crate) fn unanswered(message: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self {
            ambiguous: true,
            ..Self::refused(message)
        }
    }

    /// The answer was not understood, which is never a grant.
    pub(crate) fn not_understood() -> Self {
        Self::unanswered("the store's answer was not understood")
    }

    /// Returns whether trying again cannot help.
    pub(crate) fn is_final(&self) -> bool {
        self.error.kind() != ErrorKind::Unavailable
    }
}
