//! The builder of a manager.

use std::fmt;
use std::time::Duration;

#[cfg(feature = "redis")]
use crate::api::redis_client::RedisClient;
use crate::api::url::redlock;
use crate::api::url::store_url::StoreUrl;
#[cfg(any(feature = "tls-rustls", feature = "postgres-tls"))]
use crate::base::certificates::TlsCertificates;
#[cfg(any(feature = "redis", feature = "postgres"))]
use crate::base::credentials::{Credentials, Provider};
use crate::base::error::Error;
use crate::base::identity::Naming;
use crate::base::options::Wait;
use crate::base::settings::Settings;
use crate::base::url_query;

/// Collects the settings of a manager.
///
/// [`LockManager::builder`](crate::LockManager::builder) creates it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
/// use std::time::Duration;
/// use lock_core::LockManager;
///
/// let locks = LockManager::builder("memory:")
///     .operation_timeout(Duration::from_millis(250))
///     .connect()
///     .await?;
/// # drop(locks); Ok(()) }
/// ```
#[must_use = "a builder does nothing until `connect` or `connect_lazy`"]
pub struct ManagerBuilder {
    pub(super) store_url: Result<StoreUrl, Error>,
    pub(super) replica_acks: u16,
    #[cfg(any(feature = "tls-rustls", feature = "postgres-tls"))]
    pub(super) certificates: Option<TlsCertificates>,
    pub(super) settings: Settings,
}

impl ManagerBuilder {
    // Not `new`: the compiler would show a private function to an application that tries it.
    pub(crate) fn of_url(url: &str) -> Self {
        let (scheme, rest) = match url.split_once(':') {
            Some(("redlock", rest)) => ("redis", rest),
            Some(("redlocks", rest)) => ("rediss", rest),
            _ => {
                return match url_query::take_number(url, "replica_acks") {
                    Ok((url, replicas)) => {
                        Self::on(StoreUrl::of(&url)).replica_acks(replicas.unwrap_or(0))
                    }
                    Err(error) => Self::on(Err(error)),
                };
            }
        };
        match redlock::parse(scheme, rest) {
            Ok(url) => {
                let mut builder = Self::quorum(url.nodes).max_ttl(url.max_ttl);
                builder.settings.assume_fresh = url.assume_fresh;
                builder
            }
            Err(error) => Self::on(Err(error)),
        }
    }

    pub(crate) fn quorum<U: AsRef<str>>(urls: impl IntoIterator<Item = U>) -> Self {
        let mut most_acks = 0;
        let node = |url: U| {
            // A `replica_acks` in one node's URL is refused for the whole quorum, rather than
            // ignored.
            let (url, replicas) = url_query::take_number(url.as_ref(), "replica_acks")?;
            most_acks = most_acks.max(replicas.unwrap_or(0));
            StoreUrl::of(&url)
        };
        let nodes: Result<Vec<_>, _> = urls.into_iter().map(node).collect();
        Self::on(nodes.map(StoreUrl::Quorum))
            .replica_acks(most_acks)
            .max_ttl(redlock::MAX_TTL)
    }

    #[cfg(feature = "redis")]
    pub(crate) fn from_client(client: RedisClient) -> Self {
        Self::on(Ok(StoreUrl::redis_on(client.0)))
    }

    fn on(store_url: Result<StoreUrl, Error>) -> Self {
        Self {
            store_url,
            replica_acks: 0,
            #[cfg(any(feature = "tls-rustls", feature = "postgres-tls"))]
            certificates: None,
            settings: Settings::default(),
        }
    }

