//! Refusals of a layer whose answers are recorded in a database.

use lock_core::{Error, ErrorKind};

use super::reason::RETRY;
use super::{Rejection, RejectionKind};

impl Rejection {
    /// Refuses a request that another run has claimed.
    pub(crate) fn in_flight() -> Self {
        Self::new(RejectionKind::InFlight)
    }

    /// Refuses a request whose operation is done, and has no answer to repeat.
    pub(crate) fn done() -> Self {
        Self::new(RejectionKind::Done)
    }

    /// Answers a request that was committed or not. Only a request with a key finds out by its repetition.
    pub(crate) fn outcome_unknown(has_key: bool) -> Self {
        Self {
            retry_after: has_key.then_some(RETRY),
            ..Self::new(RejectionKind::OutcomeUnknown)
        }
    }

    pub(crate) fn transaction_lent() -> Self {
        Self::new(RejectionKind::TransactionLent)
    }

    /// Refuses a request that is done, and whose record cannot be read.
    pub(crate) fn unreadable() -> Self {
        Self::new(RejectionKind::Unreadable)
    }

    /// Refuses a request in a layer that is not set up correctly, as its log says.
    pub(crate) fn invalid() -> Self {
        Self::new(RejectionKind::Invalid)
    }

    /// Makes a refusal of an error of the database, which is in the log already.
    pub(crate) fn of_database(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Unavailable if error.is_outcome_unknown() => Self::outcome_unknown(true),
            ErrorKind::Unavailable => Self {
                retry_after: error.retry_after().or(Some(RETRY)),
                ..Self::new(RejectionKind::Unavailable)
            },
            ErrorKind::Misconfigured => Self::new(RejectionKind::Misconfigured),
            _ => Self::invalid(),
        }
    }
}
