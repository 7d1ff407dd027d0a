//! The manager: one store, one keeper, one queue.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::api::held_lock::{Drained, HeldLock};
use crate::api::request::LockRequest;
use crate::api::requested_keys::RequestedKeys;
use crate::audit::Finding;
use crate::base::BoxFuture;
use crate::base::error::Error;
use crate::base::key::LockKey;
use crate::engine::Engine;
use crate::store::Failure;

/// Grants locks from one store.
///
/// A manager is cheap to clone, and one for each process and store is enough. It runs one thread,
/// which renews held locks and sends pending releases, independent of the application's runtimes.
/// The thread ends when the last clone, guard and handle have been dropped.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), lock_core::Error> {
/// use lock_core::LockManager;
///
/// let locks = LockManager::connect("redis://127.0.0.1:6379").await?;
/// locks.install()?; // the default of `#[distributed_lock]`
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct LockManager {
    engine: Arc<Engine>,
}

impl LockManager {
    pub(crate) fn of(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// Creates a request for the lock on `key`, with the manager's defaults.
    ///
    /// The built-in defaults are a ttl of 30 s and no wait.
    #[doc(alias = "mutex")]
    pub fn lock(&self, key: impl Into<LockKey>) -> LockRequest {
        LockRequest::new(Ok(self), RequestedKeys::One(key.into()))
    }

    /// Creates a request for one lock on several keys: all of them, or none.
    ///
    /// The order of the keys does not matter, and duplicates count once, because the kit acquires them in the order of
    /// their bytes. So no two requests wait for each other for ever, also where their callers name the keys in different
    /// orders. A lock has 1 to 16 keys.
    ///
    /// The lock has one guard. It is lost as soon as one of its keys is lost, and its release releases all keys. Its
    /// [fencing token](crate::LockHandle::fencing_token) is valid for each key: it is higher than the earlier tokens of all
    /// keys, and lower than the later ones.
    ///
    /// The options of the request apply to all keys together. A wait is for all keys, and a `Busy` error is about
    /// [the key](crate::Error::key) that was taken. A caller that waits holds no key at first. If it was refused twice, it
    /// acquires the keys one by one, and holds the lower ones for the rest of its wait at most.
    ///
    /// If the keys are on one server, free keys cost one round trip. In a cluster, keys of different slots cost one round
    /// trip each, and so do all keys of `redlock://`. Keys with a common hash tag, as in `account:{7}:a`, are in one slot.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// # async fn transfer(_: u64, _: u64, _: lock_core::FencingToken) {}
    /// use lock_core::lock_key;
    /// use std::time::Duration;
    ///
    /// let (from, to) = (7, 3);
    /// let accounts = [from, to].map(|id| lock_key!("account:<id>"));
    /// let request = locks.lock_all(accounts).ttl(Duration::from_secs(10)).wait(Duration::from_secs(2));
    /// request.run_with(|lock| async move { transfer(from, to, lock.fencing_token()).await }).await?;
    /// # Ok(()) }
    /// ```
    pub fn lock_all<K: Into<LockKey>>(&self, keys: impl IntoIterator<Item = K>) -> LockRequest {
        let keys = keys.into_iter().map(Into::into).collect();
        LockRequest::new(Ok(self), RequestedKeys::All(keys))
    }

    /// Lists the locks that this process holds through this manager, in no order.
    ///
    /// The method does no I/O.
    #[must_use]
    pub fn held(&self) -> Vec<HeldLock> {
        let held = self.engine.queue.held().into_iter().filter_map(|lease| {
            Some(HeldLock {
                remaining: lease.remaining(),
                held_for: lease.held_for(),
                fencing_token: lease.fence()?,
                key: Arc::clone(&lease.key),
            })
        });
        held.filter(|held| !held.remaining.is_zero()).collect()
    }

    /// Shuts the manager down in order, and reports what was left.
    ///
    /// New requests, and all waits for a lock, end with `Unavailable`. The method then waits up to
    /// `timeout`, until:
    ///
    /// * all guards, bodies and [kept locks](crate::KeptLock) have ended, lost ones included;
    /// * all pending releases are confirmed;
    /// * all waiters have left the store's queue, where a release would hand them the lock.
    ///
    /// If the process exits with releases left, their keys stay taken for the rest of the ttl.
    ///
    /// # Cancel safety
    ///
    /// The manager stays drained, and nothing else is lost.
    pub async fn drain(&self, timeout: Duration) -> Drained {
        self.engine.queue.drain(&Error::draining());
        let keeper = &self.engine.keeper;
        let end = self.engine.now() + timeout;
        let _ = self.engine.timers.before(end, keeper.idle()).await;
        let (held, releasing) = keeper.load();
        Drained { held, releasing }
    }

    /// Checks the store's configuration, and lists what endangers locks there.
    ///
    /// Findings are about settings, missing rights, too few replicas and clocks that differ. The
    /// list is empty for an embedded store and for a well-configured server.
    ///
    /// The manager also logs the findings, once, after it has connected. A setting that the server
    /// does not show to this user is not judged, because `CONFIG` is often forbidden.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the store does not answer within the manager's connect timeout, and the
    /// errors of [`connect`](Self::connect).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn audit(&self) -> Result<Vec<Finding>, Error> {
        let answer = self.engine.store.audit();
        let patience = self.engine.connect_timeout;
        self.answered(answer, patience, "the store gave no answer")
            .await
    }

