//! Tests managers that log in with credentials of a provider, such as the tokens of IAM and Entra.

mod ends;
mod provider;
mod rotation;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::{Credentials, LockManager, ManagerBuilder};
use lock_tests::{RedisCluster, RedisServer, ReplicaSet, Sentinels};

/// The user whom the provider names.
const USER: &str = "shop";

/// A provider whose answer a test sets.
#[derive(Clone)]
struct Office {
    /// The password, or `None` while the provider fails.
    password: Arc<Mutex<Option<String>>>,
    /// How long a password is valid.
    valid_for: Option<Duration>,
    asked: Arc<AtomicUsize>,
}

impl Office {
    fn new(password: &str) -> Office {
        Office {
            password: Arc::new(Mutex::new(Some(password.to_owned()))),
            valid_for: None,
            asked: Arc::default(),
        }
    }

    fn gives(&self, password: Option<&str>) {
        *self.password.lock().unwrap() = password.map(str::to_owned);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn builder(&self, url: &str) -> ManagerBuilder {
        let office = self.clone();
        LockManager::builder(url)
            .operation_timeout(Duration::from_secs(5))
            .credentials(move || {
                office.asked.fetch_add(1, Ordering::SeqCst);
                let password = office.password.lock().unwrap().clone();
                let valid_for = office.valid_for;
                async move {
                    let password = password.ok_or("the office is closed")?;
                    let credentials = Credentials::new(USER, password);
                    Ok::<_, &str>(match valid_for {
                        Some(time) => credentials.valid_for(time),
                        None => credentials,
                    })
                }
            })
    }

    async fn manager(&self, url: &str) -> LockManager {
        self.builder(url).connect().await.expect("a manager")
    }
}

/// Servers of one topology.
struct Site {
    url: String,
    nodes: Nodes,
}

enum Nodes {
    Alone(Vec<RedisServer>),
    Sentinel(
        ReplicaSet,
        #[expect(dead_code, reason = "it runs until it is dropped")] Sentinels,
    ),
    Cluster(RedisCluster),
}

impl Site {
    fn one() -> Site {
        let server = RedisServer::start();
        Site {
            url: server.url(),
            nodes: Nodes::Alone(vec![server]),
        }
    }

    fn redlock() -> Site {
        let servers: Vec<_> = (0..3).map(|_| RedisServer::start()).collect();
        let addresses: Vec<_> = servers.iter().map(|it| it.address().to_string()).collect();
        Site {
            url: format!("redlock://{}?assume_fresh=true", addresses.join(",")),
            nodes: Nodes::Alone(servers),
        }
    }

    fn sentinel() -> Site {
        let set = ReplicaSet::start(1);
        let sentinels = Sentinels::watch(&set, 3);
        Site {
            url: sentinels.url(),
            nodes: Nodes::Sentinel(set, sentinels),
        }
    }

    fn cluster() -> Site {
        let cluster = RedisCluster::start(Duration::from_secs(5));
        Site {
            url: cluster.url(),
            nodes: Nodes::Cluster(cluster),
        }
    }

    fn servers(&self) -> &[RedisServer] {
        match &self.nodes {
            Nodes::Alone(servers) => servers,
            Nodes::Sentinel(set, _) => set.servers(),
            Nodes::Cluster(cluster) => cluster.nodes(),
        }
    }

    /// Gives the user this password and no other.
    fn accepts(&self, password: &str) {
        for server in self.servers() {
            let password = format!(">{password}");
            server.cli(&[
                "ACL",
                "SETUSER",
                USER,
                "on",
                "resetpass",
                &password,
                "~*",
                "&*",
                "+@all",
            ]);
        }
    }

    /// Closes all connections of the user.
    fn disconnects(&self) {
        for server in self.servers() {
            server.cli(&["CLIENT", "KILL", "USER", USER]);
        }
    }

    /// Returns how many connections of the user each server has.
    fn connections(&self) -> Vec<usize> {
        let user = format!(" user={USER} ");
        let of = |server: &RedisServer| {
            let list = server.cli(&["CLIENT", "LIST"]);
            list.lines().filter(|line| line.contains(&user)).count()
        };
        self.servers().iter().map(of).collect()
    }
}
