//! Faults that the model can contain, one at a time, to prove that the checker finds them.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelFault {
    // Faults in the deadline of a key that was handed over.
    /// The deadline has no margin for the drift of the clocks.
    NoDriftMargin,
    /// The margin covers the grant, but not the wait before it.
    DriftMarginForGrantOnly,
    /// The deadline counts from the arrival of the push.
    DeadlineFromPush,
    /// The anchor's local moment is that of the answer, not of the request.
    AnchorFromAnswer,
    /// The server reports a later end than it has set.
    EndReportedTooLate,
    // Faults of the server.
    /// A release does not raise the high-water mark to the last token used.
    HighWaterMarkNotRaised,
    /// An acquire that supersedes its process's own release does not raise the high-water mark.
    SupersededWithoutHighWaterMark,
    /// A fencing token above the clock is not recorded at the grant.
    FutureTokenNotRecorded,
    /// The tokens for later tasks of such a lease are not recorded.
    PassesNotReserved,
    /// A process that hands a key over does not check on the new owner.
    HandOverNotChecked,
    /// A key in a cooldown keeps its owner's token.
    CooldownKeepsToken,
    /// A hand-over takes the clock as its fencing token, even below the high-water mark.
    GrantBelowHighWaterMark,
    /// The server does not check whether a process receives the push of the hand-over.
    HandedToDeadProcess,
    /// The next waiter is not told when the grant of the new owner ends.
    GrantNotAnnounced,
    /// A waiter believes in its ticket although the server refused the write.
    RefusedTicketBelieved,
    /// A ticket takes the clock as its position, even after the clock went back.
    TicketsByClock,
    /// A repeated acquire by the owner is a grant, but does not extend the lease.
    RepeatedAcquireDoesNotExtend,
    /// A late acquire sets the end of the lease, instead of only extending it.
    LateAcquireShortens,
    /// A late renewal sets the end of the lease, instead of only extending it.
    LateRenewalShortens,
    /// A release does not compare the token.
    ReleaseDoesNotCompare,
    /// A release that leaves a gap does not compare the token.
    GapDoesNotCompare,
    /// A release that leaves a gap does not raise the high-water mark.
    GapWithoutHighWaterMark,
    /// A release that leaves a gap hands the key to the first waiter.
    GapHandedOver,
    /// A release that leaves a gap does not tell the waiters when the gap ends.
    GapNotAnnounced,
    /// A record is stored where the key is absent.
    RecordStoredIfAbsent,
    /// A record is stored over the token of another owner.
    RecordDoesNotCompare,
    /// A record leaves the waiters in their queue, and tells them nothing.
    RecordKeepsItsQueue,
    /// A waiter enters the queue although a record stands.
    QueuedBehindRecord,
    /// An acquire supersedes any owner of the key.
    SupersedeDoesNotCompare,
    // Faults of a process.
    /// Two processes receive each other's pushes, and release grants that they did not request.
    SharedChannel,
    /// A cancelled waiter leaves its grant or its ticket behind.
    CancelledNotUndone,
    /// A request that timed out is forgotten, although it may arrive after its undoing.
    LateDuplicateForgotten,
    /// The answer to an earlier request counts for the last request.
    AnswerToEarlierRequest,
    /// A renewal's answer counts for a ttl that was set after the renewal was sent.
    RenewalCountsForNewerTtl,
    /// The lease passes to the next task although its deadline has passed.
    PassedAfterEnd,
    /// The lease passes from task to task without a limit.
    PassedWithoutBound,
    /// A process does not remember a pending cooldown.
    PendingCooldownForgotten,
    /// The next task supersedes a lease whose key is to cool down.
    CooldownSuperseded,
    /// A lease with a record passes to the next task.
    RecordPassedOn,
    /// The next task supersedes a lease whose record is on its way.
    RecordSuperseded,
    /// The second release of a lease is sent beside its record.
    UndoBesideRecord,
}
