//! One step of an operation on a lock whose slot is moving.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::Value;

use crate::base::fence::FencingToken;
use crate::base::record::Record;
use crate::base::sync::lock;
use crate::store::{AcquireCommand, Cooldown, Extension, Release, Swap};

/// One step of an operation.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// An acquire that does not queue.
    Acquire(AcquireCommand),
    /// Reads the high-water mark of a lock that was acquired.
    ReadMark(Arc<str>, Arc<Mutex<Value>>),
    /// Raises the high-water mark of a lock to the fencing token of a lease.
    Raise(Arc<str>, FencingToken),
    /// Replaces the token of a lock.
    Swap(Swap),
    /// Deletes the lock, or begins its cooldown.
    Free(Release, Option<Cooldown>),
    /// Leaves a record in the lock.
    Remember(Release, Arc<Record>),
    /// Lengthens a share in the lock, if it is a lone one, or else the lock.
    ExtendLock(Extension),
    /// Lengthens a share in the set of those that stand beside others.
    ExtendInSet(Extension),
    /// Reads the value of a lock that has several shares.
    ReadShared(Release, Arc<Sharing>),
    /// Ends a share that stands beside others.
    RemoveShare(Release, Arc<Sharing>),
    /// Deletes the lock if it still has the value that was read, because its last share has ended.
    FreeShared(Release, Arc<Sharing>),
    /// Leaves the queue, and tells the first waiters that the key is free after that long.
    Tell(Release, Duration),
    /// Takes an owner's entry from the queue.
    Unqueue(Release),
}

impl Part {
    pub(super) fn key(&self) -> &str {
        match self {
            Part::Acquire(acquire) => &acquire.key,
            Part::ExtendLock(share) | Part::ExtendInSet(share) => &share.key,
            Part::Swap(swap) => &swap.key,
            Part::ReadMark(key, _) | Part::Raise(key, _) => key,
            Part::Free(release, _)
            | Part::Remember(release, _)
            | Part::ReadShared(release, _)
            | Part::RemoveShare(release, _)
            | Part::FreeShared(release, _)
            | Part::Tell(release, _)
            | Part::Unqueue(release) => &release.key,
        }
    }

    pub(super) fn acquire(&self) -> Option<&AcquireCommand> {
        match self {
            Part::Acquire(acquire) => Some(acquire),
            _ => None,
        }
    }
}

/// The facts about a lock of several shares that the steps of a release read one after the other.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    /// The value of the lock, and its end in milliseconds of Unix time.
    pub(super) seen: Mutex<Option<(Box<str>, i64)>>,
    /// Whether the share of this release was the last one.
    pub(super) is_over: AtomicBool,
}

impl Sharing {
    pub(super) fn note(&self, seen: Option<(Box<str>, i64)>) {
        *lock(&self.seen) = seen;
    }
}
