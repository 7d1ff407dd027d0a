//! The handler's view of its request's lock.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use http::Extensions;
use lock_core::{Error, FencingToken, OperationId, Ticket};

#[cfg(feature = "once")]
use super::Decision;
use super::SharedLock;
#[cfg(feature = "replay")]
use super::decision::DecisionPlace;

/// The lock of a request, as its handler sees it.
///
/// The layer puts it into the extensions of the request. With the feature `axum` it is also an
/// extractor.
///
/// The handler runs on when the lock is lost, because only the handler knows whether that matters.
/// Most handlers need only the [fencing token](Self::fencing_token), which the database that they
/// write to checks.
///
/// The handler runs *inside* its lock. A `#[distributed_lock]` function, or a
/// [`run`](lock_core::LockRequest::run), that asks the same manager for the same key enters that lock
/// instead of waiting for its own request. A task that the handler spawns is not inside, and neither
/// is the body of its response.
///
/// # Requests without a lock
///
/// | request | context | as the extractor `Option<LockContext>` |
/// | --- | --- | --- |
/// | locked | [`is_locked`](Self::is_locked) | `Some` |
/// | passed without a lock: a duplicate in [shadow mode](crate::LockLayer::shadow), [`MissingKey::Pass`](crate::MissingKey::Pass), [`Outage::Pass`](crate::Outage::Pass) | not `is_locked`: it has no fencing token, and nothing to lose or release | `None` |
/// | of another [method](crate::LockLayer::methods), or outside of the layer | none; the extractor `LockContext` answers 500 | `None` |
///
/// A handler that must not run without a fencing token returns an error if
/// [`fencing_token`](Self::fencing_token) is `None`.
///
/// Behind two layers with different keys, the context is that of the inner layer, and the handler
/// runs inside both locks. [`operation_id`](Self::operation_id) and `remember` belong to the innermost layer with replay.
///
/// A context that is stored beyond its request does not hold the lock. [`keep`](Self::keep) makes a value that does.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use http::{Request, Response};
/// use lock_tower::LockContext;
///
/// async fn pay<B>(request: Request<B>) -> Response<String> {
///     let lock = request.extensions().get::<LockContext>().expect("behind the lock layer");
///     let fence = lock.fencing_token().map(i64::from); // … SET fence = $1 WHERE fence <= $1
///     if lock.is_lost() { /* another request may run: stop before the next effect */ }
///     lock.cool_down(Duration::from_secs(60)); // from here on, however the request ends
///     # let _ = fence;
///     Response::new("paid".into())
/// }
/// # let _ = pay::<String>;
/// ```
#[derive(Clone)]
pub struct LockContext {
    /// `None` if the layer let the request pass without a lock.
    pub(super) lock: Option<Arc<SharedLock>>,
    /// The lock of the next outer lock layer, if there is one.
    pub(super) outer: Option<Arc<SharedLock>>,
    operation: Operation,
    /// The operation at the innermost layer that replays, if there is one.
    replayed: Option<Operation>,
    /// Belongs to the innermost layer that replays and has a lock, or a database.
    #[cfg(feature = "replay")]
    replaying: Option<DecisionPlace>,
}

/// The operation of a request at one layer.
#[derive(Clone)]
enum Operation {
    Locked(Arc<SharedLock>),
    /// The number of a request without a lock, if it has a key.
    Unlocked(Option<OperationId>),
}

impl LockContext {
    pub(crate) fn locked(extensions: &Extensions, lock: Arc<SharedLock>) -> Self {
        let outer: Option<&Self> = extensions.get();
        Self {
            lock: Some(Arc::clone(&lock)),
            outer: None,
            operation: Operation::Locked(lock),
            replayed: outer.and_then(|outer| outer.replayed.clone()),
            #[cfg(feature = "replay")]
            replaying: outer.and_then(|outer| outer.replaying.clone()),
        }
    }

    /// Makes the context of a request that its layer lets pass without a lock.
    pub(crate) fn unlocked(extensions: &Extensions, operation: Option<OperationId>) -> Self {
        let outer: Option<&Self> = extensions.get();
        Self {
            lock: None,
            outer: Self::innermost_lock(extensions).cloned(),
            operation: Operation::Unlocked(operation),
            replayed: outer.and_then(|outer| outer.replayed.clone()),
            #[cfg(feature = "replay")]
            replaying: outer.and_then(|outer| outer.replaying.clone()),
        }
    }

