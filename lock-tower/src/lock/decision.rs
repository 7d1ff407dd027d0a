//! The decision of a handler about the memory of its request.

use std::sync::Arc;
#[cfg(feature = "once")]
use std::sync::{Mutex, PoisonError};

use super::{LockContext, SharedLock};
use crate::options::Remember;

/// The place at which the innermost layer that replays looks for the decision of the handler.
#[derive(Clone)]
pub(super) enum DecisionPlace {
    /// The lock, whose release leaves the record.
    Lock(Arc<SharedLock>),
    #[cfg(feature = "once")]
    Transaction(Arc<Decision>),
}

/// A decision that counts for the transaction of a request, with and without a lock.
#[cfg(feature = "once")]
#[derive(Default)]
pub(crate) struct Decision(Mutex<Option<Remember>>);

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
    /// With a record in the database (`Replay::in_database`, feature `once`) the decision counts without a lock and after a
    /// release, too. If the handler panics or is dropped, its transaction is rolled back, and nothing is remembered.
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
        match self.decision_place() {
            Some(DecisionPlace::Lock(lock)) => lock.decide(remember),
            #[cfg(feature = "once")]
            Some(DecisionPlace::Transaction(decision)) => decision.set(remember),
            None => {}
        }
    }
}

#[cfg(feature = "once")]
impl Decision {
    pub(crate) fn set(&self, remember: Remember) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(remember);
    }

    pub(crate) fn of_handler(&self) -> Option<Remember> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
