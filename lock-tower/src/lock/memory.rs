//! Keeps the memory of a request for its duplicates, if its layer repeats answers.

use std::time::Duration;

use lock_core::middleware::RecordOutcome;

use super::{GrantedLocks, SharedLock};
use crate::options::Remember;
use crate::rejection::DONE;

/// The memory of a request, as far as it is known.
#[derive(Default)]
pub(super) struct Memory {
    /// How long the layer remembers a request, if it does.
    lifetime: Option<Duration>,
    /// The decision of the handler, which overrides that of the layer.
    decided: Option<Remember>,
    kept: Option<Kept>,
    /// The record that the release has sent to the store: its name in metrics, and the number of bytes if it is an answer.
    stored: Option<(&'static str, Option<usize>)>,
    /// The database has the record of this operation.
    #[cfg(feature = "once")]
    in_database: bool,
}

/// The state that the next request with this key finds.
pub(crate) enum Kept {
    /// The request is done, for this long.
    Done(Duration),
    /// The encoded answer, and how long it counts.
    Answer(Vec<u8>, Duration),
}

/// Marks, in the extensions of a response, the repeated answer of an earlier request.
///
/// Outer layers can distinguish it from the answer of a handler. Clients see the header
/// `Idempotency-Replayed: true`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replayed;

impl SharedLock {
    /// Says that the layer will remember this request for so long.
    pub(crate) fn will_be_recorded(&self, lifetime: Duration) {
        self.state().memory.lifetime = Some(lifetime);
    }

    pub(crate) fn decide(&self, remember: Remember) {
        self.state().memory.decided = Some(remember);
    }

    /// Returns the decision of the handler.
    pub(crate) fn decided(&self) -> Option<Remember> {
        self.state().memory.decided
    }

    /// Keeps this for duplicates, in place of what was kept before.
    pub(crate) fn keep(&self, kept: Option<Kept>) {
        self.state().memory.kept = kept;
    }

    /// Says that the database answers the duplicates of this request, so no cooldown may refuse them.
    #[cfg(feature = "once")]
    pub(crate) fn is_remembered_in_database(&self) {
        self.state().memory.in_database = true;
    }

    /// Reports what has become of the record.
    pub(super) fn report_record(&self) {
        let Some((kept, bytes)) = self.state().memory.stored.take() else {
            return;
        };
        let outcome = match self.handle.record_outcome() {
            Some(RecordOutcome::Stored) => kept,
            Some(RecordOutcome::Lost) => "lost",
            Some(RecordOutcome::Background) => "background",
            Some(RecordOutcome::Unacknowledged) => "unacknowledged",
            _ => "failed",
        };
        self.telemetry.recorded(outcome, bytes);
    }
}

impl Memory {
    /// Forgets the answer, because it did not reach its client.
    pub(super) fn forget(&mut self) {
        self.kept = None;
    }

    /// Forgets a call that has failed, unless the handler has decided that its answer is kept.
    pub(super) fn forget_call(&mut self) {
        if self.decided != Some(Remember::Answer) {
            self.kept = None;
        }
    }

    pub(super) fn forget_all(&mut self) {
        *self = Self::default();
    }

    /// Returns whether the record of the operation is outside of the key, where a cooldown would hide it.
    pub(super) fn is_elsewhere(&self) -> bool {
        #[cfg(feature = "once")]
        return self.in_database;
        #[cfg(not(feature = "once"))]
        false
    }

    /// Returns whether the release has sent a record whose outcome is not reported.
    pub(super) fn leaves_record(&self) -> bool {
        self.stored.is_some()
    }

    /// Takes what is kept, when the release begins.
    pub(super) fn take(&mut self) -> Option<Kept> {
        let done = || match self.decided {
            Some(Remember::Done) => self.lifetime.map(Kept::Done),
            _ => None,
        };
        let kept = self.kept.take().or_else(done)?;
        self.stored = Some(kept.named());
        Some(kept)
    }
}

impl Kept {
    /// Returns the name of the record in metrics, and the number of bytes of an answer.
    pub(crate) fn named(&self) -> (&'static str, Option<usize>) {
        match self {
            Self::Done(_) => ("done", None),
            Self::Answer(record, _) => ("answer", Some(record.len())),
        }
    }

    pub(super) fn lifetime(&self) -> Duration {
        match self {
            Self::Done(lifetime) | Self::Answer(_, lifetime) => *lifetime,
        }
    }

    /// Tells the guards what their release leaves behind.
    pub(super) fn leave_at(&self, locks: &GrantedLocks) {
        let record = match self {
            Self::Done(_) => DONE,
            Self::Answer(record, _) => record,
        };
        let lifetime = self.lifetime();
        for guard in std::iter::once(&locks.guard).chain(&locks.fallback) {
            // The record takes the place of the cooldown, which counts if the record cannot be left.
            guard.cooldown(lifetime);
            let _ = guard.remember(record, lifetime);
        }
    }
}