    /// Makes this the context of a layer that replays.
    #[cfg(feature = "replay")]
    pub(crate) fn of_replay(mut self) -> Self {
        let lock = self.lock.clone().map(DecisionPlace::Lock);
        self.replaying = lock.or(self.replaying);
        // A request without a key at this layer is an operation of an outer one.
        if self.replayed.is_none() || !matches!(self.operation, Operation::Unlocked(None)) {
            self.replayed = Some(self.operation.clone());
        }
        self
    }

    /// Makes this the context of a transaction, which takes the decision of the handler.
    #[cfg(feature = "once")]
    pub(crate) fn decides_in(&mut self, decision: &Arc<Decision>) {
        self.replaying = Some(DecisionPlace::Transaction(Arc::clone(decision)));
    }

    #[cfg(feature = "replay")]
    pub(super) fn decision_place(&self) -> Option<&DecisionPlace> {
        self.replaying.as_ref()
    }

    /// Returns the number of the operation at the layer that made this context.
    #[cfg(feature = "once")]
    pub(crate) fn own_operation(&self) -> Option<OperationId> {
        self.operation.number()
    }

    /// Returns the lock of the layer that made this context.
    #[cfg(feature = "replay")]
    pub(crate) fn own_lock(&self) -> Option<&Arc<SharedLock>> {
        self.lock.as_ref()
    }

    /// Returns the innermost lock that the request already has.
    pub(crate) fn innermost_lock(extensions: &Extensions) -> Option<&Arc<SharedLock>> {
        let context: &Self = extensions.get()?;
        context.lock.as_ref().or(context.outer.as_ref())
    }

