//! The ways in which a lease ends.

use std::sync::Arc;

use crate::active::ActiveLease;
use crate::base::error::Error;
use crate::base::record::{Record, RecordOutcome};
use crate::lease::Loss;
use crate::queue::ReleaseState;
use crate::store::{Cooldown, Ended, Lane, Operation, Outcome, Release, Remembered};

/// A way in which a lease ends. The table in [`ending`](super) lists the command of each way, and the choice of the next
/// task.
pub(crate) enum Way {
    Release,
    Vacate,
    Cool(Cooldown),
    Remember(Arc<Record>),
    /// A release that goes behind the acquire on its lane, so that the store undoes the acquire in order.
    Undo(Lane),
    Leave,
    LateDuplicate,
}

impl Way {
    /// Returns the way in which a lease ends that was held to its end.
    pub(super) fn of(lease: &ActiveLease) -> Self {
        let wishes = lease.wishes();
        match wishes.record {
            Some(record) => Way::Remember(record),
            None if wishes.cooldown != Cooldown::default() => Way::Cool(wishes.cooldown),
            None if wishes.gap => Way::Vacate,
            None => Way::Release,
        }
    }

    pub(super) fn operation(&self, release: Release) -> Option<Operation> {
        Some(match self {
            Way::Release | Way::Undo(_) => Operation::Release(release),
            Way::Vacate => Operation::Vacate(release),
            Way::Cool(cooldown) => Operation::Cool(release, *cooldown),
            Way::Remember(record) => Operation::Remember(release, Arc::clone(record)),
            Way::Leave => Operation::Leave(release),
            Way::LateDuplicate => return None,
        })
    }

    /// Returns the trace that the lease leaves until the store confirms its end.
    pub(super) fn leaves(&self) -> ReleaseState {
        match self {
            Way::Cool(_) | Way::Remember(_) => ReleaseState::Known,
            Way::Release | Way::Vacate | Way::Undo(_) => ReleaseState::Steppable(None),
            Way::Leave | Way::LateDuplicate => ReleaseState::Nothing,
        }
    }

    /// Notes the store's answer, if it is one to a record.
    pub(super) fn note(&self, outcome: &Outcome) {
        if let (Way::Remember(record), Outcome::Remembered(remembered)) = (self, outcome) {
            record.note(match remembered {
                Remembered::Yes => RecordOutcome::Stored,
                Remembered::Unacknowledged => RecordOutcome::Unacknowledged,
                Remembered::Absent | Remembered::Other => RecordOutcome::Lost,
                Remembered::NoRoom => RecordOutcome::Failed,
            });
        }
    }
}

/// Returns whether the store has no memory for a record. The token of the lease then has to stay.
pub(super) fn has_no_room(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Remembered(Remembered::NoRoom))
}

/// Returns the result for the owner of a lease that the store has ended.
pub(super) fn told_to_owner(outcome: &Outcome, lease: &ActiveLease) -> Result<(), Error> {
    match outcome {
        Outcome::Released(Ended::Yes)
        | Outcome::Remembered(Remembered::Yes | Remembered::Unacknowledged) => Ok(()),
        outcome if has_no_room(outcome) => Err(Error::unavailable(
            "the store has no memory for the record; the key stays taken for one more ttl",
        )
        .with_key(&lease.key)),
        _ => Err(lease.loss_error(Loss::NotOurs)),
    }
}
