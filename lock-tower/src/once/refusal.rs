//! The reasons for which a handler gets no transaction, or a request is not committed.

use std::fmt;

use lock_core::Error;
use lock_core::once::Found;

use crate::rejection::{Rejection, RejectionKind};

/// Says why a handler got no transaction. The handler answers with it, and the layer replaces the answer.
///
/// An error type of your own needs a variant for it, so that `?` works behind [`Once::begin`](crate::Once::begin). With
/// the feature `axum` it is a response.
///
/// # Examples
///
/// ```
/// use lock_tower::Refused;
///
/// enum ApiError {
///     Refused(Refused),
///     NotFound,
/// }
///
/// impl From<Refused> for ApiError {
///     fn from(refused: Refused) -> Self {
///         Self::Refused(refused)
///     }
/// }
/// # let _ = ApiError::NotFound;
/// ```
#[derive(Clone, Debug)]
pub struct Refused(Box<Rejection>);

impl Refused {
    pub(super) fn new(rejection: Rejection) -> Self {
        Self(Box::new(rejection))
    }

    /// Returns the refusal, which makes a response. The layer sends the recorded answer in place of a `lock_done`.
    #[must_use]
    pub fn rejection(&self) -> &Rejection {
        &self.0
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the request gets no transaction ({}); answer with this refusal, and the layer sends the right answer",
            self.0.code()
        )
    }
}

impl std::error::Error for Refused {}

/// A refusal as the layer knows it.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// The operation is done, and this is its record.
    Found(Found),
    /// Another run has claimed the operation.
    Busy,
    /// The lock was lost before the transaction began, or the transaction was rolled back.
    NotDone,
    /// The transaction was committed or not.
    Unknown,
    /// The transaction is not in its slot.
    Lent,
    /// An error of the database, which is in the log.
    Failed(Error),
}

impl Refusal {
    /// Makes the refusal of a request that has a key or not. The layer replaces that of a record by the answer.
    pub(crate) fn rejection(&self, has_key: bool) -> Rejection {
        match self {
            Self::Found(_) => Rejection::new(RejectionKind::Done),
            Self::Busy => Rejection::new(RejectionKind::InFlight),
            Self::NotDone => Rejection::new(RejectionKind::Unavailable),
            Self::Unknown => Rejection::outcome_unknown(has_key),
            Self::Lent => Rejection::new(RejectionKind::TransactionLent),
            Self::Failed(error) => Rejection::of_database(error),
        }
    }
}
