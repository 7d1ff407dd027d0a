//! The reasons for the loss of a lease.

/// Says why a lease was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Its deadline passed before it was extended.
    Expired,
    /// The store answered that this lease does not own the key any more.
    NotOurs,
    /// The lease was held for its `max_hold`.
    MaxHold,
    /// The lease of another key of the same lock was lost.
    OtherKey,
    /// An operator has freed the key.
    Forced,
}

impl Loss {
    /// The word for the loss in metrics.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Loss::Expired => "expired",
            // A lock of several keys counts one loss, that of the key.
            Loss::NotOurs | Loss::OtherKey => "not_ours",
            Loss::MaxHold => "max_hold",
            Loss::Forced => "forced",
        }
    }

    /// Returns the loss of the other keys of the same lock.
    pub(crate) fn of_the_others(self) -> Self {
        match self {
            Loss::Expired | Loss::MaxHold => self,
            // Their keys are still in the store.
            Loss::NotOurs | Loss::OtherKey | Loss::Forced => Loss::OtherKey,
        }
    }
}
