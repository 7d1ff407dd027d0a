//! The engine of a manager: how a lock is acquired, kept, handed on and released.
//!
//! [`Engine`] owns the store, the [keeper](crate::keeper) and the [queue](crate::queue) of the process. They
//! know nothing of it: the keeper reports lost leases, the queue gives back what it takes away from futures
//! that are not polled, and the store reports its [events], each through a weak reference.

mod acquire;
pub(crate) mod acquired;
pub(crate) mod attempt;
mod downgrade;
pub(crate) mod ending;
mod events;
pub(crate) mod inquiry;
mod look;
pub(crate) mod loss_watch;
mod question;
pub(crate) mod reentry;
pub(crate) mod server_clock;
pub(crate) mod several;
mod share;
pub(crate) mod spec;
pub(crate) mod take;
mod tickets;

use std::sync::{Arc, Weak};
use std::task::Context;
use std::time::Duration;

use self::inquiry::Inquiries;
use crate::active::{ActiveLease, Closed};
use crate::base::clock::Moment;
use crate::base::error::Error;
use crate::base::options::Wait;
use crate::base::settings::Settings;
use crate::base::token::{Address, TokenSource};
use crate::keeper::Keeper;
use crate::lease::cohort::GAP;
use crate::lease::yield_turn::YieldedKeys;
use crate::lease::{Loss, Phase};
use crate::queue::Queue;
use crate::store::{Events, MemoryStore, QuorumNode, QuorumStore, Store};
use crate::timer::Timers;

/// The parts of a manager that all its clones, guards and handles share.
pub(crate) struct Engine {
    pub(crate) tokens: TokenSource,
    pub(crate) timers: Arc<Timers>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) queue: Arc<Queue>,
    /// Keys that are left to clients of other libraries for a moment.
    pub(crate) yielded: YieldedKeys,
    /// Questions to the holders of locks.
    pub(crate) inquiries: Inquiries,
    pub(crate) namespace: String,
    pub(crate) operation_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    /// The ttl and the wait of a request that names none.
    pub(crate) defaults: (Duration, Wait),
    /// The longest ttl and cooldown.
    pub(crate) max_ttl: Duration,
    /// The embedded store, where it is one: for tests to command.
    #[cfg(feature = "test-util")]
    pub(crate) memory: Option<Arc<MemoryStore>>,
}

impl Engine {
    /// Starts the keeper on several stores.
    pub(crate) fn start_quorum(
        nodes: Vec<QuorumNode>,
        settings: Settings,
    ) -> Result<Arc<Self>, Error> {
        let of_quorum = settings.clone();
        Self::start(settings, None, |timers, manager| {
            QuorumStore::new(nodes, of_quorum, timers, TokenSource::new(manager))
        })
    }

    /// Starts the keeper on a store. `memory`: the store, where it is an embedded one.
    #[cfg_attr(
        not(feature = "test-util"),
        allow(unused_variables, reason = "only tests command the embedded store")
    )]
    pub(crate) fn start(
        settings: Settings,
        memory: Option<Arc<MemoryStore>>,
        store: impl FnOnce(&Arc<Timers>, Address) -> Arc<dyn Store>,
    ) -> Result<Arc<Self>, Error> {
        let manager = Address::random();
        let identity = settings.naming.identity()?;
        let timers = Timers::new(settings.clock);
        let keeper = Keeper::new(Arc::clone(&timers), settings.operation_timeout);
        let store = store(&timers, manager);
        #[cfg(lock_sim)]
        let store: Arc<dyn Store> = Arc::new(crate::store::Noted { store, manager });
        let engine = Arc::new_cyclic(|engine: &Weak<Self>| Engine {
            tokens: TokenSource::new(manager),
            timers: Arc::clone(&timers),
            queue: Queue::new(Arc::clone(&keeper), Box::new(engine.clone())),
            keeper: Arc::clone(&keeper),
            store: Arc::clone(&store),
            yielded: YieldedKeys::default(),
            inquiries: Inquiries::default(),
            namespace: settings.namespace,
            operation_timeout: settings.operation_timeout,
            connect_timeout: settings.connect_timeout,
            defaults: settings.defaults,
            max_ttl: settings.max_ttl,
            #[cfg(feature = "test-util")]
            memory,
        });
        // The store and the keeper keep no engine alive, because they report to one that may be gone.
        let listener = Arc::downgrade(&engine);
        let events = Events::new(manager, identity, move |event| {
            if let Some(engine) = listener.upgrade() {
                engine.hear(event);
            }
        });
        let background = Arc::clone(&store).background(events);
        let listener = Box::new(Arc::downgrade(&engine));
        let started = keeper.start(store, background, listener);
        started.map_err(|error| {
            Error::unavailable(format!("the keeper's thread cannot be started: {error}"))
        })?;
        Ok(engine)
    }

    pub(crate) fn now(&self) -> Moment {
        self.timers.now()
    }

    // Each of these reads the clock first, so that a process that was stopped for longer than its lease
    // notices the loss at once.

    pub(crate) fn phase(&self, lease: &ActiveLease) -> Phase {
        let (phase, lost) = lease.observe();
        if lost {
            self.queue.abandon(lease);
            self.lose_others(lease);
        }
        if phase == Phase::Held && !lease.followers().is_empty() {
            return self.phase_of_all(lease);
        }
        phase
    }

    pub(crate) fn is_valid(&self, lease: &ActiveLease) -> bool {
        self.phase(lease) == Phase::Held
    }

    /// Returns the loss if the lease is lost. Registers the task to be woken by a later loss.
    pub(crate) fn poll_lost(
        &self,
        lease: &ActiveLease,
        waker_id: &mut Option<u32>,
        context: &Context<'_>,
    ) -> Option<Loss> {
        lease.wake_on_change(waker_id, context.waker());
        match self.phase(lease) {
            Phase::Lost(loss) => Some(loss),
            _ => None,
        }
    }

    /// Ends the lease in this process. Returns the phase it was in, or `Closed` if bodies still run under it.
    pub(crate) fn close(&self, lease: &Arc<ActiveLease>) -> Phase {
        let Closed::Now { before, gap } = lease.close() else {
            return Phase::Closed;
        };
        if gap {
            // Waiters of other processes come before the tasks of this one.
            let now = self.now();
            self.yielded
                .stand_back(&lease.key, now + GAP + GAP / 5, now);
        }
        self.keeper.disarm(lease);
        before
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.keeper.close();
    }
}
