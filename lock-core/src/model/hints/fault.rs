//! Faults that the model can be given, and what must never be.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HintFault {
    PushEndsTheLease,
    /// The server pushes renewals too, without `NOLOOP`.
    OwnRenewalsArePushed,
    NoLimit,
    /// As both together.
    Loop,
    /// The renewal does not read the key once more.
    KeyNotReadAgain,
    ForgottenInTheLimit,
    /// A hint is forgotten while a renewal is in flight.
    ForgottenInFlight,
    /// A lease that was never renewed follows a hint.
    OfAnEarlierLease,
    /// The end of the connection makes no renewal due.
    EndOfConnectionForgotten,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HintWrong {
    ChangeNotPushed,
    /// A change was pushed, and no renewal is due soon.
    NoRenewal,
    LostWithoutAnswer,
    TooManyRenewals,
    HintOfAnEarlierLease,
    NeverRests,
    /// The lease is believed, and the key has been another client's for long.
    NotNoticed,
}
