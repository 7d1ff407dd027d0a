//! The handler of a request, and its fate when the request is dropped.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::handler::Handled;
use crate::lock::{BoxFuture, SharedLock};
use crate::options::Disconnect;
use crate::policy::Policy;

/// The handler, while its request lives.
pub(super) struct RunningHandler<T, E> {
    pub(super) handler: BoxFuture<Handled<T, E>>,
    /// The runtime on which the handler runs on if the request is dropped.
    runtime: Option<Handle>,
    /// Spawns the handler. It is set where the types are known to be `Send`.
    spawn: fn(&Handle, BoxFuture<Handled<T, E>>),
    /// The handler is being polled. If it is dropped meanwhile, it has panicked.
    pub(super) polled: bool,
    /// `None` if the request runs without a lock.
    lock: Option<Arc<SharedLock>>,
    /// The lock of the next outer lock layer, if there is one.
    outer: Option<Arc<SharedLock>>,
    pub(super) policy: Arc<Policy>,
}

impl<T, E> RunningHandler<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
    pub(super) fn new(
        handler: BoxFuture<Handled<T, E>>,
        lock: Option<Arc<SharedLock>>,
        outer: Option<Arc<SharedLock>>,
        policy: Arc<Policy>,
    ) -> Self {
        Self {
            handler,
            runtime: Handle::try_current().ok(),
            spawn: |runtime, handler| drop(runtime.spawn(handler)),
            polled: false,
            lock,
            outer,
            policy,
        }
    }
}

impl<T, E> RunningHandler<T, E> {
    /// Handles the drop of the request while its handler ran or its lock was being released.
    pub(super) fn disconnect(self) {
        if self.polled {
            // The handler has panicked and is gone. The panic propagates as without this layer.
            return;
        }
        self.policy.telemetry.disconnected();
        // This request is part of the handler of an outer layer. A timeout or the decision of that layer has ended
        // that handler, so the outer lock is released next. A handler that runs on keeps this request alive.
        let is_inside = self.outer.is_some_and(|outer| outer.is_owned());
        let runtime = self.runtime.filter(|_| !is_inside);
        match (self.policy.disconnect, runtime) {
            (Disconnect::RunToEnd, Some(runtime)) => (self.spawn)(&runtime, self.handler),
            // Without a runtime the handler cannot run on.
            (Disconnect::RunToEnd, None) | (Disconnect::Release, _) => {}
            (Disconnect::HoldUntilTtl, _) => {
                if let Some(lock) = &self.lock {
                    lock.request_cooldown_at_least(self.policy.ttl);
                }
            }
        }
    }
}
