//! The decided design, changes of it, and the faults of a world.

/// A key, by its place in the database.
pub(super) type Key = usize;

/// A set of keys, one bit each.
pub(super) type Keys = u8;

/// Decides whether the effect of a key exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arbiter {
    /// The handler's transaction begins with a claim, and completes it with the answer.
    Claim,
    /// The transaction inserts the record at its end. A conflict rolls it back.
    InsertAtEnd,
    /// The transaction inserts the record at its end with `ON CONFLICT DO NOTHING`, and ignores the number of rows.
    InsertOrNothing,
    /// The transaction inserts the record at its end, and the table has no unique index.
    NoUniqueIndex,
    /// A second transaction inserts the record.
    SecondTransaction,
    /// Each owner of the lock commits a row `started` before its transaction, which completes the row of any run.
    Started,
    /// The release of the lock leaves the record in Redis.
    RedisAtRelease,
    /// The record is written to Redis before the commit.
    RedisBeforeCommit,
}

/// A change of the decided design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Each process has a lock of its own, so the runs of two processes meet in the database.
    NoCommonLock,
    /// A run looks for no record before its claim.
    NoPeek,
    /// The caller of the run commits, after the run has released the lock.
    ReleaseBeforeCommit,
    /// Expired records are deleted.
    Sweeps,
    /// A sweep reads the names of expired records, and deletes the records of these names later.
    SweepsByName,
    AnswerBeforeCommit,
    /// A COMMIT without an answer counts as success.
    UnknownIsSuccess,
    /// After a COMMIT without an answer, the handler runs again at once, without a claim.
    UnknownRunsAgain,
    /// After a COMMIT without an answer, a read that finds no record counts as a rollback.
    UnknownIsRead,
    /// A claim that finds another row goes on.
    ClaimIgnoresRows,
    /// An answer that finds no claim is sent.
    CompleteIgnoresRows,
    /// A claim takes over a record that has not expired.
    TakesOverLiveRecord,
}

/// A fault of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The process of a run dies.
    Kill,
    /// A living owner loses its lock.
    LockLoss,
    /// The connection of a transaction breaks.
    Break,
    HandlerFails,
    /// The handler sends COMMIT itself. Each later statement commits alone.
    HandlerCommits,
    /// The database rolls back by itself, and the handler hides the error. Each later statement commits alone.
    RollsBackUnseen,
    Expiry,
    /// An operator deletes a record.
    Forget,
    /// A replica that lacks the last commit becomes the database.
    Failover,
}

/// A design, and the limits of its world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) arbiter: Arbiter,
    pub(super) changes: &'static [Change],
    /// Each fault happens at most once for each time that it stands here.
    pub(super) faults: &'static [Fault],
    /// The keys of each kind of request, in the order of their claims.
    pub(super) requests: &'static [&'static [Key]],
}

impl Limits {
    pub(super) fn has(&self, change: Change) -> bool {
        self.changes.contains(&change)
    }
}
