//! The lock of one request, from its grant to its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::Request;
use lock_core::__private::{HeldLong, is_lock_of, on_held_long, release_within};
use lock_core::{Error, LockGuard, LockHandle, LockKey, LockManager};

use crate::context::LockContext;
use crate::in_flight::Ticket;
use crate::policy::Policy;
use crate::record::Record;
use crate::stuck::Place;

/// Owns the lock of a request. However it is dropped, the lock is given back: nothing that the
/// handler keeps can hold it longer.
pub(crate) struct Tenure {
    shared: Arc<Shared>,
    /// Counted until the lock is given back, and the handler has ended.
    _ticket: Ticket,
}

/// What the handler's [`LockContext`](crate::LockContext) and the request's future share with it.
pub(crate) struct Shared {
    /// Of the store's lock, or of the fallback's where the store gave no answer.
    pub(crate) handle: LockHandle,
    pub(crate) record: Record,
    policy: Arc<Policy>,
    place: Place,
    /// Of the lock layer around this one, if there is one.
    outer: Option<Arc<Shared>>,
    state: Mutex<State>,
}

struct State {
    /// `None` once it is given back.
    locks: Option<Locks>,
    /// The cooldown by the layer's rule, once there is a response.
    decided: Option<Duration>,
    /// The cooldown that the handler, or a disconnect, has asked for: it counts instead.
    asked: Option<Duration>,
}

/// What was granted.
pub(crate) struct Locks {
    pub(crate) guard: LockGuard,
    /// Of the fallback's manager, beside the store's lock. Given back last: in this process it stands
    /// for both.
    pub(crate) beside: Option<LockGuard>,
    /// The store gave no answer: the guard is the fallback's.
    pub(crate) fell_back: bool,
}

impl Tenure {
    pub(crate) fn new<B>(
        locks: Locks,
        policy: &Arc<Policy>,
        ticket: Ticket,
        request: &Request<B>,
    ) -> Self {
        let beside = locks.beside.as_ref().map(LockGuard::handle);
        let shared = Arc::new(Shared {
            handle: locks.guard.handle(),
            record: policy.record,
            policy: Arc::clone(policy),
            place: Place::of(request),
            outer: LockContext::around(request.extensions()).cloned(),
            state: Mutex::new(State {
                locks: Some(locks),
                decided: None,
                asked: None,
            }),
        });
        on_held_long(&shared.handle, Arc::downgrade(&shared) as _);
        if let Some(beside) = beside {
            // The other lock of the same request: one of them is enough to be told of.
            on_held_long(&beside, Weak::<Shared>::new() as _);
        }
        Self {
            shared,
            _ticket: ticket,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// There is a response, and this is the layer's cooldown for it.
    pub(crate) fn decide(&self, cooldown: Duration) {
        self.shared.state().decided = Some(cooldown);
    }

    /// The response turned out to be none: no cooldown, unless the handler asked for one.
    pub(crate) fn failed(&self) {
        self.shared.state().decided = None;
    }
}

impl Drop for Tenure {
    fn drop(&mut self) {
        // In the background, with the cooldown that counts by now.
        if let Some(locks) = self.shared.take() {
            drop(locks);
            self.shared.record.released("background");
        }
    }
}

impl Shared {
    /// Whether this lock, or one around it, is that of `key` and held: asked for again in there, it
    /// would be waited for in vain.
    pub(crate) fn is_that_of(&self, locks: &LockManager, key: &LockKey) -> bool {
        std::iter::successors(Some(self), |shared| shared.outer.as_deref())
            .any(|shared| is_lock_of(&shared.handle, locks, key) && shared.handle.is_valid())
    }

    /// Gives the lock back, if it was not yet.
    pub(crate) async fn release(&self) -> Result<(), Error> {
        let Some(Locks { guard, beside, .. }) = self.take() else {
            return Ok(());
        };
        let released = guard.release().await;
        release_beside(beside).await;
        released
    }

    /// As [`release`](Self::release). `None`: the store has not answered by then, and the release goes
    /// on in the background.
    pub(crate) async fn release_within(&self, patience: Duration) -> Option<Result<(), Error>> {
        let Some(Locks { guard, beside, .. }) = self.take() else {
            return Some(Ok(()));
        };
        let released = release_within(guard, patience).await;
        release_beside(beside).await;
        released
    }

    /// For how long the key stays taken after the release, whatever the layer's rule says.
    pub(crate) fn ask(&self, cooldown: Duration) {
        self.state().asked = Some(cooldown);
    }

    /// At least that long. After the response is there its outcome is known, and this is too late.
    pub(crate) fn ask_at_least(&self, cooldown: Duration) {
        let mut state = self.state();
        if state.decided.is_none() {
            state.asked = state.asked.max(Some(cooldown));
        }
    }

    /// The locks, told how long to cool down: a guard that is only dropped does that too.
    fn take(&self) -> Option<Locks> {
        let mut state = self.state();
        let cooldown = state.asked.or(state.decided).unwrap_or_default();
        let locks = state.locks.take()?;
        drop(state);
        self.record.held(self.handle.held_for());
        locks.guard.cooldown(cooldown);
        if let Some(beside) = &locks.beside {
            beside.cooldown(cooldown);
        }
        Some(locks)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic between its lines leaves it as it should be.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldLong for Shared {
    fn held_long(&self, held_for: Duration) {
        let template = self.policy.template.as_deref();
        self.record
            .stuck(&self.policy.stuck, template, &self.place, held_for);
    }
}

/// What there is to say was said of the store's lock.
async fn release_beside(beside: Option<LockGuard>) {
    if let Some(beside) = beside {
        let _ = Box::pin(beside.release()).await;
    }
}
