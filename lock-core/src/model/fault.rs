//! What the model can be made to do wrong, one thing at a time. A checker that finds none of these
//! would find nothing.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    // The deadline of a key that was given.
    /// No margin for the drift of the clocks.
    NoDrift,
    /// A margin for the grant, none for the waiting before it.
    DriftOfTheGrantOnly,
    /// Counted from the push's arrival.
    DeadlineFromThePush,
    /// The anchor's local instant is that of the answer, not of the question.
    AnchorFromTheAnswer,
    /// The server names a later end than it has set: it has read its clock once more.
    EndSaidLater,
    // The server's side of it.
    /// The next fencing token does not know of the last one used.
    MarkNotRaised,
    /// Nor does that of a process that steps over its own release.
    SteppedOverWithoutTheMark,
    /// A fencing token above the clock is not remembered.
    MarkNotWrittenAhead,
    /// What the other tasks of its lease use is not remembered either.
    PassesAreNotReserved,
    /// Whoever gives a key away does not see to it that somebody comes.
    NobodyLooksAfterAGivenKey,
    /// A key that cools down keeps its owner's token.
    CooledByItsToken,
    /// A key is given with the clock for its fencing token, whatever was used before.
    GivenBelowTheMark,
    /// One batch gives the key to two waiters.
    ATakenKeyIsGiven,
    /// Nobody looks whether the push was received.
    GivenToWhoHasGone,
    /// The next in line does not hear how long the key was given away for.
    NobodyIsToldOfAGrant,
    /// A waiter that the server let not stand in the queue believes that it does.
    ARefusedPlaceIsBelieved,
    /// A newcomer stands where the clock says, although that has gone back.
    PlacesByTheClock,
    /// A repeated question of the owner is a grant, but does not lengthen.
    OwnTokenIsNotLengthened,
    /// A question that arrives late sets the end, instead of lengthening.
    ALateAskCutsTheLease,
    /// So does a renewal.
    ALateRenewalCutsTheLease,
    /// A release does not compare.
    AnyTokenIsReleased,
    /// Nor does one that leaves a gap.
    AnyTokenIsVacated,
    /// It does not remember what was used.
    VacatedWithoutTheMark,
    /// It gives the key to the first waiter.
    AGapIsGivenAway,
    /// It tells no waiter when the gap is over.
    NoWaiterIsToldOfAGap,
    /// A question steps over whoever holds the key.
    AnyTokenIsSteppedOver,
    // The process's side.
    /// A process hears the other's pushes, and gives back what it did not ask for.
    SharedChannel,
    /// A waiter that is cancelled leaves what it was given, or its place, behind.
    CancelledIsNotUndone,
    /// A question that was given up is forgotten: it may arrive after its undoing.
    LateTwinIsForgotten,
    /// The answer to an earlier question is taken for one to the last.
    AnswerToAnotherQuestion,
    /// A renewal's answer counts for the ttl that came since.
    RenewalCountsForANewerTtl,
    /// The lease goes on from task to task although its deadline has passed.
    PassedAfterItsEnd,
    /// The lease goes from task to task without a limit.
    PassedWithoutBound,
    /// Of several releases under way only the last is remembered.
    EarlierReleaseIsForgotten,
    /// A cooldown under way is nothing to be remembered.
    CooldownUnderWayIsForgotten,
    /// The next task steps over a lease whose key is to cool down.
    CooldownIsSteppedOver,
}
