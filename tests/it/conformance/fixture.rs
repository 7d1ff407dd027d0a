//! Makes managers on one store, and changes the store without them.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lock_core::test_util::{ManualClock, TestStore};
use lock_core::{LockManager, LockRequest, ManagerBuilder};
use lock_tests::{RedisCluster, RedisServer, ReplicaSet, Sentinels, wait};

use super::in_postgres::Postgres;
use super::long;
use super::several::Several;

/// A ttl with a renewal every 400 ms.
///
/// It is short enough to wait for, and long enough for a busy machine.
pub(crate) fn short() -> Duration {
    Duration::from_millis(1200)
}

/// A store for one test.
#[derive(Debug)]
pub(crate) struct Fixture {
    store: Store,
}

#[derive(Debug)]
enum Store {
    Memory {
        url: String,
        commands: TestStore,
    },
    Redis(Box<RedisServer>),
    Several(Several),
    /// A namespace of its own, because all tests share the servers.
    Sentinel(&'static Watched, String),
    Cluster(&'static RedisCluster, String),
    Postgres(Postgres),
}

/// A master, two replicas and three sentinels, as a user would run them.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) set: ReplicaSet,
    pub(crate) sentinels: Sentinels,
}

/// Returns the servers of all tests that change nothing about them.
///
/// No server fails there, and the sentinels must not take a slow server for dead.
pub(crate) fn shared_watched() -> &'static Watched {
    static WATCHED: LazyLock<Watched> = LazyLock::new(|| {
        let set = ReplicaSet::start(2);
        let patience = Duration::from_secs(15);
        let sentinels = Sentinels::with(&RedisServer::options(), &set, 3, patience);
        Watched { set, sentinels }
    });
    &WATCHED
}

/// Returns the cluster of all tests that change nothing about it. Its nodes have a long timeout.
pub(crate) fn shared_cluster() -> &'static RedisCluster {
    static CLUSTER: LazyLock<RedisCluster> =
        LazyLock::new(|| RedisCluster::start(Duration::from_secs(15)));
    &CLUSTER
}

/// Makes an embedded store that no other test has.
fn embedded() -> (String, TestStore) {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    let url = format!("memory:conformance-{number}");
    let first = LockManager::connect_lazy(&url).expect("a store");
    let commands = first.test_store().expect("an embedded store");
    (url, commands)
}

/// Returns the namespace of the next test.
fn next_namespace() -> String {
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("c{}:", LAST.fetch_add(1, Ordering::Relaxed))
}

impl Fixture {
    /// Returns whether several keys are taken in one step.
    pub(crate) fn takes_several_at_once(&self) -> bool {
        !matches!(self.store, Store::Several(_) | Store::Cluster(..))
    }

    /// Returns whether a lease stays in its process for as long as no other process waits. On PostgreSQL it goes back sooner,
    /// because the next fencing token of the server is near.
    pub(crate) fn has_long_cohorts(&self) -> bool {
        !matches!(self.store, Store::Postgres(_))
    }

    /// Returns whether servers keep the locks, and not this process.
    pub(crate) fn has_servers(&self) -> bool {
        !matches!(
            self.store,
            Store::Memory { .. } | Store::Several(Several::Stores(..))
        )
    }

    pub(crate) fn memory() -> Fixture {
        let (url, commands) = embedded();
        Fixture {
            store: Store::Memory { url, commands },
        }
    }

    pub(crate) fn quorum() -> Fixture {
        let (urls, stores) = (0..3).map(|_| embedded()).unzip();
        Fixture {
            store: Store::Several(Several::Stores(urls, stores)),
        }
    }

    pub(crate) fn redlock() -> Fixture {
        Fixture {
            store: Store::Several(Several::servers(next_namespace())),
        }
    }

    pub(crate) fn redis() -> Fixture {
        Fixture {
            store: Store::Redis(Box::new(RedisServer::start())),
        }
    }

    pub(crate) fn sentinel() -> Fixture {
        Fixture {
            store: Store::Sentinel(shared_watched(), next_namespace()),
        }
    }

    pub(crate) fn cluster() -> Fixture {
        Fixture {
            store: Store::Cluster(shared_cluster(), next_namespace()),
        }
    }

