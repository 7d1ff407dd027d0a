//! Faults that the model can contain, one at a time, to prove that the checks find them.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShareFault {
    /// A share that joins sets the end of the key, so that a shorter ttl cuts it.
    EndOfTheKeyIsCut,
    /// A renewal lengthens the share, and not the key.
    RenewalForgetsTheKey,
    /// The first release of several shares deletes the key.
    FirstReleaseFrees,
    /// A second share forgets the first one.
    FirstShareForgotten,
    /// A share for which no client listens is taken back by a deletion of the key.
    UndoneByDeletion,
    /// A newcomer that fits stands beside others although clients wait.
    NewcomersFirst,
    /// A waiter that leaves admits no other waiter.
    LeavingAdmitsNone,
    /// The limit of the client that releases counts for the first waiter.
    LimitOfTheReleaser,
    /// A reader stands beside permits, and a permit beside readers.
    ReadersBesidePermits,
    /// Shares that have ended are counted.
    EndedSharesCount,
    /// The release of a share does not raise the high-water mark.
    MarkNotRaised,
    /// The set of shares outlives its key.
    SetOutlivesItsKey,
    /// The repeated question of a share that is inside admits no waiter behind it.
    RepeatedQuestionAdmitsNone,
    /// A share that was given the key by the release of a plain lock asks no question.
    GivenShareNeverAsks,
    /// The end of an exclusive owner lets in the first waiter only.
    EndAdmitsOne,
    /// The reader that took the place of an owner asks no question.
    DowngradeNeverAsks,
    /// The swap of a downgrade leaves the owner's token.
    TokenOfBeforeIsKept,
    /// The swap of a downgrade counts although its answer comes after the end of the owner's lease.
    LateSwapCounts,
    /// A waiter that is let in although it has the key alone already is put into the set with its grant only.
    EnteringCutsItsOwnShare,
}
