//! Events that a store reports to its manager without being asked.

use std::sync::Arc;
use std::time::Duration;

use super::operator::{Held, Question};
use crate::base::holder_token::HolderToken;
use crate::base::identity::Identity;
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
    /// The key was changed, and not by a renewal: by a `DEL`, another value or its end. The event says nothing about the
    /// lease that the key belongs to, if there is one.
    Changed(Arc<str>),
    /// Changes of keys may have been missed, and none are reported until a key is renewed.
    Unwatched,
    /// All data was deleted (`FLUSHALL`): the leases and the queues are gone.
    Flushed,
    /// An operator has freed the key of this holder.
    Forced { key: Arc<str>, holder: HolderToken },
    /// An operator asks what this process holds.
    Asked(Question),
    /// A holder has answered a question of this process.
    Answered { number: u64, held: Option<Held> },
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
    /// The identity that the manager leaves in the store, unless it is anonymous.
    pub(crate) identity: Option<Arc<Identity>>,
    listener: Arc<dyn Fn(Event) + Send + Sync>,
}

impl Events {
    pub(crate) fn new(
        manager: Address,
        identity: Option<Arc<Identity>>,
        listener: impl Fn(Event) + Send + Sync + 'static,
    ) -> Self {
        Self {
            manager,
            identity,
            listener: Arc::new(listener),
        }
    }

    /// Reports an event. The caller must hold no lock, because the listener takes locks and wakes tasks.
    pub(crate) fn notify(&self, event: Event) {
        (self.listener)(event);
    }
}
