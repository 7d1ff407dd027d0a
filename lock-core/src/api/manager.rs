//! The manager: one store, one keeper, one queue.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::api::builder::ManagerBuilder;
use crate::api::held_lock::{Drained, HeldLock};
use crate::api::request::LockRequest;
use crate::audit::Finding;
use crate::base::error::Error;
use crate::base::key::LockKey;
use crate::engine::Engine;

/// Gives out locks. Cheap to clone; one per process and store is enough.
///
/// It runs one thread, which renews what is held and sends what is still to be released, whatever
/// the application's runtimes do. The thread ends by itself when the last clone, guard and handle
/// are gone.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), lock_core::Error> {
/// use lock_core::LockManager;
///
/// let locks = LockManager::connect("redis://127.0.0.1:6379").await?;
/// locks.install()?; // what `#[distributed_lock]` uses
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

    /// Connects to the store that `url` names, and sees to it that it can be used.
    ///
    /// | URL | store |
    /// | --- | --- |
    /// | `memory:` | embedded, a store of its own |
    /// | `memory:name` | embedded, shared by that name within the process |
    /// | `redis://[user:password@]host[:port][/db]` | one Redis server, version 6.2 or later, or Valkey |
    /// | `rediss://…` | the same over TLS (feature `tls-rustls`) |
    /// | `redis+unix:///path`, `unix:///path` | the same over a Unix socket |
    /// | `redis-sentinel://[user:password@]host[:port],host[:port]…[/db]?service=name` | the master that these sentinels know by that name |
    /// | `redis-cluster://[user:password@]host[:port],host[:port]…` | a Redis Cluster; the nodes of the URL say who the others are |
    /// | `redlock://a,b,c[?max_ttl=10m][&assume_fresh=true]` | several servers that know nothing of one another, each `[user:password@]host[:port][/db]`: see [`quorum`](Self::quorum) |
    ///
    /// `?replica_acks=1` sets [`replica_acks`](ManagerBuilder::replica_acks). A socket's URL also takes `db`,
    /// `user` and `pass`. Any other parameter, one that stands there twice, a `#`, and a user without a
    /// password are `Invalid`.
    ///
    /// Name all sentinels, and several nodes of a cluster. User and password are those of the servers
    /// that keep the locks; what the sentinels themselves ask for stands behind the name of the service,
    /// as `&sentinel_username=…&sentinel_password=…`. What more than one server means for a lock is
    /// [said here](crate#more-than-one-server).
    ///
    /// `rediss-sentinel://`, `rediss-cluster://` and `redlocks://` speak TLS to all of them. A server whose
    /// certificate is not good is `Misconfigured`, and no URL can turn that off. Whom to trust beside the
    /// system's authorities, and the certificate of this client, is for
    /// [`tls_certificates`](ManagerBuilder::tls_certificates) to say. `valkey` may stand for `redis` in all of
    /// these.
    ///
    /// # Errors
    ///
    /// `Invalid` for a URL that is none of these, `Unavailable` if there is no answer, and
    /// `Misconfigured` if the server does not accept this user or lacks what is needed. No message
    /// shows the URL's user or password.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the attempt.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::builder(url).connect().await
    }

    /// As [`connect`](Self::connect), without waiting for the server: the first lock finds out.
    ///
    /// # Errors
    ///
    /// `Invalid` for a URL that names no store.
    pub fn connect_lazy(url: &str) -> Result<Self, Error> {
        Self::builder(url).connect_lazy()
    }

    /// A manager with an embedded store of its own.
    ///
    /// # Panics
    ///
    /// If the operating system cannot start a thread; `connect_lazy("memory:")` reports that.
    #[must_use]
    pub fn in_memory() -> Self {
        match Self::connect_lazy("memory:") {
            Ok(manager) => manager,
            Err(error) => panic!("{error}"),
        }
    }

    /// Settings beyond the URL.
    pub fn builder(url: &str) -> ManagerBuilder {
        ManagerBuilder::new(url)
    }

    /// A manager over several stores that know nothing of one another, one URL for each: a lock is
    /// held while more than half of them hold it. `redlock://a,b,c` is the same with
    /// `redis://a`, `redis://b` and `redis://c`; here the nodes may also be `rediss://…`, sockets or
    /// (for tests) `memory:`.
    ///
    /// # What it survives
    ///
    /// Of n servers, n − q may be out at any time, with q = ⌊n/2⌋ + 1: two of five, one of three; an
    /// even number survives no more than the odd one below it. A dead server costs nothing once it is
    /// noticed. [`LockHandle::acks`](crate::LockHandle::acks) shows how many hold a lock, and how many
    /// of these may still go.
    ///
    /// A server that restarts *without its data* is kept out for
    /// [`max_ttl`](ManagerBuilder::max_ttl), because it may have forgotten locks. So are new ones; on
    /// the first deployment [`assume_fresh`](ManagerBuilder::assume_fresh) says so. A server that
    /// restarts with *some* of its data has forgotten without showing it: give these servers either
    /// no persistence at all, or `appendonly yes` with `appendfsync always`. No `maxmemory` policy may
    /// evict their keys.
    ///
    /// Windows of two owners never overlap as long as fewer than a majority forget, and no server's
    /// clock runs faster than this process's by more than 1 %, or jumps ahead while a lock is held.
    ///
    /// # Fencing tokens
    ///
    /// The client proposes a number, and each server accepts what is above all it has accepted before;
    /// a majority that accepts makes it the fencing token, in the same round trip as the lock. Two
    /// majorities share a server: tokens are unique and rise, whatever clocks and clients do, as long
    /// as a majority of the servers keep their data. They are like the time, so that they also rise over
    /// a restart without data if the clocks are not behind, and from `redis://` to `redlock://`.
    ///
    /// The algorithm is that of the page
    /// [Distributed Locks with Redis](https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/);
    /// the tokens answer
    /// [Kleppmann's critique](https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html):
    /// without them no lock with a lease can stop an owner that was paused and writes late.
    ///
    /// # Waiting
    ///
    /// A waiter stands in the queue of every server, and is woken by any of them. But none can give
    /// it the lock: those who are woken try, and whoever has a majority first has it. When several
    /// have some servers each, all of them give back what they have and try again after a random
    /// time. So waiting is not fair between processes; within one it is.
    ///
    /// # When a server stops, or a runtime is blocked
    ///
    /// A server that has stopped answering is noticed by the first attempt or renewal that it does not
    /// answer, after four fifths of the [`operation_timeout`](ManagerBuilder::operation_timeout) or an
    /// eighth of the ttl, whichever is less (0.4 s at most by default). Until then locks are taken
    /// without it at no cost, but each release waits 20 ms for it.
    ///
    /// Answers are heard on the runtime that asked. While that one is blocked, a vote that comes after
    /// its attempt was over stays on its server until the runtime goes on, or for the ttl: others have
    /// one server less to take the lock from, and nothing worse. A runtime that has ended leaves such
    /// votes to the manager's own thread.
    ///
    /// # Errors
    ///
    /// `Invalid`, from [`connect`](ManagerBuilder::connect): no node or more than 15, a URL that is no
    /// server's, or one server twice, by the same name or by two. `Unavailable`: no majority answers.
    ///
    /// # Cancel safety
    ///
    /// That of the manager's other methods: what is dropped is undone on every server.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// use lock_core::LockManager;
    ///
    /// let locks = LockManager::quorum(["memory:", "memory:", "memory:"]).connect().await?;
    /// let guard = locks.lock("order:42").acquire().await?;
    /// assert_eq!(guard.acks().of(), 3);
    /// assert!(guard.acks().granted() >= 2);
    /// guard.release().await
    /// # }
    /// ```
    pub fn quorum<U: AsRef<str>>(urls: impl IntoIterator<Item = U>) -> ManagerBuilder {
        ManagerBuilder::quorum(urls)
    }

    /// A manager on a Redis client that the application has made; connects when it is first used.
    ///
    /// Connections are the manager's own, with the client's address, user and TLS settings. For other
    /// settings than the defaults see [`builder_from_client`](Self::builder_from_client).
    ///
    /// # Errors
    ///
    /// `Unavailable` if the operating system cannot start the manager's thread.
    #[cfg(feature = "redis")]
    pub fn from_client(client: redis::Client) -> Result<Self, Error> {
        Self::builder_from_client(client).connect_lazy()
    }

    /// As [`from_client`](Self::from_client), with settings: namespace, time-outs, `replica_acks`.
    ///
    /// What the client's URL says beyond address, user, database and TLS is not seen here: a
    /// `?replica_acks=1` in it has no effect, [`ManagerBuilder::replica_acks`] has.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// use lock_core::{LockManager, redis};
    ///
    /// let client = redis::Client::open("redis://127.0.0.1:6379").expect("a URL");
    /// let locks = LockManager::builder_from_client(client)
    ///     .replica_acks(1)
    ///     .connect_lazy()?;
    /// # drop(locks); Ok(()) }
    /// ```
    #[cfg(feature = "redis")]
    pub fn builder_from_client(client: redis::Client) -> ManagerBuilder {
        ManagerBuilder::from_client(client)
    }

    /// A lock on `key`, with the manager's defaults: ttl 30 s, no wait.
    pub fn lock(&self, key: impl Into<LockKey>) -> LockRequest {
        LockRequest::new(Ok(self), key.into())
    }

    /// What this process holds through this manager, in no order. No I/O.
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

    /// Ends the service in order: no new locks, and an end to every wait for one (`Unavailable`);
    /// then waits up to `timeout` for the guards and bodies that there are, lost ones included, for
    /// the releases still under way, and for what is still being asked: every waiter has left the
    /// store's queue, where it would be given the lock.
    ///
    /// Answers what was left. A process that exits with releases left leaves those keys to their
    /// ttl.
    ///
    /// # Cancel safety
    ///
    /// The manager stays drained; nothing else is lost.
    pub async fn drain(&self, timeout: Duration) -> Drained {
        self.engine.queue.drain(&Error::draining());
        let keeper = &self.engine.keeper;
        let end = self.engine.now() + timeout;
        let _ = self.engine.timers.before(end, keeper.idle()).await;
        let left = keeper.load();
        Drained {
            held: left.guards,
            releasing: left.tasks,
        }
    }

    /// Looks at how the store is set up, and says what endangers locks there: settings, missing rights,
    /// too few replicas, clocks that are apart. Nothing, on an embedded store and on a server that is
    /// well kept.
    ///
    /// The same is said in the log, once, when a manager has connected. A setting that the server does
    /// not tell this user (`CONFIG` is often forbidden) is not judged.
    ///
    /// # Errors
    ///
    /// `Unavailable` if there is no answer within the manager's connect timeout, and what connecting
    /// meets otherwise.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn audit(&self) -> Result<Vec<Finding>, Error> {
        let patience = self.engine.connect_timeout;
        let end = self.engine.now() + patience;
        let answer = self.engine.store.audit();
        match self.engine.timers.before(end, answer).await {
            Some(answer) => answer.map_err(|failure| failure.error),
            None => Err(Error::unavailable(format!(
                "the store gave no answer within {patience:?}"
            ))),
        }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Waits until the store can be used.
    pub(crate) async fn ready(&self) -> Result<(), Error> {
        let patience = self.engine.connect_timeout;
        let end = self.engine.now() + patience;
        let answer = self.engine.store.ready();
        match self.engine.timers.before(end, answer).await {
            Some(answer) => answer.map_err(|failure| failure.error),
            None => Err(Error::unavailable(format!(
                "the store could not be reached within {patience:?}"
            ))),
        }
    }

    /// The embedded store, for a test to command; `None` on any other store.
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
