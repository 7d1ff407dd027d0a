//! Settings, and from them a manager.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::api::manager::LockManager;
use crate::api::url::redlock;
use crate::api::url::store_url::Target;
use crate::base::clock::Clock;
use crate::base::error::Error;
use crate::base::options::{MAX_TTL, Wait, checked_ttl};
use crate::base::settings::Settings;
use crate::base::url_query;
use crate::engine::Engine;
use crate::store::{MOST_NODES, MemoryStore, QuorumNode};
#[cfg(feature = "redis")]
use crate::store::{RedisStore, ReplicaAcks, Servers};

/// Longer than the cooldown of a form that must not be sent twice, short enough to do without a server
/// for that long.
const QUORUM_MAX_TTL: Duration = Duration::from_secs(10 * 60);

/// Settings of a manager: made by [`LockManager::builder`].
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
    target: Result<Target, Error>,
    namespace: String,
    replica_acks: u16,
    #[cfg(feature = "tls-rustls")]
    certificates: Option<redis::TlsCertificates>,
    settings: Settings,
}

impl ManagerBuilder {
    pub(crate) fn new(url: &str) -> Self {
        let (scheme, rest) = match url.split_once(':') {
            Some(("redlock", rest)) => ("redis", rest),
            Some(("redlocks", rest)) => ("rediss", rest),
            _ => {
                return match url_query::take_number(url, "replica_acks") {
                    Ok((url, replicas)) => {
                        Self::on(Target::of(&url)).replica_acks(replicas.unwrap_or(0))
                    }
                    Err(error) => Self::on(Err(error)),
                };
            }
        };
        match redlock::parse(scheme, rest) {
            Ok(url) => {
                let mut builder = Self::quorum(url.nodes);
                builder.settings.max_ttl = url.max_ttl;
                builder.settings.assume_fresh = url.assume_fresh;
                builder
            }
            Err(error) => Self::on(Err(error)),
        }
    }

    pub(crate) fn quorum<U: AsRef<str>>(urls: impl IntoIterator<Item = U>) -> Self {
        let mut most_acks = 0;
        let node = |url: U| {
            // What stands in one node's URL is refused with the rest, rather than overlooked.
            let (url, replicas) = url_query::take_number(url.as_ref(), "replica_acks")?;
            most_acks = most_acks.max(replicas.unwrap_or(0));
            Target::of(&url)
        };
        let nodes: Result<Vec<_>, _> = urls.into_iter().map(node).collect();
        Self::on(nodes.map(Target::Quorum)).replica_acks(most_acks)
    }

    #[cfg(feature = "redis")]
    pub(crate) fn from_client(client: redis::Client) -> Self {
        Self::on(Servers::single(&client).map(Target::redis_on))
    }

    fn on(target: Result<Target, Error>) -> Self {
        Self {
            target,
            namespace: "lockkit:".to_owned(),
            replica_acks: 0,
            #[cfg(feature = "tls-rustls")]
            certificates: None,
            settings: Settings {
                clock: Clock::default(),
                operation_timeout: Duration::from_millis(500),
                connect_timeout: Duration::from_secs(5),
                defaults: (Duration::from_secs(30), Wait::None),
                max_ttl: None,
                assume_fresh: false,
            },
        }
    }

    /// What every key in Redis begins with; default `lockkit:`. With `""` a lock is the very key that
    /// other libraries' clients use, who then exclude these locks and are excluded by them.
    /// The embedded store has no use for it.
    ///
    /// The kit keeps its own data beside the locks, in keys that begin with the namespace and `!`; a
    /// namespace with a `!` in it is `Invalid`, from the verb that connects. Of two namespaces on one server
    /// neither should begin with the other: in `""` the key `lockkit:x` is the lock `x` of `lockkit:`, but
    /// waiters of the one are not told of releases in the other.
    ///
    /// No known library deletes keys of the default. `lock:` is python-redis-lock's, whose `reset_all()`
    /// deletes all of them, held locks included.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Whom to trust, and who to be, where servers are spoken to by TLS (`rediss://…`). Without it an
    /// authority that the system trusts must have signed their certificates, and this client shows
    /// none.
    ///
    /// `root_cert`: the authorities to trust *instead* of the system's. `client_tls`: the certificate
    /// and the key of this client, which a Redis server asks for unless it is told
    /// `tls-auth-clients no`. All in PEM format, and for all servers: the sentinels, too.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lock_core::LockManager;
    /// use lock_core::redis::TlsCertificates;
    ///
    /// let locks = LockManager::builder("rediss-cluster://one,two,three")
    ///     .tls_certificates(TlsCertificates {
    ///         root_cert: Some(std::fs::read("authority.pem")?),
    ///         client_tls: None,
    ///     })
    ///     .connect()
    ///     .await?;
    /// # drop(locks); Ok(()) }
    /// ```
    #[cfg(feature = "tls-rustls")]
    pub fn tls_certificates(mut self, certificates: redis::TlsCertificates) -> Self {
        self.certificates = Some(certificates);
        self
    }