    /// Sets the prefix of all keys in Redis and in PostgreSQL; default `lockkit:`. On PostgreSQL it has 1 000 bytes at most.
    ///
    /// With `""` a lock on Redis uses the plain key, as clients of other libraries do. Their locks then
    /// exclude this manager's locks, and this manager's locks exclude theirs. The embedded store
    /// ignores the namespace.
    ///
    /// The kit keeps its own data beside the locks, in keys that begin with the namespace and `!`.
    /// So a namespace with a `!` is `Invalid`, and the connecting method returns the error. If one
    /// server has two namespaces, neither should begin with the other. For example, the key
    /// `lockkit:x` in the namespace `""` is the lock `x` of `lockkit:`, but waiters in one
    /// namespace are not told of releases in the other.
    ///
    /// No known library deletes keys of the default namespace. python-redis-lock uses `lock:`, and
    /// its `reset_all()` deletes all keys with that prefix, held locks included.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.settings.namespace = namespace.into();
        self
    }

    /// Sets a provider of short-lived credentials, such as the tokens of IAM or Entra.
    ///
    /// The credentials replace the user and the password of the URL on every server that keeps locks. (Sentinels keep
    /// the credentials of the URL.) The manager asks the provider:
    ///
    /// * at its start,
    /// * when a server refuses the credentials, because the password has changed. The connection then tries again with
    ///   the new ones, and held locks and waiters notice nothing,
    /// * after three quarters of the time of [`Credentials::valid_for`]. It then also authenticates its open
    ///   connections anew, because hosted servers close a connection whose token has ended.
    ///
    /// A provider that has failed, or whose answer was refused again, is asked again after a second. With `redlock://`
    /// the manager asks for each server, and all servers get credentials of the same provider.
    ///
    /// The future runs on the thread that renews all locks, in a tokio runtime. It must not block the thread. If it
    /// fails, panics, or takes longer than 10 s, new connections fail with `Unavailable`, whose source is the provider's
    /// error; its text should hold no secret. Credentials that no server has refused stay in use meanwhile. If a
    /// server refuses fresh credentials, the error is `Misconfigured`. So let the server accept a new password before
    /// it drops the old one.
    ///
    /// On PostgreSQL the manager asks the provider for each connection, and never else.
    ///
    /// For the embedded store the connecting method returns `Invalid`.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn token() -> Result<String, std::io::Error> { Ok(String::new()) }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// use std::time::Duration;
    /// use lock_core::{Credentials, LockManager};
    ///
    /// let locks = LockManager::builder("rediss://shop.example:6379")
    ///     .credentials(|| async {
    ///         let token = token().await?; // your cloud's library
    ///         Ok::<_, std::io::Error>(Credentials::new("shop", token).valid_for(Duration::from_secs(900)))
    ///     })
    ///     .connect()
    ///     .await?;
    /// # drop(locks); Ok(()) }
    /// ```
    #[cfg(any(feature = "redis", feature = "postgres"))]
    pub fn credentials<P, F, E>(mut self, provider: P) -> Self
    where
        P: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.settings.credentials = Some(Provider::new(provider));
        self
    }

    /// Sets the certificates for TLS (`rediss://…`, and `postgres://…`, which then requires TLS).
    ///
    /// Without this setting, an authority that the system trusts must have signed the servers'
    /// certificates, and this client shows no certificate.
    ///
    /// The certificates apply to all servers, sentinels included.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lock_core::{LockManager, TlsCertificates};
    ///
    /// let locks = LockManager::builder("rediss-cluster://one,two,three")
    ///     .tls_certificates(TlsCertificates::new().root_certificate(std::fs::read("authority.pem")?))
    ///     .connect()
    ///     .await?;
    /// # drop(locks); Ok(()) }
    /// ```
    #[cfg(any(feature = "tls-rustls", feature = "postgres-tls"))]
    pub fn tls_certificates(mut self, certificates: TlsCertificates) -> Self {
        self.certificates = Some(certificates);
        self
    }

    /// Sets how long one request to the store may stay unanswered; default 500 ms.
    ///
    /// After that time the request fails with `Unavailable`. A renewal never waits longer than a
    /// third of its ttl.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.settings.operation_timeout = timeout;
        self
    }

    /// Sets how long [`connect`](Self::connect) may take in all; default 5 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = timeout;
        self
    }

    /// Sets the ttl of requests that set none; default 30 s.
    pub fn default_ttl(mut self, ttl: Duration) -> Self {
        self.settings.defaults.0 = ttl;
        self
    }

    /// Sets the wait of requests that set none; default no wait.
    pub fn default_wait(mut self, wait: impl Into<Wait>) -> Self {
        self.settings.defaults.1 = wait.into();
        self
    }

    /// Sets how many replicas must confirm a lock, and each renewal, before it counts.
    ///
    /// The default is 0, so no replica must confirm. In a URL the setting is `?replica_acks=1`.
    ///
    /// Redis answers a write before its replicas have it. If the master fails in between, a
    /// promoted replica does not know of the lock and grants it to another owner. With
    /// `replica_acks(n)`, an acquire also waits until `n` replicas confirm that they have the lock
    /// (`WAIT`). If they do not confirm it within a quarter of
    /// [`operation_timeout`](Self::operation_timeout), the manager releases the lock, and the
    /// acquire returns `Unavailable`. A renewal that they do not confirm does not count. The keeper
    /// repeats it, and the lock is lost at the deadline of the last confirmed renewal. A release
    /// waits for no replica.
    ///
    /// The setting has these costs:
    ///
    /// * An acquire takes one more round trip, plus the master's round trip to a replica.
    /// * Each runtime that acquires locks has a second connection.
    /// * A waiter to which another process hands the lock sends a request of its own.
    ///
    /// Tasks of one process still pass a lock on without a request, because the replicas know the
    /// lock already.
    ///
    /// The guarantee has limits:
    ///
    /// * With `n` = **all** replicas that may be promoted, each replica knows every lock in which
    ///   an owner believes, at least until the lock's deadline. So a failover makes no second
    ///   owner, as long as the servers' clocks agree within the margin of a deadline (1 % of the
    ///   ttl + 2 ms). The clocks matter because replicas store the time at which a lock ends, and
    ///   not how long it lasts. The price is availability: while one replica is down, no lock can
    ///   be acquired, and held locks are lost at their deadlines.
    /// * With fewer replicas, a failover may promote a replica that was not among the `n`. A second
    ///   owner then needs a chain of unlikely events, but there is no guarantee.
    /// * `WAIT` is no consensus. A master that is cut off from its replicas grants and renews no
    ///   lock, but its earlier grants stay valid until their deadlines. A confirmed write is in the
    ///   replica's memory, not on its disk. So a replica that restarts empty and is then promoted
    ///   knows no lock.
    /// * A release, a cooldown and the high-water mark of the fencing tokens are not confirmed.
    ///   After a failover, a released lock may stay taken for the rest of its ttl, and a cooldown
    ///   may be cut short.
    ///
    /// Over several servers (`redlock://…`) the setting is `Invalid`, because a majority of servers
    /// protects a lock there and no replica replaces a server. It is also `Invalid` for the
    /// embedded store, which has no replicas, and for PostgreSQL: set `synchronous_standby_names` of
    /// the server instead.
    ///
    /// A number above that of the present replicas is no error, because replicas come and go.
    /// Without enough replicas no lock can be acquired, and the manager logs a warning when it
    /// connects.
    pub fn replica_acks(mut self, replicas: u16) -> Self {
        self.replica_acks = replicas;
        self
    }

    /// Sets the longest ttl and cooldown of any lock; a longer one is `Invalid`.
    ///
    /// The default is 10 minutes over several servers (`redlock://…`), and 24 h on a single server.
    ///
    /// Over several servers, a server that restarted without its data is kept out for this time,
    /// because every lock that it may have forgotten has expired by then. So all processes that use
    /// the same servers must have the same value.
    pub fn max_ttl(mut self, max_ttl: Duration) -> Self {
        self.settings.max_ttl = max_ttl;
        self
    }

    /// Treats servers that are *all* without data at the start as new (`redlock://…`).
    ///
    /// New servers are used at once. Without this setting they are kept out for
    /// [`max_ttl`](Self::max_ttl), because they may have held locks and lost them.
    ///
    /// The setting is for the first deployment. If it stays, a key may have two owners in two cases, while
    /// other processes still hold locks:
    ///
    /// * All servers lose their data at once, and a process starts at that moment.
    /// * A process finds all servers without data, and in its first 5 s one of them is emptied without a
    ///   restart (`FLUSHALL`).
    ///
    /// The setting has no effect if at least one server has data, nor on any other store.
    pub fn assume_fresh(mut self) -> Self {
        self.settings.assume_fresh = true;
        self
    }

    /// Sets the label by which an operator recognises this manager, such as the name of the service.
    ///
    /// A manager leaves its host, its process number and this label in the store, so that an
    /// [`Operator`](crate::operator::Operator) sees who holds a lock. A label has at most 128 characters, none of them
    /// a control character; otherwise the connecting method returns `Invalid`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// use lock_core::LockManager;
    ///
    /// let locks = LockManager::builder("memory:").label("checkout").connect().await?;
    /// let _guard = locks.lock("order:42").acquire().await?;
    /// let seen = locks.operator("ops@example").inspect("order:42").await?;
    /// let holder = seen.holders()[0].identity().expect("not anonymous");
    /// assert_eq!(holder.label(), Some("checkout"));
    /// # Ok(()) }
    /// ```
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.settings.naming = Naming::Named(Some(label.into().into()));
        self
    }

    /// Leaves no identity of this manager in the store, neither host nor process nor label.
    ///
    /// An operator still sees that a lock is held, for how long and with which fencing token.
    pub fn anonymous(mut self) -> Self {
        self.settings.naming = Naming::Anonymous;
        self
    }

    /// Sets the clock, for tests.
    ///
    /// The embedded store uses the clock for its leases too. All managers of a named one
    /// (`memory:name`) must have clones of one clock; otherwise the connecting method returns
    /// `Invalid`.
    #[cfg(feature = "test-util")]
    pub fn clock(mut self, clock: crate::api::test_util::ManualClock) -> Self {
        self.settings.store_clock = crate::base::clock::Clock::Manual(clock.clone());
        self.clock_of_its_process(clock)
    }

    /// Sets the clock of the manager, but not that of an embedded store.
    ///
    /// The manager then behaves like a process whose clock differs from the server's. This is for the project's own
    /// tests, which run on every store.
    #[cfg(feature = "test-util")]
    #[doc(hidden)]
    pub fn clock_of_its_process(mut self, clock: crate::api::test_util::ManualClock) -> Self {
        self.settings.clock = crate::base::clock::Clock::Manual(clock);
        self
    }
}

impl fmt::Debug for ManagerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerBuilder").finish_non_exhaustive()
    }
}
