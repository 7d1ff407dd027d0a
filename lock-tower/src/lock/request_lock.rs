//! Owns the lock of one request from its grant to its release.

use std::future::Future;
use std::mem;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use http::Request;
use lock_core::middleware::{LongHoldObserver, RecordOutcome};
use lock_core::{
    Error, KeptLock, LockGuard, LockHandle, LockKey, LockManager, OperationId, Ticket,
};
use tokio::runtime::Handle;

#[cfg(feature = "replay")]
use super::acquiring::ANSWER_IN_STORE;
#[cfg(feature = "replay")]
use super::memory::{Kept, Memory};
use super::waiters::{DAY, cool_down_and_answer};
use super::{Cooldown, GrantedLocks};
use crate::rejection::COOLDOWN_IN_STORE;
use crate::telemetry::{Endpoint, LongHolds, OpenRequest, Telemetry};

/// Owns the lock of a request, and releases it when it is dropped.
///
/// Values that the handler keeps share the lock's state, but cannot hold the lock longer.
pub(crate) struct RequestLock {
    shared: Arc<SharedLock>,
    /// Counts the request until the lock is released and the handler has ended.
    _open: OpenRequest,
}

/// The state that the owner, the handler's [`LockContext`](super::LockContext) and the request's future share.
pub(crate) struct SharedLock {
    /// The handle of the store's lock, or of the fallback's if the store did not answer.
    pub(crate) handle: LockHandle,
    /// The manager of the store, also if the lock is the fallback's.
    locks: LockManager,
    pub(super) telemetry: Telemetry,
    long_holds: Arc<LongHolds>,
    endpoint: Endpoint,
    /// The lock of the next outer lock layer, if there is one.
    outer: Option<Arc<SharedLock>>,
    state: Mutex<LockState>,
}

