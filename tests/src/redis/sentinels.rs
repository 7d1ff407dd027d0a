//! Runs sentinels, which watch a master and its replicas and promote a replica.

use std::net::SocketAddr;
use std::time::Duration;

use crate::{RedisOptions, RedisServer, ReplicaSet, wait};

/// Several sentinels that watch one [`ReplicaSet`] and are soon ready to replace its master.
#[derive(Debug)]
pub struct Sentinels {
    servers: Vec<RedisServer>,
}

impl Sentinels {
    /// The name of the master, as sentinels and URLs call it.
    pub const SERVICE: &str = "mymaster";

    /// The time without an answer after which a sentinel takes a server for dead.
    pub const DOWN_AFTER: Duration = Duration::from_millis(500);

    /// How long sentinels may take to make a replica of an old master.
    ///
    /// They ask it for its role every 10 s, and wait until it has called itself a master for 8 s in which they did not
    /// take it for dead. On a busy machine a pause of [`Sentinels::DOWN_AFTER`] costs another 10 s.
    pub const DEMOTION: Duration = Duration::from_secs(90);

    /// Starts so many sentinels, which know the set and each other.
    ///
    /// # Panics
    ///
    /// As [`RedisOptions::start`], and when the sentinels do not find all servers.
    #[track_caller]
    pub fn watch(set: &ReplicaSet, count: usize) -> Sentinels {
        Sentinels::with(&RedisServer::options(), set, count, Sentinels::DOWN_AFTER)
    }

    /// Starts sentinels as [`Sentinels::watch`] does, with these options and this patience.
    ///
    /// The patience is for a server that does not answer.
    ///
    /// # Panics
    ///
    /// As [`Sentinels::watch`].
    #[track_caller]
    pub fn with(
        options: &RedisOptions,
        set: &ReplicaSet,
        count: usize,
        down_after: Duration,
    ) -> Sentinels {
        let master = set.master();
        let sentinel = options.clone().sentinel_of(
            Sentinels::SERVICE,
            master.port_of_others(),
            count / 2 + 1,
            down_after,
            master.options.password.as_deref(),
        );
        let servers = (0..count).map(|_| sentinel.clone().start()).collect();
        let sentinels = Sentinels { servers };
        sentinels.know_all(set.replicas().len());
        sentinels
    }

    /// Starts sentinels as [`Sentinels::watch`] does, for a master behind a proxy.
    ///
    /// They know the master by the port of the proxy.
    ///
    /// # Panics
    ///
    /// As [`Sentinels::watch`].
    #[track_caller]
    pub fn behind(port: u16, replicas: usize, count: usize) -> Sentinels {
        let sentinel = RedisServer::options().sentinel_of(
            Sentinels::SERVICE,
            port,
            count / 2 + 1,
            Sentinels::DOWN_AFTER,
            None,
        );
        let servers = (0..count).map(|_| sentinel.clone().start()).collect();
        let sentinels = Sentinels { servers };
        sentinels.know_all(replicas);
        sentinels
    }

    /// Waits until each sentinel that is up sees the others and so many replicas in good health.
    ///
    /// # Panics
    ///
    /// When a sentinel does not see them.
    #[track_caller]
    pub fn know_all(&self, replicas: usize) {
        let others = self.up().count() - 1;
        wait::until("the sentinels know the replicas and each other", || {
            self.up().all(|sentinel| {
                let alive = |what: &str| {
                    let known = sentinel.cli(&["SENTINEL", what, Sentinels::SERVICE]);
                    let flags = known.lines().skip_while(|line| *line != "flags");
                    let flags = flags.collect::<Vec<_>>();
                    let all = flags.iter().zip(flags.iter().skip(1));
                    all.filter(|(name, value)| {
                        **name == "flags" && matches!(**value, "slave" | "sentinel")
                    })
                    .count()
                };
                alive("replicas") == replicas && alive("sentinels") >= others
            })
        });
    }

