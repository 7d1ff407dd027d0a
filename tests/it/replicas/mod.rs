//! Locks that replicas have to acknowledge.

mod failover;
mod granting;
mod handing_over;
mod promoting;
mod renewing;
mod waiting;

use std::time::Duration;

use lock_core::{LockManager, ManagerBuilder};
use lock_tests::{Proxy, RedisOptions, RedisServer, ReplicaSet, wait};

use crate::steps::{its_turn, keys, long, taken};

/// Of a server, for locks that so many replicas have to acknowledge. Patient enough for a machine that
/// is busy with the other tests.
fn builder(url: &str, replicas: u16) -> ManagerBuilder {
    LockManager::builder(url)
        .replica_acks(replicas)
        .operation_timeout(Duration::from_secs(5))
}

async fn manager(server: &RedisServer, replicas: u16) -> LockManager {
    let builder = builder(&server.url(), replicas);
    builder.connect().await.expect("a manager")
}

/// One that does not wait long for replicas that are away.
async fn hasty(server: &RedisServer, replicas: u16) -> LockManager {
    let builder = builder(&server.url(), replicas).operation_timeout(Duration::from_secs(3));
    builder.connect().await.expect("a manager")
}

/// How often the server was told to wait for its replicas.
fn waits(server: &RedisServer) -> u64 {
    let calls = server.commandstats();
    calls.get("wait").copied().unwrap_or(0)
}

/// How many connections wait for replicas at this moment.
fn waiting(server: &RedisServer) -> u64 {
    let clients = server.info("clients");
    clients["blocked_clients"].parse().expect("a number")
}

/// A master and so many replicas, which answer by now.
fn replica_set(replicas: usize) -> ReplicaSet {
    let set = ReplicaSet::start(replicas);
    answer(set.master(), replicas);
    set
}

/// Waits until so many replicas say what they have: the first time that takes up to a second, and
/// nothing new is sent to a replica before.
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
    wait::until("the replicas are there", || all(0));
    master.cli(&["SET", "written", "1"]);
    master.cli(&["DEL", "written"]);
    let written = master.info("replication")["master_repl_offset"].parse();
    let written = written.expect("a number");
    wait::until("the replicas answer", || all(written));
}

/// A master, and a replica that hears of it through a proxy.
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

    /// The master is gone, and the replica takes its place.
    fn promote(&self) {
        self.master.kill();
        self.replica.cli(&["REPLICAOF", "NO", "ONE"]);
    }
}
