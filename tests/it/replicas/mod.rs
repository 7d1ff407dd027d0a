//! Tests locks that replicas must acknowledge.

mod failover;
mod granting;
mod handing_over;
mod lock_all;
mod promoting;
mod record_failover;
mod records;
mod renewing;
mod tickets;
mod waiting;

use std::time::Duration;

use lock_core::{LockManager, ManagerBuilder};
use lock_tests::{Proxy, RedisOptions, RedisServer, ReplicaSet, wait};

use crate::steps::{its_turn, keys, long, once, taken};

/// Makes a builder for locks that this many replicas must acknowledge.
///
/// Its manager is patient enough for a machine that is busy with other tests.
fn builder(url: &str, replicas: u16) -> ManagerBuilder {
    LockManager::builder(url)
        .replica_acks(replicas)
        .operation_timeout(Duration::from_secs(5))
}

async fn manager(server: &RedisServer, replicas: u16) -> LockManager {
    let builder = builder(&server.url(), replicas);
    builder.connect().await.expect("a manager")
}

/// Makes a manager that does not wait long for missing replicas.
async fn hasty(server: &RedisServer, replicas: u16) -> LockManager {
    let builder = builder(&server.url(), replicas).operation_timeout(Duration::from_secs(3));
    builder.connect().await.expect("a manager")
}

/// Counts the WAIT commands of the server.
fn waits(server: &RedisServer) -> u64 {
    let calls = server.commandstats();
    calls.get("wait").copied().unwrap_or(0)
}

/// Counts the connections that wait for replicas at this moment.
fn waiting(server: &RedisServer) -> u64 {
    let clients = server.info("clients");
    clients["blocked_clients"].parse().expect("a number")
}

/// Starts a master and this many replicas, which answer by now.
fn replica_set(replicas: usize) -> ReplicaSet {
    let set = ReplicaSet::start(replicas);
    answer(set.master(), replicas);
    set
}

/// Waits until this many replicas acknowledge.
///
/// Their first acknowledgement takes up to a second, and the master sends them nothing new before.
fn answer(master: &RedisServer, replicas: usize) {
    let all = |acknowledged: u64| {
        let info = master.info("replication");
        let has_it = |index: &usize| {
            let line = info.get(&format!("slave{index}"));
            let mut parts = line.into_iter().flat_map(|line| line.split(','));
            let offset = parts.clone().find_map(|part| part.strip_prefix("offset="));
            let offset = offset.and_then(|offset| offset.parse::<u64>().ok());
            parts.any(|part| part == "state=online") && offset >= Some(acknowledged)
        };
        (0..replicas).filter(has_it).count() == replicas
    };
    wait::until("the replicas are connected", || all(0));
    master.cli(&["SET", "written", "1"]);
    master.cli(&["DEL", "written"]);
    let written = master.info("replication")["master_repl_offset"].parse();
    let written = written.expect("a number");
    wait::until("the replicas answer", || all(written));
}

/// A master, and a replica that is connected to it through a proxy.
struct Apart {
    master: RedisServer,
    replica: RedisServer,
    between: Proxy,
}

impl Apart {
    fn start() -> Apart {
        let options = || RedisOptions::default().config("repl-diskless-sync-delay", "0");
        let master = options().start();
        let between = Proxy::to(master.address());
        let replica = options().start();
        replica.cli(&["REPLICAOF", "127.0.0.1", &between.port().to_string()]);
        let apart = Apart {
            master,
            replica,
            between,
        };
        answer(&apart.master, 1);
        apart
    }

    /// Kills the master and promotes the replica.
    fn promote(&self) {
        self.master.kill();
        self.replica.cli(&["REPLICAOF", "NO", "ONE"]);
    }
}