    pub(crate) fn postgres() -> Fixture {
        Fixture {
            store: Store::Postgres(Postgres::in_namespace(&next_namespace())),
        }
    }

    /// Makes another manager on the store.
    pub(crate) async fn manager(&self) -> LockManager {
        self.connected(self.builder()).await
    }

    /// Makes another manager, whose clock the test moves; the store keeps the clock of the machine.
    pub(crate) async fn manager_by(&self, clock: &ManualClock) -> LockManager {
        let builder = self.builder().clock_of_its_process(clock.clone());
        self.connected(builder).await
    }

    /// Makes another manager with settings of its own.
    pub(crate) async fn manager_with(
        &self,
        settings: impl FnOnce(ManagerBuilder) -> ManagerBuilder,
    ) -> LockManager {
        self.connected(settings(self.builder())).await
    }

    fn builder(&self) -> ManagerBuilder {
        match &self.store {
            Store::Memory { url, .. } => LockManager::builder(url),
            Store::Redis(server) => LockManager::builder(&server.url()),
            Store::Several(several) => several.builder(),
            Store::Postgres(postgres) => postgres.builder(),
            Store::Sentinel(watched, namespace) => {
                LockManager::builder(&watched.sentinels.url()).namespace(namespace)
            }
            Store::Cluster(cluster, namespace) => {
                LockManager::builder(&cluster.url()).namespace(namespace)
            }
        }
    }

    async fn connected(&self, builder: ManagerBuilder) -> LockManager {
        // A machine that is busy with other tests must not look like a store that does not answer.
        let builder = builder.operation_timeout(Duration::from_secs(5));
        let builder = builder.connect_timeout(wait::PATIENCE);
        builder.connect().await.expect("a manager")
    }

    /// Returns a ttl for a lock that must be renewed in time.
    ///
    /// Each of several servers has an eighth of it to answer, or is taken for dead.
    pub(crate) fn renewable(&self) -> Duration {
        if self.is_of_several() {
            short() * 3
        } else {
            short()
        }
    }

    /// Returns whether a majority of several stores decides.
    pub(crate) fn is_of_several(&self) -> bool {
        matches!(self.store, Store::Several(_))
    }

    /// Returns a ttl for a lock that is to run out.
    ///
    /// A busy machine still has the time to read the grant.
    pub(crate) fn soon_over(&self) -> Duration {
        self.renewable() / 2
    }

    /// Returns whether the store accepts such a key. In a cluster a brace belongs to a hash tag.
    pub(crate) fn takes(&self, key: &str) -> bool {
        let tagged = key
            .split_once('{')
            .and_then(|(_, rest)| rest.find('}'))
            .is_some_and(|end| end > 0);
        tagged || !key.contains(['{', '}']) || !matches!(self.store, Store::Cluster(..))
    }

    /// Makes a request on a new manager, for a test that needs no other manager of it.
    pub(crate) async fn lock(&self, key: &str) -> LockRequest {
        self.manager().await.lock(key).ttl(long())
    }

    /// Deletes the key, as a DEL from outside does.
    pub(crate) fn delete(&self, key: &str) {
        match &self.store {
            Store::Memory { commands, .. } => assert!(commands.lose(key), "the key existed"),
            Store::Several(several) => several.delete(key),
            Store::Postgres(postgres) => assert!(postgres.table().delete(key), "the key existed"),
            _ => assert_eq!(self.cli(key, &["DEL", &self.name(key)]), "1"),
        }
    }

    /// Gives the key to another client for a minute.
    pub(crate) fn overwrite(&self, key: &str) {
        match &self.store {
            Store::Memory { commands, .. } => commands.seize(key, Duration::from_secs(60)),
            Store::Several(several) => several.overwrite(key),
            Store::Postgres(postgres) => postgres.table().has_a_dead_holder(key),
            _ => {
                let name = self.name(key);
                self.cli(key, &["SET", &name, "stranger", "PX", "60000"]);
            }
        }
    }

