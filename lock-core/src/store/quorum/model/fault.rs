//! Faults that the model can be given, one at a time. A checker that found none of them would find nothing.

/// The origin of a fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The kit's rule: the client proposes it, and a node accepts a number above its register.
    ClientsPropose,
    /// The naive maximum: every node counts its grants (`INCR`), and the token is the highest count of the
    /// majority.
    HighestCount,
    /// As the naive maximum, with the node's own clock where that is higher than its count.
    HighestClock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuorumFault {
    // Faults of the node.
    /// A number that is equal to the register is accepted from any lease.
    AnEqualNumberIsAccepted,
    /// A number is accepted whose block reaches below the register.
    TheBlockIsForgotten,
    /// The number of a second round is accepted, but not recorded.
    NotRecordedAtTheSecondRound,
    /// A node that has lost its registers does not know that.
    RegistersAreLost,
    /// A node that came back empty votes at once.
    AnEmptyNodeVotes,
    /// A held lease that is proposed to a node once more takes the key from another owner.
    ARejoiningLeaseTakesTheKey,
    /// A reader enters beside a lock.
    AReaderEntersBesideALock,
    /// A lock takes a key that has readers.
    ALockEntersBesideReaders,
    /// The end of one reader deletes the key.
    OneReaderEndsAll,
    /// The number of a reader is accepted, but not recorded.
    AReadersNumberIsNotRecorded,
    // Faults of the client.
    /// Less than a majority is enough.
    AMinorityIsEnough,
    /// A number of another key counts as noted when one node has it.
    ARaiseNeedsNoMajority,
    /// Answers are counted instead of nodes, so a vote that arrives twice counts twice.
    AVoteCountsTwice,
    /// The answer to an earlier number counts for the last one.
    AnAnswerToAnotherNumber,
    /// A node is asked again while the undoing of an earlier vote is on its way.
    AskedAgainBeforeItIsUndone,
    /// An undoing that was sent twice counts as done when one copy has arrived.
    UndoneWhenACopyIs,
    /// A vote is withdrawn while a question to the same node is open.
    UndoneBesideAQuestion,
    /// A vote counts in the next round of the attempt although it is being withdrawn.
    VotesOfARoundBeforeCount,
    /// A held lease is proposed to a node on which its vote is still to be undone.
    RejoinsBesideAnUndoing,
    /// A renewal counts a node on which the lease's vote is still to be undone.
    WhatIsBeingUndoneIsRenewed,
    /// The client does not check its clock between the first question and the grant.
    GrantedAfterTheDeadline,
    /// Numbers rise by one, and are not close to the time.
    NumbersAreCounted,
}