pub(super) struct LockState {
    /// `None` once the locks are released.
    locks: Option<GrantedLocks>,
    /// The cooldown by the layer's rule, once there is a response.
    by_rule: Option<Cooldown>,
    /// The cooldown that the handler or a disconnect requested, which overrides the rule.
    requested: Option<Duration>,
    /// Requests wait for this lock, and a cooldown answers them.
    has_waiters: bool,
    /// The record that the fallback has when the store has confirmed the release, and its lifetime.
    note: (&'static [u8], Duration),
    /// The outcome of the release was reported.
    reported: bool,
    #[cfg(feature = "replay")]
    pub(super) memory: Memory,
}

impl RequestLock {
    pub(crate) fn new<B>(
        locks: GrantedLocks,
        manager: &LockManager,
        telemetry: Telemetry,
        long_holds: &Arc<LongHolds>,
        open: OpenRequest,
        request: &Request<B>,
        outer: Option<Arc<SharedLock>>,
    ) -> Self {
        let fallback = locks.fallback.as_ref().map(LockGuard::handle);
        let shared = Arc::new(SharedLock {
            handle: locks.guard.handle(),
            locks: manager.clone(),
            telemetry,
            long_holds: Arc::clone(long_holds),
            endpoint: Endpoint::of(request),
            outer,
            state: Mutex::new(LockState {
                locks: Some(locks),
                by_rule: None,
                requested: None,
                has_waiters: false,
                note: (COOLDOWN_IN_STORE, Duration::ZERO),
                reported: false,
                #[cfg(feature = "replay")]
                memory: Memory::default(),
            }),
        });
        let observer: Weak<dyn LongHoldObserver> = Arc::downgrade(&shared) as _;
        shared.handle.observe_long_hold(observer);
        if let Some(fallback) = fallback {
            // Both locks belong to one request, and one report is enough.
            fallback.observe_long_hold(Weak::<SharedLock>::new());
        }
        Self {
            shared,
            _open: open,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<SharedLock> {
        &self.shared
    }

    /// Sets the cooldown by the layer's rule, once there is a response.
    pub(crate) fn set_rule_cooldown(&self, cooldown: Cooldown) {
        self.shared.state().by_rule = Some(cooldown);
    }

    /// Removes the rule's cooldown and the record, because the response failed while it was sent.
    pub(crate) fn fail(&self) {
        self.fail_call();
        #[cfg(feature = "replay")]
        self.shared.state().memory.forget();
    }

    /// Does the same where a gRPC call has failed in its trailers, but leaves an answer that the handler wants to be kept.
    pub(crate) fn fail_call(&self) {
        let mut state = self.shared.state();
        state.by_rule = None;
        #[cfg(feature = "replay")]
        state.memory.forget_call();
    }

    /// Releases the lock, and waits at most `timeout` for the store to confirm it.
    ///
    /// The handler has ended, so a failed release does not change its response. If the future is
    /// dropped early, the release goes on in the background.
    pub(crate) async fn release(self, timeout: Duration) {
        self.shared.release_and_report(timeout).await;
    }
}

impl Drop for RequestLock {
    fn drop(&mut self) {
        // The guards release in the background, with the cooldown that counts at this moment.
        let Some(locks) = self.shared.take() else {
            return;
        };
        match Handle::try_current() {
            // The fallback and the report of a record need the answer of the store.
            Ok(runtime) if locks.fallback.is_some() || self.shared.leaves_record() => {
                let shared = Arc::clone(&self.shared);
                runtime.spawn(async move {
                    let released = shared.end(locks, None).await;
                    shared.report_release(released);
                });
            }
            _ => {
                drop(locks);
                self.shared.report("background");
            }
        }
    }
}

impl SharedLock {
    /// Returns whether this lock or an outer one is that of `key`, and is held.
    ///
    /// A request that acquired it again inside would wait for itself.
    pub(crate) fn holds(&self, manager: &LockManager, key: &LockKey) -> bool {
        std::iter::successors(Some(self), |shared| shared.outer.as_deref())
            .any(|shared| shared.handle.is_for(manager, key) && shared.handle.is_valid())
    }

    /// Returns whether the request still has to release this lock or an outer one.
    pub(crate) fn is_owned(&self) -> bool {
        std::iter::successors(Some(self), |shared| shared.outer())
            .any(|shared| shared.state().locks.is_some())
    }

    /// Returns the lock of the next outer lock layer.
    pub(super) fn outer(&self) -> Option<&Self> {
        self.outer.as_deref()
    }

    /// Keeps the lock, and behind it that of the fallback, which stands for both in this process.
    pub(super) fn keep_locks(&self, kept: &mut Vec<KeptLock>) -> Result<(), Error> {
        kept.push(self.handle.keep()?);
        let fallback = |locks: &GrantedLocks| locks.fallback.as_ref().map(LockGuard::handle);
        // The state is not locked while the fallback's lock is kept, which may wake tasks.
        let fallback = self.state().locks.as_ref().and_then(fallback);
        if let Some(fallback) = fallback {
            kept.push(fallback.keep()?);
        }
        Ok(())
    }

    /// Returns whether the lock was lost. A lock that was released or passed on is not.
    pub(crate) fn is_lost(&self) -> bool {
        let lost = pin!(self.handle.lost());
        lost.poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    pub(super) fn operation_id(&self) -> OperationId {
        OperationId::new(self.locks.namespace(), self.handle.keys())
    }

    /// Reports what has become of the release, once for each request.
    fn report(&self, outcome: &'static str) {
        if mem::replace(&mut self.state().reported, true) {
            return;
        }
        self.telemetry.released(outcome);
        #[cfg(feature = "replay")]
        self.report_record();
    }

    /// Passes the lock on by a ticket. The release at the end of the request then has nothing to do.
    pub(crate) async fn ticket(&self, pick_up_time: Duration) -> Result<Ticket, Error> {
        if !self
            .handle
            .is_for(&self.locks, &LockKey::exact(self.handle.key()))
        {
            return Err(Error::invalid(
                "the lock is one of the fallback, and no other process can go on with it; do the work in the request",
            ));
        }
        let ticket = self.handle.ticket(pick_up_time).await?;
        // The work is not done, so nothing is remembered of it.
        #[cfg(feature = "replay")]
        self.state().memory.forget_all();
        if let Some(GrantedLocks {
            guard, fallback, ..
        }) = self.take()
        {
            drop(guard);
            if let Some(fallback) = fallback {
                let _ = fallback.release().await;
            }
        }
        Ok(ticket)
    }

    /// Releases the lock for the handler, unless it is released already.
    pub(crate) async fn release(&self) -> Result<(), Error> {
        // The next request may run, so nothing is remembered of this one.
        #[cfg(feature = "replay")]
        self.state().memory.forget_all();
        match self.take() {
            Some(locks) => self.end(locks, None).await.unwrap_or(Ok(())),
            None => Ok(()),
        }
    }

    /// Releases the lock, waits at most `timeout` for the store to confirm it, and reports the outcome.
    ///
    /// The release at the end of the request then has nothing to do, and reports nothing.
    pub(crate) async fn release_and_report(&self, timeout: Duration) {
        let released = self.release_within(timeout).await;
        self.report_release(released);
    }

    fn report_release(&self, released: Option<Result<(), Error>>) {
        self.report(match released {
            Some(Ok(())) => "released",
            Some(Err(error)) => error.code(),
            None => "background",
        });
    }

    /// Returns whether the release leaves the record of the request in the store.
    fn leaves_record(&self) -> bool {
        #[cfg(feature = "replay")]
        return self.state().memory.leaves_record();
        #[cfg(not(feature = "replay"))]
        false
    }

    /// Releases the lock, and returns `None` if the store does not confirm it within `timeout`.
    ///
    /// The release then goes on in the background.
    async fn release_within(&self, timeout: Duration) -> Option<Result<(), Error>> {
        match self.take() {
            Some(locks) => self.end(locks, Some(timeout)).await,
            None => Some(Ok(())),
        }
    }

    /// Releases the locks. Without a `timeout` it waits as long as the manager does.
    async fn end(
        &self,
        locks: GrantedLocks,
        timeout: Option<Duration>,
    ) -> Option<Result<(), Error>> {
        let GrantedLocks {
            guard, fallback, ..
        } = locks;
        let released = match timeout {
            Some(timeout) => guard.release_within(timeout).await,
            None => Some(guard.release().await),
        };
        if let Some(fallback) = fallback {
            self.note_at(&fallback, matches!(released, Some(Ok(()))));
            // Only the store's release is reported.
            let _ = Box::pin(fallback.release()).await;
        }
        released
    }

    /// Leaves a note at the fallback in place of the record or the cooldown, if the store has that.
    ///
    /// If the lock was lost in an outage, the fallback alone knows that the request has run.
    fn note_at(&self, fallback: &LockGuard, released: bool) {
        let confirmed = match self.handle.record_outcome() {
            Some(outcome) => outcome == RecordOutcome::Stored,
            None => released,
        };
        let (note, lifetime) = self.state().note;
        if confirmed {
            // Without a cooldown the lifetime is zero, so there is no record.
            let _ = fallback.remember(note, lifetime);
        }
    }

    /// Has a cooldown of this lock answer the requests that wait for it.
    pub(crate) fn answers_waiters(&self) {
        self.state().has_waiters = true;
    }

    /// Requests a cooldown in place of that of the layer's rule.
    pub(crate) fn request_cooldown(&self, cooldown: Duration) {
        if self.handle.is_shared() && !cooldown.is_zero() {
            tracing::warn!(
                layer = self.telemetry.layer,
                "a reader or a permit has no cooldown; the call has no effect"
            );
        }
        self.state().requested = Some(cooldown);
    }

    /// Requests at least this cooldown, unless the response is already there.
    ///
    /// With the response the outcome of the request is known, and the rule's cooldown counts.
    pub(crate) fn request_cooldown_at_least(&self, cooldown: Duration) {
        let mut state = self.state();
        if state.by_rule.is_none() {
            state.requested = state.requested.max(Some(cooldown));
        }
    }

    /// Takes the guards after it has told them their cooldown, which a dropped guard also obeys.
    fn take(&self) -> Option<GrantedLocks> {
        let held_for = self.handle.held_for();
        let mut state = self.state();
        let by_rule = || Some(state.by_rule?.rest(held_for));
        let cooldown = state.requested.or_else(by_rule).unwrap_or_default();
        #[cfg(feature = "replay")]
        let cooldown = match state.memory.is_elsewhere() {
            true => Duration::ZERO,
            false => cooldown,
        };
        let cool_down = match state.has_waiters {
            true => cool_down_and_answer,
            false => |guard: &LockGuard, cooldown| guard.cooldown(cooldown),
        };
        let locks = state.locks.take()?;
        #[cfg(feature = "replay")]
        let kept = state.memory.take();
        state.note = (COOLDOWN_IN_STORE, cooldown.min(DAY));
        #[cfg(feature = "replay")]
        if let Some(lifetime) = kept.as_ref().map(Kept::lifetime) {
            state.note = (ANSWER_IN_STORE, lifetime);
        }
        drop(state);
        self.telemetry.held(held_for);
        for guard in std::iter::once(&locks.guard).chain(&locks.fallback) {
            if !guard.is_shared() {
                cool_down(guard, cooldown);
            }
        }
        #[cfg(feature = "replay")]
        if let Some(kept) = &kept {
            kept.leave_at(&locks);
        }
        Some(locks)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, LockState> {
        // Every statement leaves the state consistent, so a panic while it is locked does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LongHoldObserver for SharedLock {
    fn on_long_hold(&self, held_for: Duration) {
        self.long_holds
            .report(self.telemetry, &self.endpoint, held_for);
    }
}
