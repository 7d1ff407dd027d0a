//! What a manager is made of, how it starts, and how a lock is taken and given back.

pub(crate) mod acquire;
pub(crate) mod attempt;
pub(crate) mod reentry;
pub(crate) mod release;
pub(crate) mod spec;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crate::base::error::Error;
use crate::base::options::{MAX_TTL, Wait};
use crate::base::settings::Settings;
use crate::base::token::{Address, TokenSource};
use crate::keeper::{Job, Keeper};
use crate::lease::yield_turn::YieldedKeys;
use crate::queue::Local;
use crate::store::{
    Event, Events, MemoryStore, News, QuorumNode, QuorumSettings, QuorumStore, Store,
};

/// After a loss of all data the owners look at their leases at once. Waiters ask so much later, so that no owner
/// still believes in a lock that a waiter gets.
const OWNERS_FIRST: Duration = Duration::from_secs(1);

/// What all clones, guards and handles of a manager share.
pub(crate) struct Core {
    pub(crate) tokens: TokenSource,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) local: Local,
    /// Keys that are left to clients of other libraries for a moment.
    pub(crate) courtesy: YieldedKeys,
    pub(crate) operation_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    /// The ttl and the wait of a request that names none.
    pub(crate) defaults: (Duration, Wait),
    /// The longest ttl and cooldown.
    pub(crate) max_ttl: Duration,
    pub(crate) draining: AtomicBool,
    /// The embedded store, where it is one: for tests to command.
    #[cfg(feature = "test-util")]
    pub(crate) memory: Option<Arc<MemoryStore>>,
}

impl Core {
    /// Starts the keeper on an embedded store.
    pub(crate) fn start_embedded(
        store: Arc<MemoryStore>,
        settings: Settings,
    ) -> Result<Arc<Self>, Error> {
        let embedded = Arc::clone(&store);
        Self::assemble(|_, _| store, Some(embedded), settings)
    }

    /// Starts the keeper on several stores.
    pub(crate) fn start_quorum(
        nodes: Vec<QuorumNode>,
        settings: Settings,
    ) -> Result<Arc<Self>, Error> {
        let quorum = QuorumSettings {
            max_ttl: settings.max_ttl.unwrap_or(MAX_TTL),
            assume_fresh: settings.assume_fresh,
            operation_timeout: settings.operation_timeout,
        };
        let store = |keeper: &Arc<Keeper>, manager| -> Arc<dyn Store> {
            QuorumStore::new(nodes, quorum, keeper, TokenSource::new(manager))
        };
        Self::assemble(store, None, settings)
    }

    /// Starts the keeper on a store.
    #[cfg(feature = "redis")]
    pub(crate) fn start(store: Arc<dyn Store>, settings: Settings) -> Result<Arc<Self>, Error> {
        Self::assemble(|_, _| store, None, settings)
    }

    #[cfg_attr(
        not(feature = "test-util"),
        allow(unused_variables, reason = "only tests command the embedded store")
    )]
    fn assemble(
        store: impl FnOnce(&Arc<Keeper>, Address) -> Arc<dyn Store>,
        memory: Option<Arc<MemoryStore>>,
        settings: Settings,
    ) -> Result<Arc<Self>, Error> {
        let manager = Address::random();
        let keeper = Keeper::new(settings.clock, settings.operation_timeout);
        let store = store(&keeper, manager);
        // The store speaks to a manager that may be gone: it keeps none alive.
        let listener: Arc<OnceLock<Weak<Core>>> = Arc::default();
        let events = Events::new(manager, {
            let listener = Arc::clone(&listener);
            move |event| {
                if let Some(core) = listener.get().and_then(Weak::upgrade) {
                    core.hear(event);
                }
            }
        });
        let core = Arc::new(Core {
            tokens: TokenSource::new(manager),
            keeper: Arc::clone(&keeper),
            store: Arc::clone(&store),
            local: Local::default(),
            courtesy: YieldedKeys::default(),
            operation_timeout: settings.operation_timeout,
            connect_timeout: settings.connect_timeout,
            defaults: settings.defaults,
            max_ttl: settings.max_ttl.unwrap_or(MAX_TTL),
            draining: AtomicBool::new(false),
            #[cfg(feature = "test-util")]
            memory,
        });
        let _ = listener.set(Arc::downgrade(&core));
        let background = Arc::clone(&store).background(events);
        keeper.start(store, background).map_err(|error| {
            Error::unavailable(format!("the keeper's thread cannot be started: {error}"))
        })?;
        Ok(core)
    }
}

impl Core {
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    fn hear(self: Arc<Self>, event: Event) {
        match event {
            Event::News {
                key,
                token,
                grant,
                news,
            } => {
                // A waiter that is gone in the meantime must not keep the others waiting.
                if !Local::tell(&self, &key, token, news) {
                    let given = matches!(news, News::Given(_));
                    let job = Job::nobodys(&self, key, token, grant, given);
                    self.keeper.submit(job);
                }
            }
            Event::Interrupted => Local::tell_all(&self, News::Ask),
            Event::Flushed => {
                for hold in self.local.held() {
                    hold.renew_now();
                }
                Local::tell_all(&self, News::Next(OWNERS_FIRST));
            }
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.keeper.close();
    }
}