    /// Asks the store now whether this process can take locks, for a readiness probe.
    ///
    /// It is one round trip. A server must answer, be the one that has the locks, and let this user run every command of
    /// a lock. Of several independent servers (`redlock://`), a majority must answer and vote; of a cluster, one master.
    /// The embedded store always answers.
    ///
    /// A success says nothing about the memory of the server, which a lock needs and this question does not. Replicas
    /// ([`replica_acks`](crate::ManagerBuilder::replica_acks)) are not asked.
    ///
    /// # Errors
    ///
    /// * `Unavailable`: no answer within the manager's
    ///   [`operation_timeout`](crate::ManagerBuilder::operation_timeout), no connection, no majority, or the manager is
    ///   draining.
    /// * `Misconfigured`: the server refuses this user or its commands for good, or it is no Redis.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// A route of axum for the load balancer. With the feature `axum` the error is the response: 503, or 500 for a
    /// server that is set up wrongly.
    ///
    /// ```
    /// # mod axum { pub mod extract { pub struct State<T>(pub T); } }
    /// use axum::extract::State;
    /// use lock_core::{Error, LockManager};
    ///
    /// // Router::new().route("/readyz", get(readyz)).with_state(locks)
    /// async fn readyz(State(locks): State<LockManager>) -> Result<(), Error> {
    ///     locks.ping().await
    /// }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// #     readyz(State(LockManager::in_memory())).await.expect("an embedded store answers");
    /// # }
    /// ```
    pub async fn ping(&self) -> Result<(), Error> {
        if self.engine.queue.is_draining() {
            return Err(Error::draining());
        }
        let answer = self.engine.store.ping();
        let patience = self.engine.operation_timeout;
        self.answered(answer, patience, "the store gave no answer")
            .await
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Waits until the store can be used.
    pub(crate) async fn ready(&self) -> Result<(), Error> {
        let answer = self.engine.store.ready();
        let patience = self.engine.connect_timeout;
        self.answered(answer, patience, "the store could not be reached")
            .await
    }

    /// Waits for the store's answer. `missing`: the message about no answer.
    async fn answered<T>(
        &self,
        answer: BoxFuture<'_, Result<T, Failure>>,
        patience: Duration,
        missing: &str,
    ) -> Result<T, Error> {
        let end = self.engine.now() + patience;
        let answer = self.engine.timers.before(end, answer).await;
        let answer =
            answer.ok_or_else(|| Error::unavailable(format!("{missing} within {patience:?}")))?;
        answer.map_err(|failure| failure.error)
    }

    /// Returns the embedded store for a test, or `None` for any other store.
    #[cfg(feature = "test-util")]
    #[must_use]
    pub fn test_store(&self) -> Option<crate::api::test_util::TestStore> {
        let store = self.engine.memory.clone()?;
        Some(crate::api::test_util::TestStore { store })
    }
}

impl fmt::Debug for LockManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockManager")
            .field("store", &self.engine.store)
            .finish_non_exhaustive()
    }
}
