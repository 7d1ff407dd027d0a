//! Keeps the memory of a request for its duplicates, if its layer repeats answers.

use std::time::Duration;

use lock_core::LockGuard;
use lock_core::middleware::RecordOutcome;

use super::acquiring::IN_STORE;
use super::{GrantedLocks, LockContext, SharedLock};
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
    /// The part that the release has passed on to the store.
    stored: Option<Stored>,
}

/// The state that the next request with this key finds.
pub(crate) enum Kept {
    /// The request is done, for this long.
    Done(Duration),
    /// The encoded answer, and how long it counts.
    Answer(Vec<u8>, Duration),
}

#[derive(Clone, Copy)]
enum Stored {
    Done,
    Answer { bytes: usize },
}

/// Marks, in the extensions of a response, the repeated answer of an earlier request.
///
/// Outer layers can distinguish it from the answer of a handler. Clients see the header
/// `Idempotency-Replayed: true`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replayed;

impl LockContext {
    /// Decides what the layer remembers of this request, whatever its response is.
    ///
    /// It overrides [`Replay::remember_with`](crate::Replay::remember_with). A
    /// [`Remember`] in the extensions of the response overrides both. The last call counts.
    ///
    /// Among several lock layers, it is a decision about the innermost one with
    /// [replay](crate::LockLayer::replay). With the response it reaches the outer ones with replay, too. A layer that
    /// let the request pass without a lock does not count. A call has no effect if no layer is left, or after the release.
    ///
    /// [`Remember::Done`] counts however the request ends: with an error, with a panic, or after a
    /// disconnect. Call it after an effect that must not happen twice.
    ///
    /// A request that is remembered needs no cooldown. [`cool_down`](Self::cool_down) and
    /// [`skip_cooldown`](Self::skip_cooldown) count for requests that are not remembered. After
    /// [`release_now`](Self::release_now) nothing is remembered, because the next request may run.
    ///
    /// # Examples
    ///
    /// ```
    /// use http::{Response, StatusCode};
    /// use lock_tower::{LockContext, Remember};
    ///
    /// async fn pay(lock: LockContext) -> Response<String> {
    ///     let mut declined = Response::new("declined".to_owned());
    ///     *declined.status_mut() = StatusCode::PAYMENT_REQUIRED;
    ///     lock.remember(Remember::Answer); // every retry gets this 402
    ///     declined
    /// }
    /// # let _ = pay;
    /// ```
    pub fn remember(&self, remember: Remember) {
        if let Some(lock) = self.replaying_lock() {
            lock.decide(remember);
        }
    }
}

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

    /// Leaves a note at the fallback in place of the record, if the store has that record.
    ///
    /// If the lock was lost in an outage, the fallback alone knows that the request has run.
    pub(super) fn note_at(&self, fallback: Option<&LockGuard>) {
        let stored = matches!(self.handle.record_outcome(), Some(RecordOutcome::Stored));
        if let (true, Some(fallback)) = (stored, fallback)
            && let Some(lifetime) = self.state().memory.lifetime
        {
            let _ = fallback.remember(IN_STORE, lifetime);
        }
    }

    /// Reports what has become of the record.
    pub(super) fn report_record(&self) {
        let stored = self.state().memory.stored.take();
        let (kept, bytes) = match stored {
            None => return,
            Some(Stored::Done) => ("done", None),
            Some(Stored::Answer { bytes }) => ("answer", Some(bytes)),
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

    pub(super) fn forget_all(&mut self) {
        *self = Self::default();
    }

    /// Takes what is kept, when the release begins.
    pub(super) fn take(&mut self) -> Option<Kept> {
        let done = || match self.decided {
            Some(Remember::Done) => self.lifetime.map(Kept::Done),
            _ => None,
        };
        let kept = self.kept.take().or_else(done)?;
        self.stored = Some(match &kept {
            Kept::Done(_) => Stored::Done,
            Kept::Answer(record, _) => Stored::Answer {
                bytes: record.len(),
            },
        });
        Some(kept)
    }
}

impl Kept {
    /// Tells the guards what their release leaves behind.
    pub(super) fn leave_at(&self, locks: &GrantedLocks) {
        let (record, lifetime) = match self {
            Self::Done(lifetime) => (DONE, *lifetime),
            Self::Answer(record, lifetime) => (&**record, *lifetime),
        };
        for guard in std::iter::once(&locks.guard).chain(&locks.fallback) {
            // The record takes the place of the cooldown, which counts if the record cannot be left.
            guard.cooldown(lifetime);
            let _ = guard.remember(record, lifetime);
        }
    }
}