    /// How long one question to the store may go unanswered; default 500 ms. Longer is
    /// `Unavailable`. Renewals never wait longer than a third of their ttl.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.settings.operation_timeout = timeout;
        self
    }

    /// How long [`connect`](Self::connect) may take in all; default 5 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = timeout;
        self
    }

    /// The ttl of a request that names none; default 30 s.
    pub fn default_ttl(mut self, ttl: Duration) -> Self {
        self.settings.defaults.0 = ttl;
        self
    }

    /// The wait of a request that names none; default none.
    pub fn default_wait(mut self, wait: impl Into<Wait>) -> Self {
        self.settings.defaults.1 = wait.into();
        self
    }

    /// How many replicas must have a lock, and each renewal, before it counts; default 0: none.
    /// In a URL `?replica_acks=1`.
    ///
    /// Redis answers a write before its replicas have it. When the master fails in between and a
    /// replica is promoted, it does not know of the lock and gives it to somebody else. With
    /// `replica_acks(n)` an acquire also waits for `n` replicas to say that they have it (`WAIT`). If
    /// they do not within a quarter of [`operation_timeout`](Self::operation_timeout) the lock is given
    /// back, and the acquire is `Unavailable`. A renewal that they do not acknowledge does not count:
    /// it is repeated, and the lock is lost at the deadline of the last one that did. A release waits
    /// for nobody.
    ///
    /// It costs one more round trip to acquire, and the master one to a replica, and a second
    /// connection for each runtime that acquires. Waiters of other processes ask when it is their
    /// turn. Tasks of one process still pass a lock on without a word to the server: that changes
    /// nothing there, so replicas know all of it already.
    ///
    /// What that gives, and what not:
    ///
    /// * With `n` = **all** replicas that may be promoted, each of them knows every lock that anybody
    ///   believes in, at least until its deadline: a failover makes no second owner, as long as the
    ///   servers' clocks agree within the margin of a deadline (1 % of the ttl + 2 ms), because
    ///   replicas keep the time at which a lock ends, not how long it lasts. The price: one replica
    ///   that is away, and nothing can be locked. Locks that are held are then lost at their deadlines.
    /// * With fewer a failover may promote a replica that was not among the `n`. A chain of unlikely
    ///   events instead of one, and no guarantee.
    /// * `WAIT` is no consensus. A master that is cut off from its replicas grants nothing more and
    ///   renews nothing, but what it granted before stays valid until its deadline, and an acknowledged
    ///   write is in the replica's memory, not on its disk: a replica that restarts empty and is then
    ///   promoted knows nothing.
    /// * A release, a cooldown and the mark of the fencing tokens are not waited for. After a failover
    ///   a lock that was released may stand for the rest of its ttl, and a cooldown may be cut short.
    ///
    /// Over several servers (`redlock://…`) it is `Invalid`: there a majority of servers is what a lock
    /// survives the loss of others by, and none of them is replaced by a replica. Nor has the embedded
    /// store any replicas.
    ///
    /// Asking for more replicas than there are is no error here, as they may come and go; nothing can
    /// be locked without them, and a warning is logged when the manager connects.
    pub fn replica_acks(mut self, replicas: u16) -> Self {
        self.replica_acks = replicas;
        self
    }

    /// The longest ttl and cooldown of any lock: a longer one is `Invalid`. Default: 10 minutes over
    /// several servers (`redlock://…`), 24 h on a single one.
    ///
    /// Over several servers it is also how long a server that came back without its data is kept out:
    /// every lock that it may have forgotten has run out by then. So all processes that use the same
    /// servers must be given the same.
    pub fn max_ttl(mut self, max_ttl: Duration) -> Self {
        self.settings.max_ttl = Some(max_ttl);
        self
    }

    /// Over several servers (`redlock://…`): servers that are *all* without data when the manager
    /// starts are new, and are used at once. Without it they are kept out for
    /// [`max_ttl`](Self::max_ttl), as they may have held locks and lost them.
    ///
    /// For the first deployment. Left in place it is wrong in one case only: all servers lose their
    /// data at once, a process starts in that moment, and others survive that still hold locks. Has
    /// no effect where a single server has data, nor on any other store.
    pub fn assume_fresh(mut self) -> Self {
        self.settings.assume_fresh = true;
        self
    }

    /// The clock to read, for tests. The embedded store then counts its leases by it too.
    #[cfg(feature = "test-util")]
    pub fn clock(mut self, clock: crate::api::test_util::ManualClock) -> Self {
        self.settings.clock = Clock::Manual(clock);
        self
    }

    /// Makes the manager, and sees to it that its store can be used.
    ///
    /// # Errors
    ///
    /// As [`LockManager::connect`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the attempt.
    pub async fn connect(self) -> Result<LockManager, Error> {
        let manager = self.connect_lazy()?;
        manager.ready().await?;
        Ok(manager)
    }

    /// Makes the manager without waiting for its store.
    ///
    /// # Errors
    ///
    /// `Invalid` for a URL that names no store, a setting out of bounds, or `replica_acks` on a store
    /// without replicas, `Unavailable` if the operating system cannot start the manager's thread.
    pub fn connect_lazy(self) -> Result<LockManager, Error> {
        let Self {
            target,
            mut settings,
            ..
        } = self;
        let target = target?;
        #[cfg(feature = "tls-rustls")]
        let target = match &self.certificates {
            Some(certificates) => target.with_certificates(certificates)?,
            None => target,
        };
        let by_default = match &target {
            Target::Quorum(_) => QUORUM_MAX_TTL,
            _ => MAX_TTL,
        };
        let max_ttl = checked_ttl(settings.max_ttl.unwrap_or(by_default), MAX_TTL)?;
        settings.max_ttl = Some(max_ttl);
        checked_ttl(settings.defaults.0, max_ttl)?;
        if settings.operation_timeout.is_zero() {
            return Err(Error::invalid(
                "an operation_timeout of zero leaves no time for any answer",
            ));
        }
        if self.replica_acks > 0 && matches!(target, Target::Memory { .. }) {
            return Err(Error::invalid(
                "`replica_acks` needs a Redis server with replicas; the embedded store has none",
            ));
        }
        if self.replica_acks > 0 && matches!(target, Target::Quorum(_)) {
            return Err(Error::invalid(redlock::NO_REPLICAS));
        }
        match target {
            Target::Memory { name } => {
                Engine::start_embedded(embedded(name, &settings), settings).map(LockManager::of)
            }
            #[cfg(feature = "redis")]
            Target::Redis(servers) => {
                let acks = ReplicaAcks::new(self.replica_acks, settings.operation_timeout);
                let store = RedisStore::new(*servers, self.namespace, &settings, acks)?;
                Engine::start(store, settings).map(LockManager::of)
            }
            Target::Quorum(nodes) => {
                let nodes = quorum_nodes(nodes, &self.namespace, &settings)?;
                Engine::start_quorum(nodes, settings).map(LockManager::of)
            }
        }
    }
}

