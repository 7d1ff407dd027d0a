//! Refusals of a layer whose answers are recorded in a database.

use lock_core::{Error, ErrorKind};

use super::reason::RETRY;
use super::{Rejection, RejectionKind};

impl Rejection {
    /// Answers a request that was committed or not. Only a request with a key finds out by its repetition.
    pub(crate) fn outcome_unknown(has_key: bool) -> Self {
        Self {
            retry_after: has_key.then_some(RETRY),
            ..Self::new(RejectionKind::OutcomeUnknown)
        }
    }

    /// Makes a refusal of an error of the database, which is in the log already.
    pub(crate) fn of_database(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Unavailable if error.is_outcome_unknown() => {
                Self::new(RejectionKind::OutcomeUnknown)
            }
            ErrorKind::Unavailable => Self {
                retry_after: error.retry_after().or(Some(RETRY)),
                ..Self::new(RejectionKind::Unavailable)
            },
            ErrorKind::Misconfigured => Self::new(RejectionKind::Misconfigured),
            _ => Self::new(RejectionKind::Invalid),
        }
    }
}
