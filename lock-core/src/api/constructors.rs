//! The constructors of a manager.

use crate::api::builder::ManagerBuilder;
use crate::api::manager::LockManager;
#[cfg(feature = "redis")]
use crate::api::redis_client::RedisClient;
use crate::base::error::Error;

impl LockManager {
    /// Connects to the store that `url` names, and waits until it can be used.
    ///
    /// | URL | store |
    /// | --- | --- |
    /// | `memory:` | a new embedded store |
    /// | `memory:name` | the embedded store of that name, shared within the process |
    /// | `redis://[user:password@]host[:port][/db]` | one Redis server, version 6.2 or later, or Valkey |
    /// | `rediss://…` | the same over TLS (feature `tls-rustls`) |
    /// | `redis+unix:///path`, `unix:///path` | the same over a Unix socket |
    /// | `redis-sentinel://[user:password@]host[:port],host[:port]…[/db]?service=name` | the master that these sentinels know by that name |
    /// | `redis-cluster://[user:password@]host[:port],host[:port]…` | a Redis Cluster; these nodes name the others |
    /// | `redlock://a,b,c[?max_ttl=10m][&assume_fresh=true]` | Redlock over several servers: see [`quorum`](Self::quorum) |
    /// | `postgres://[user[:password]@]host[:port][,host[:port]…]/database` | a table of PostgreSQL 12 or later, on the host that takes writes (feature `postgres`); `postgresql://` is the same |
    ///
    /// `?replica_acks=1` sets [`replica_acks`](ManagerBuilder::replica_acks). A socket's URL also
    /// takes `db`, `user` and `pass`. Any other parameter is `Invalid`. So is a repeated parameter,
    /// a `#`, and a user without a password.
    ///
    /// Each server of `redlock://` is `[user:password@]host[:port][/db]`.
    ///
    /// Name all sentinels, and several nodes of a cluster. User and password are those of the
    /// servers that keep the locks. The credentials of the sentinels themselves follow the name of
    /// the service, as `&sentinel_username=…&sentinel_password=…`. [Another
    /// section](crate#more-than-one-server) explains how locks behave on more than one server.
    ///
    /// `rediss-sentinel://`, `rediss-cluster://` and `redlocks://` use TLS for all servers. A
    /// server with an invalid certificate is `Misconfigured`, and no URL can turn that off.
    /// [`tls_certificates`](ManagerBuilder::tls_certificates) sets other authorities, and the
    /// certificate of this client. `valkey` may replace `redis` in all of these URLs.
    ///
    /// A `postgres://` URL takes `sslmode` (`disable`, `prefer`, `require`, `verify-full`; TLS always checks the certificate,
    /// and needs the feature `postgres-tls`), `host` for a socket, `application_name`, and two for a pooler such as pgbouncer in
    /// its transaction mode: `?listen=` has the URL of a direct way for the one connection that waits for messages (in it write
    /// `&` as `%26`), and `?prepare=off` prepares no statements. The hosts are tried in their order. The table is created on the
    /// first connection; `POSTGRES_SCHEMA` has its SQL for a migration.
    ///
    /// # Errors
    ///
    /// `Invalid` for any other URL, `Unavailable` if the server does not answer, and
    /// `Misconfigured` if the server does not accept this user or lacks a required feature. No
    /// message shows the URL's user or password.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the attempt.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::builder(url).connect().await
    }

    /// Creates the manager without waiting for the server.
    ///
    /// The first request for a lock finds out whether the server can be used.
    ///
    /// # Errors
    ///
    /// `Invalid` for a URL that names no store.
    pub fn connect_lazy(url: &str) -> Result<Self, Error> {
        Self::builder(url).connect_lazy()
    }

    /// Creates a manager with a new embedded store.
    ///
    /// # Panics
    ///
    /// Panics if the operating system cannot start a thread. `connect_lazy("memory:")` returns that
    /// error instead.
    #[must_use]
    pub fn in_memory() -> Self {
        match Self::connect_lazy("memory:") {
            Ok(manager) => manager,
            Err(error) => panic!("{error}"),
        }
    }

    /// Creates a builder, for settings beyond the URL.
    pub fn builder(url: &str) -> ManagerBuilder {
        ManagerBuilder::of_url(url)
    }

    /// Creates a builder for a manager over several independent stores (Redlock).
    ///
    /// Each store has one URL, and a lock is held while more than half of the stores hold it.
    /// `redlock://a,b,c` means the same as `redis://a`, `redis://b` and `redis://c` here. A node
    /// may also be `rediss://…`, a socket or, for tests, `memory:`.
    ///
    /// # Failures
    ///
    /// Of n servers, n − q may be down at any time, with q = ⌊n/2⌋ + 1: two of five, or one of
    /// three. An even number survives no more failures than the odd number below it. A dead server
    /// costs nothing once the manager has noticed it. [`LockHandle::acks`](crate::LockHandle::acks)
    /// shows how many servers hold a lock, and how many of these may still fail.
    ///
    /// A server that restarts *without its data* is kept out for
    /// [`max_ttl`](ManagerBuilder::max_ttl), because it may have forgotten locks. New servers are
    /// kept out too; on the first deployment, [`assume_fresh`](ManagerBuilder::assume_fresh) marks
    /// them as new. A server that restarts with *some* of its data may have forgotten locks without
    /// showing it. So give these servers either no persistence at all, or `appendonly yes` with
    /// `appendfsync always`. No `maxmemory` policy may evict their keys.
    ///
    /// At most one owner believes that it holds the lock, provided that:
    ///
    /// * fewer than a majority of the servers forget the lock,
    /// * no server's clock runs faster than this process's by more than 1 %,
    /// * no server's clock jumps ahead while a lock is held.
    ///
    /// # Fencing tokens
    ///
    /// The client proposes a number, and each server accepts it if it is above all numbers that the
    /// server has accepted before. If a majority accepts the number, it becomes the fencing token,
    /// in the same round trip as the lock. Two majorities share a server. So tokens are unique and
    /// rise, independent of clocks and clients, as long as a majority of the servers keep their data.
    /// The numbers follow the time. So they also rise over a restart without data if the clocks are
    /// not behind, and after a change from `redis://` to `redlock://`.
    ///
    /// The algorithm is that of the page [Distributed Locks with
    /// Redis](https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/). The tokens
    /// answer [Kleppmann's
    /// critique](https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html),
    /// because without them no lock with a lease can stop an owner that was paused and writes late.
    ///
    /// # Waiting
    ///
    /// A waiter stands in the queue of every server, and any server wakes it. But no server can
    /// grant the lock alone. The woken waiters try to lock, and the first waiter with a majority
    /// gets the lock. If several waiters have some servers each, all of them release their servers
    /// and try again after a random time. So waiting is fair within a process, but not between
    /// processes.
    ///
    /// # Stopped servers and blocked runtimes
    ///
    /// The first attempt or renewal that a stopped server does not answer detects the failure. It
    /// waits for four fifths of the [`operation_timeout`](ManagerBuilder::operation_timeout) or an
    /// eighth of the ttl, whichever is less (0.4 s at most by default). Until then, locks are
    /// acquired without that server at no cost, but each release waits 20 ms for it.
    ///
    /// The runtime that asked receives the answers. While it is blocked, a vote that arrives after
    /// the end of its attempt stays on its server until the runtime continues, or for the ttl. The
    /// only harm is that other clients have one server less from which to acquire the lock. A
    /// runtime that has ended leaves such votes to the manager's own thread.
    ///
    /// # Errors
    ///
    /// [`connect`](ManagerBuilder::connect) returns `Invalid` for no node, for more than 15 nodes,
    /// for a URL that does not name a server, and for a server that is listed twice, even under two
    /// names. It returns `Unavailable` if no majority answers.
    ///
    /// # Cancel safety
    ///
    /// The same as that of the manager's other methods, because a dropped operation is undone on
    /// every server.
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

    /// Creates a manager on a Redis client of the application; it connects on first use.
    ///
    /// The manager makes its own connections, with the client's address, user and TLS settings.
    /// [`builder_from_client`](Self::builder_from_client) allows other settings.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the operating system cannot start the manager's thread.
    #[cfg(feature = "redis")]
    pub fn from_client(client: impl Into<RedisClient>) -> Result<Self, Error> {
        Self::builder_from_client(client).connect_lazy()
    }

    /// Creates a builder on a Redis client, for settings such as `namespace` and `replica_acks`.
    ///
    /// The builder reads only address, user, database and TLS from the client. So a
    /// `?replica_acks=1` in the client's URL has no effect; call [`ManagerBuilder::replica_acks`]
    /// instead.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// use lock_core::{LockManager, redis1};
    ///
    /// let client = redis1::Client::open("redis://127.0.0.1:6379").expect("a URL");
    /// let locks = LockManager::builder_from_client(client)
    ///     .replica_acks(1)
    ///     .connect_lazy()?;
    /// # drop(locks); Ok(()) }
    /// ```
    #[cfg(feature = "redis")]
    pub fn builder_from_client(client: impl Into<RedisClient>) -> ManagerBuilder {
        ManagerBuilder::from_client(client.into())
    }
}