fn embedded(name: Option<String>, settings: &Settings) -> Arc<MemoryStore> {
    match name {
        None => MemoryStore::new(settings.clock.clone()),
        Some(name) => MemoryStore::named(&name),
    }
}

/// A store for each node.
#[cfg_attr(
    not(feature = "redis"),
    allow(unused_variables, reason = "the embedded store has no use for them")
)]
fn quorum_nodes(
    targets: Vec<Target>,
    namespace: &str,
    settings: &Settings,
) -> Result<Vec<QuorumNode>, Error> {
    if targets.is_empty() || targets.len() > MOST_NODES {
        return Err(Error::invalid(format!(
            "a quorum has 1 to {MOST_NODES} nodes, and best an odd number, as 3 or 5"
        )));
    }
    let mut nodes: Vec<QuorumNode> = Vec::with_capacity(targets.len());
    for (index, target) in targets.into_iter().enumerate() {
        let node = match target {
            Target::Memory { name } => QuorumNode {
                // Those without a name are stores of their own.
                shown: name.as_ref().map_or(format!("memory: ({index})"), |name| {
                    format!("memory:{name}")
                }),
                store: embedded(name, settings),
            },
            #[cfg(feature = "redis")]
            Target::Redis(servers) => QuorumNode {
                shown: servers.single_address().ok_or_else(|| {
                    Error::invalid(
                        "a node of a quorum is one server, with no sentinels and no cluster",
                    )
                })?,
                store: RedisStore::new(*servers, namespace.to_owned(), settings, None)?,
            },
            Target::Quorum(_) => {
                return Err(Error::invalid(
                    "a node of a quorum is a server, and no quorum itself",
                ));
            }
        };
        if nodes.iter().any(|other| other.shown == node.shown) {
            return Err(Error::invalid(format!(
                "{} is listed twice among the nodes; a server has one vote, whichever its database",
                node.shown
            )));
        }
        nodes.push(node);
    }
    Ok(nodes)
}

impl fmt::Debug for ManagerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerBuilder").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "builder_tests.rs"]
mod tests;