    /// Leaves a lock whose process has crashed, for a minute, if the store outlives a process.
    pub(crate) fn has_a_dead_holder(&self, key: &str) -> bool {
        const DEAD: &str = "0123456789abcdef/0123456789abcdef0123456789abcdef";
        match &self.store {
            Store::Memory { .. } => false,
            Store::Several(several) => several.has_the_holder(key, DEAD),
            Store::Postgres(postgres) => {
                postgres.table().has_a_dead_holder(key);
                true
            }
            _ => {
                let name = self.name(key);
                self.cli(key, &["SET", &name, DEAD, "PX", "60000"]);
                true
            }
        }
    }

    /// Returns whether the store knows that no process receives a message.
    pub(crate) fn counts_receivers(&self) -> bool {
        !matches!(&self.store, Store::Cluster(..))
    }

    /// Waits until all servers have the lock. A grant waits for a majority only, and a vote that arrives behind a DEL
    /// would take the key again.
    pub(crate) async fn is_everywhere(&self) {
        if let Store::Several(several) = &self.store {
            wait::eventually("all servers have the lock", async || {
                several.is_everywhere()
            })
            .await;
        }
    }

    /// Counts the keys that are taken, according to the store.
    pub(crate) fn taken(&self) -> usize {
        match &self.store {
            Store::Memory { commands, .. } => commands.taken(),
            Store::Several(several) => several.taken(),
            Store::Postgres(postgres) => postgres.table().taken(),
            _ => self.count(TAKEN),
        }
    }

    /// Counts the waiters in the store's queues.
    pub(crate) fn waiting(&self) -> usize {
        match &self.store {
            Store::Memory { commands, .. } => commands.waiting(),
            Store::Several(several) => several.waiting(),
            Store::Postgres(postgres) => postgres.table().waiting(),
            _ => self.count(WAITING),
        }
    }

    /// Waits until the store and the managers have nothing left.
    ///
    /// No key is taken, no waiter is queued, and the managers have nothing to do.
    ///
    /// The wait yields to the runtime, because the managers undo late answers of servers there.
    pub(crate) async fn is_left_clean(&self) {
        let clean = async || {
            let clean = self.taken() == 0 && self.waiting() == 0;
            clean && !matches!(&self.store, Store::Several(several) if !several.is_clean())
        };
        wait::eventually("no key is taken and no waiter is queued", clean).await;
    }
}

impl Fixture {
    /// Sends a command about a key without the managers.
    fn cli(&self, key: &str, arguments: &[&str]) -> String {
        match &self.store {
            Store::Cluster(cluster, _) => cluster.cli(key, arguments),
            _ => self.servers()[0].cli(arguments),
        }
    }

    /// Returns the servers that have keys of the test.
    fn servers(&self) -> Vec<&RedisServer> {
        match &self.store {
            Store::Memory { .. } | Store::Several(_) | Store::Postgres(_) => Vec::new(),
            Store::Redis(server) => vec![&**server],
            Store::Sentinel(watched, _) => vec![watched.set.master()],
            Store::Cluster(cluster, _) => cluster.masters(),
        }
    }

    fn name(&self, key: &str) -> String {
        format!("{}{key}", self.namespace())
    }

    fn namespace(&self) -> &str {
        match &self.store {
            Store::Memory { .. } | Store::Redis(_) | Store::Several(_) => "lockkit:",
            Store::Postgres(postgres) => postgres.table().namespace(),
            Store::Sentinel(_, namespace) | Store::Cluster(_, namespace) => namespace,
        }
    }

    /// Counts by a script on the servers, because a key may contain anything, line ends too.
    fn count(&self, script: &str) -> usize {
        let counts = self.servers().into_iter().map(|server| {
            let count = server.cli(&["EVAL", script, "0", self.namespace()]);
            count.parse::<usize>().expect("a number")
        });
        counts.sum()
    }
}

const TAKEN: &str = "
    local taken = 0
    for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
      if string.sub(key, 1, #ARGV[1] + 1) ~= ARGV[1] .. '!' then taken = taken + 1 end
    end
    return taken";

const WAITING: &str = "
    local waiting = 0
    for _, queue in ipairs(redis.call('KEYS', ARGV[1] .. '!q*')) do
      waiting = waiting + redis.call('ZCARD', queue)
    end
    return waiting";
