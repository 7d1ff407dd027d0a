//! Events that a store reports to its manager without being asked.

use std::sync::Arc;
use std::time::Duration;

use crate::base::token::{Address, Token};
use crate::lease::Grant;

#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// News for the waiter with this token.
    News {
        key: Arc<str>,
        token: Token,
        /// For how long the store gives the key to this waiter, as its entry in the queue says. A manager
        /// that no longer has the waiter gives the key back with this ttl.
        grant: Duration,
        news: News,
    },
    /// Pushes may have been missed, or none arrive for now: every waiter asks again.
    Interrupted,
    /// All data was deleted (`FLUSHALL`): the leases and the queues are gone.
    Flushed,
}

/// A message to one waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The key may be free now: ask.
    Ask,
    /// The key is this waiter's.
    Given(Grant),
    /// This waiter is next: it asks after this long, unless other news comes first.
    Next(Duration),
}

/// The manager that a store reports its events to.
#[derive(Clone)]
pub(crate) struct Events {
    pub(crate) manager: Address,
    listener: Arc<dyn Fn(Event) + Send + Sync>,
}

impl Events {
    pub(crate) fn new(manager: Address, listener: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self {
            manager,
            listener: Arc::new(listener),
        }
    }

    /// Reports an event. The caller must hold no lock, because the listener takes locks and wakes tasks.
    pub(crate) fn notify(&self, event: Event) {
        (self.listener)(event);
    }
}