    /// Returns all sentinels.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// Returns the address of the master according to the first sentinel that is up.
    ///
    /// # Panics
    ///
    /// When no sentinel is up.
    #[track_caller]
    pub fn master(&self) -> SocketAddr {
        let sentinel = self.up().next().expect("a sentinel that is up");
        sentinel.master_of(Sentinels::SERVICE)
    }

    /// Returns the address of the master according to the sentinel with the newest configuration.
    ///
    /// # Panics
    ///
    /// When no sentinel is up.
    #[track_caller]
    pub fn newest_master(&self) -> SocketAddr {
        let epoch = |sentinel: &&RedisServer| {
            let master = sentinel.cli(&["SENTINEL", "MASTER", Sentinels::SERVICE]);
            let mut lines = master.lines().skip_while(|line| *line != "config-epoch");
            lines.nth(1).and_then(|epoch| epoch.parse::<u64>().ok())
        };
        let newest = self.up().max_by_key(epoch).expect("a sentinel that is up");
        newest.master_of(Sentinels::SERVICE)
    }

    /// Makes a replica take the master's place while the master lives.
    #[track_caller]
    pub fn fail_over(&self) {
        let sentinel = self.up().next().expect("a sentinel that is up");
        sentinel.cli(&["SENTINEL", "FAILOVER", Sentinels::SERVICE]);
    }

    /// Waits until an old master that came back is a replica.
    ///
    /// # Panics
    ///
    /// After [`Sentinels::DEMOTION`].
    #[track_caller]
    pub fn demote(&self, server: &RedisServer) {
        let follows = wait::holds_within(Sentinels::DEMOTION, || server.role() == "slave");
        assert!(follows, "the sentinels make the old master a replica");
    }

    /// Returns `redis-sentinel://<host:port>,…/0?service=mymaster`, or `rediss-sentinel://…` with TLS.
    pub fn url(&self) -> String {
        let hosts = self.servers.iter().map(RedisServer::port_of_others);
        let hosts = hosts.map(|port| format!("127.0.0.1:{port}"));
        let hosts = hosts.collect::<Vec<_>>().join(",");
        let scheme = self.servers[0].scheme();
        let service = Sentinels::SERVICE;
        format!("{scheme}-sentinel://{hosts}/0?service={service}")
    }

    fn up(&self) -> impl Iterator<Item = &RedisServer> {
        self.servers.iter().filter(|server| server.is_up())
    }
}

impl RedisOptions {
    /// Makes the server a sentinel that watches the master at a port under the name of `service`.
    ///
    /// The sentinel takes the master for dead when `quorum` sentinels in all do.
    #[must_use]
    pub fn sentinel_of(
        mut self,
        service: &str,
        port: u16,
        quorum: usize,
        down_after: Duration,
        password: Option<&str>,
    ) -> Self {
        let mut lines = vec![
            format!("sentinel monitor {service} 127.0.0.1 {port} {quorum}"),
            format!(
                "sentinel down-after-milliseconds {service} {}",
                down_after.as_millis()
            ),
            // After twice this time a sentinel tries a failed failover again.
            format!("sentinel failover-timeout {service} 2000"),
            format!("sentinel parallel-syncs {service} 8"),
        ];
        if let Some(password) = password {
            lines.push(format!("sentinel auth-pass {service} {password}"));
        }
        self.file = Some(lines.join("\n") + "\n");
        self.arguments.push("--sentinel".to_owned());
        self
    }
}

impl RedisServer {
    /// Returns the address of a service's master according to this sentinel.
    ///
    /// # Panics
    ///
    /// When the sentinel does not know the master.
    #[track_caller]
    pub fn master_of(&self, service: &str) -> SocketAddr {
        let answer = self.cli(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", service]);
        let address = answer.replace('\n', ":");
        address.parse().expect("an address")
    }
}
