//! Sentinels: they watch a master and its replicas, and promote a replica.

use std::net::SocketAddr;
use std::time::Duration;

use crate::{RedisOptions, RedisServer, ReplicaSet, wait};

/// Several sentinels that watch one [`ReplicaSet`], all but at once ready to replace its master.
#[derive(Debug)]
pub struct Sentinels {
    servers: Vec<RedisServer>,
}

impl Sentinels {
    /// The name of the master, as sentinels and URLs call it.
    pub const SERVICE: &str = "mymaster";

    /// After so long without an answer a sentinel takes a server for dead.
    pub const DOWN_AFTER: Duration = Duration::from_millis(500);

    /// So many sentinels, which know the set and each other.
    ///
    /// # Panics
    ///
    /// As [`RedisOptions::start`], and when they do not find all that is there.
    #[track_caller]
    pub fn watch(set: &ReplicaSet, count: usize) -> Sentinels {
        Sentinels::with(&RedisServer::options(), set, count)
    }

    /// As [`Sentinels::watch`], each of them with these options.
    ///
    /// # Panics
    ///
    /// As [`Sentinels::watch`].
    #[track_caller]
    pub fn with(options: &RedisOptions, set: &ReplicaSet, count: usize) -> Sentinels {
        let master = set.master();
        let replicas = set.replicas().len();
        let quorum = count / 2 + 1;
        let servers = (0..count).map(|_| {
            let options = options.clone();
            options
                .sentinel_of(Sentinels::SERVICE, master.address(), quorum, master)
                .start()
        });
        let sentinels = Sentinels {
            servers: servers.collect(),
        };
        sentinels.know_all(replicas);
        sentinels
    }

    /// Waits until each of those that are up knows the others, and so many replicas, as good ones.
    ///
    /// # Panics
    ///
    /// When one does not.
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

    /// All of them.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// Where the first of them that is up says that the master is.
    ///
    /// # Panics
    ///
    /// When none is up.
    #[track_caller]
    pub fn master(&self) -> SocketAddr {
        let sentinel = self.up().next().expect("a sentinel that is up");
        sentinel.master_of(Sentinels::SERVICE)
    }

    /// Has a replica take the master's place while the master lives.
    #[track_caller]
    pub fn fail_over(&self) {
        let sentinel = self.up().next().expect("a sentinel that is up");
        sentinel.cli(&["SENTINEL", "FAILOVER", Sentinels::SERVICE]);
    }

    /// `redis-sentinel://<host:port>,…/0?service=mymaster`.
    pub fn url(&self) -> String {
        let hosts = self.servers.iter().map(|it| it.address().to_string());
        let hosts = hosts.collect::<Vec<_>>().join(",");
        format!("redis-sentinel://{hosts}/0?service={}", Sentinels::SERVICE)
    }

    fn up(&self) -> impl Iterator<Item = &RedisServer> {
        self.servers.iter().filter(|server| server.is_up())
    }
}

impl RedisOptions {
    /// A sentinel that watches the master at `address` under the name of `service`; what it has to
    /// say to that master is what `master` was started with.
    #[must_use]
    pub fn sentinel_of(
        mut self,
        service: &str,
        address: SocketAddr,
        quorum: usize,
        master: &RedisServer,
    ) -> Self {
        let mut lines = vec![
            format!(
                "sentinel monitor {service} {} {} {quorum}",
                address.ip(),
                address.port()
            ),
            format!(
                "sentinel down-after-milliseconds {service} {}",
                Sentinels::DOWN_AFTER.as_millis()
            ),
            // Another attempt follows one that has failed after twice as long.
            format!("sentinel failover-timeout {service} 2000"),
            format!("sentinel parallel-syncs {service} 8"),
        ];
        if let Some(password) = &master.options.password {
            lines.push(format!("sentinel auth-pass {service} {password}"));
        }
        self.file = Some(lines.join("\n") + "\n");
        self.arguments.push("--sentinel".to_owned());
        self
    }
}

impl RedisServer {
    /// Where this sentinel says that the master of a service is.
    ///
    /// # Panics
    ///
    /// When it does not know.
    #[track_caller]
    pub fn master_of(&self, service: &str) -> SocketAddr {
        let answer = self.cli(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", service]);
        let address = answer.replace('\n', ":");
        address.parse().expect("an address")
    }
}
