//! What the model can be made to do wrong, one thing at a time. A checker that finds none of these
//! would find nothing.

/// Where a fencing token comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The client proposes it, and a node accepts what is above its register: the kit's rule.
    ClientsPropose,
    /// The naive maximum: every node counts its grants (`INCR`), and the token is the highest of what
    /// the majority answers.
    HighestCount,
    /// As that, with the node's own clock where that is higher than its count.
    HighestClock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuorumFault {
    // The node's side.
    /// A number that is equal to the register is accepted, whoever asks.
    AnEqualNumberIsAccepted,
    /// A number is accepted whose block reaches below the register.
    TheBlockIsForgotten,
    /// The number of a second round is accepted, and not recorded.
    NotRecordedAtTheSecondRound,
    /// A node that has lost its registers does not know that.
    RegistersAreLost,
    /// A node that came back empty votes at once.
    AnEmptyNodeVotes,
    /// A lease that is proposed to a node once more, while it is held, takes the key from whoever has it.
    ARejoiningLeaseTakesTheKey,
    // The client's side.
    /// Less than a majority is enough.
    AMinorityIsEnough,
    /// Answers are counted, not nodes: a vote that comes twice counts twice.
    AVoteCountsTwice,
    /// The answer to an earlier number counts for the last one.
    AnAnswerToAnotherNumber,
    /// A node is asked again while the undoing of an earlier vote is on its way.
    AskedAgainBeforeItIsUndone,
    /// An undoing that was sent twice counts as done when one of the two has arrived.
    UndoneWhenACopyIs,
    /// A vote is taken back beside a question to the same node that is still out.
    UndoneBesideAQuestion,
    /// What a node has agreed to counts in the next round of the attempt, though it is taken back.
    VotesOfARoundBeforeCount,
    /// A lease that is held is proposed to a node where its vote is still to be undone.
    RejoinsBesideAnUndoing,
    /// A renewal counts a node at which the lease's vote is still to be undone.
    WhatIsBeingUndoneIsRenewed,
    /// The client's clock is not looked at between the first question and the grant.
    GrantedAfterTheDeadline,
    /// Numbers go up by one, and are not like the time.
    NumbersAreCounted,
}