    /// Returns whether the layer acquired the lock for this request.
    ///
    /// It is `false` if the layer let the request pass without a lock. It stays `true` after the lock
    /// was lost or released.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    /// Returns the number that a resource can check; each grant of the key has a higher one.
    ///
    /// It is `None` if the request [has no lock](Self::is_locked).
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        Some(self.lock.as_ref()?.handle.fencing_token())
    }

    /// Returns the number of the operation, which is the same in every run of it.
    ///
    /// It is made from the key of the request, so a retry has the same number in every process. Store
    /// it with the effect, in a column that is unique. If the process crashes after the effect, the
    /// retry runs again and finds that the effect is there. A downstream service may take it as an
    /// `Idempotency-Key`.
    ///
    /// Among several lock layers, the key is that of the innermost one with replay, or else
    /// that of the innermost one.
    ///
    /// It is `None` if the request has no key. A request that runs without a lock, because the store is
    /// away, has its number.
    ///
    /// # Examples
    ///
    /// ```
    /// use lock_tower::LockContext;
    ///
    /// async fn pay(lock: LockContext) {
    ///     // INSERT INTO payments (operation, cents) VALUES ($1, $2) ON CONFLICT (operation) DO NOTHING
    ///     let operation = lock.operation_id().map(|id| id.to_string());
    ///     # let _ = operation;
    /// }
    /// # let _ = pay;
    /// ```
    #[must_use]
    pub fn operation_id(&self) -> Option<OperationId> {
        self.replayed.as_ref().unwrap_or(&self.operation).number()
    }

    /// Returns whether the lock is held at this very moment.
    ///
    /// It is `false` without a lock and after the release.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.lock
            .as_ref()
            .is_some_and(|lock| lock.handle.is_valid())
    }

    /// Returns whether the lock was acquired and is lost, so that another request may hold it.
    ///
    /// A long handler checks this before its next effect. It is `false` without a lock and after the
    /// release.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.is_lost())
    }

    /// Returns how long the lock stays valid if it is not renewed again.
    ///
    /// It is zero without a lock, and after the lock was lost or released.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.lock
            .as_ref()
            .map_or(Duration::ZERO, |lock| lock.handle.remaining())
    }

    /// Resolves when the lock is lost.
    ///
    /// It never resolves if the lock is released first, or if there is none.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn lost(&self) {
        match &self.lock {
            Some(lock) => lock.handle.lost().await,
            None => pending().await,
        }
    }

    /// Keeps the key taken for `cooldown` after the request, in place of the layer's cooldown.
    ///
    /// It counts however the request ends: with an error, with a panic, or after a disconnect. The
    /// longest cooldown is one day. A cooldown above the manager's
    /// [`max_ttl`](lock_core::ManagerBuilder::max_ttl) is shortened to it, with a warning in the log.
    ///
    /// The last call counts. A call without a lock, or after the release, has no effect. A reader or a permit has no
    /// cooldown, and the call writes a warning to the log.
    pub fn cool_down(&self, cooldown: Duration) {
        if let Some(lock) = &self.lock {
            lock.request_cooldown(cooldown);
        }
    }

    /// Releases the key without a cooldown when the request ends, whatever its response.
    ///
    /// The client may then retry at once. The last call of this method and of
    /// [`cool_down`](Self::cool_down) counts. A call without a lock, or after the release, has no
    /// effect.
    pub fn skip_cooldown(&self) {
        self.cool_down(Duration::ZERO);
    }

    /// Releases the lock now, while the handler runs on without it.
    ///
    /// Call it after the part of the handler that must not run twice. A cooldown that
    /// [`cool_down`](Self::cool_down) requested counts. The layer's own cooldown does not, because it
    /// depends on the response.
    ///
    /// A second call returns `Ok` and does nothing, as does a call without a lock or after the end of
    /// the request.
    ///
    /// # Errors
    ///
    /// The errors are those of [`LockGuard::release`](lock_core::LockGuard::release): the lock was
    /// lost before, or the store did not answer and the release goes on in the background. In both
    /// cases this request no longer holds the lock.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing, because the release goes on in the background.
    pub async fn release_now(&self) -> Result<(), Error> {
        match &self.lock {
            Some(lock) => lock.release().await,
            None => Ok(()),
        }
    }

    /// Passes the lock of the request on to another process, which goes on with it under the same fencing token.
    ///
    /// A handler that leaves the work to a worker answers 202, and puts the text of the ticket into the job. The worker
    /// calls [`LockManager::resume`](lock_core::LockManager::resume) within `pick_up_time`. Until the worker has released
    /// the lock, or the time is over, duplicates are refused with 409.
    ///
    /// The layer then releases nothing, and its cooldown does not apply. The worker sets one on its guard. If the layer
    /// replays answers, the answer of this request is not recorded, because the work is not done. With
    /// `Replay::in_database` (feature `once`) it is: the row of the job is the effect.
    ///
    /// It returns `None` if the request [has no lock](Self::is_locked).
    ///
    /// # Errors
    ///
    /// The errors are those of [`LockHandle::ticket`](lock_core::LockHandle::ticket). With `Invalid` the request holds
    /// its lock as before, and otherwise no longer. A lock of the [fallback](crate::Outage::Fallback) belongs to this
    /// process, so a ticket for it is `Invalid`.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, there is no ticket, and the background gives the lock back.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use http::StatusCode;
    /// use lock_tower::LockContext;
    ///
    /// async fn order_report(lock: LockContext) -> Result<(StatusCode, String), lock_core::Error> {
    ///     let ticket = lock.ticket(Duration::from_secs(300)).await?;
    ///     let ticket = ticket.map(|ticket| ticket.to_string());
    ///     // queue.push(Job { report: 7, ticket })
    ///     # let _ = ticket;
    ///     Ok((StatusCode::ACCEPTED, "the report is on its way".to_owned()))
    /// }
    /// # let _ = order_report;
    /// ```
    pub async fn ticket(&self, pick_up_time: Duration) -> Result<Option<Ticket>, Error> {
        match &self.lock {
            Some(lock) => lock.ticket(pick_up_time).await.map(Some),
            None => Ok(None),
        }
    }
}

impl Operation {
    fn number(&self) -> Option<OperationId> {
        match self {
            Self::Locked(lock) => Some(lock.operation_id()),
            Self::Unlocked(number) => *number,
        }
    }
}

impl fmt::Debug for LockContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lock = self.lock.as_ref().map(|lock| &lock.handle);
        f.debug_struct("LockContext").field("lock", &lock).finish()
    }
}
