//! Tests a cluster of Redis nodes: locks, waiters and new requests while slots and nodes move.

mod failover;
mod given_up;
mod hanging;
mod keys;
mod lock_all;
mod lock_all_moving;
pub(crate) mod migration;
mod mistakes;
mod moving;
mod moving_at_once;
mod moving_shares;
mod operator;
mod parted;
mod pinged;
mod pushes;
mod redirected;
mod replicas;

use std::time::Duration;

use lock_core::{LockManager, Wait};
use lock_tests::{RedisCluster, wait};

use crate::steps::{self, Waiter, its_turn, kind, long, once, refused, taken};

/// The node timeout for tests in which a node fails, so that it is soon taken for dead.
const IMPATIENT: Duration = Duration::from_secs(1);
/// The node timeout for the other tests, on a machine that is busy with tests.
const PATIENT: Duration = Duration::from_secs(15);

async fn manager(cluster: &RedisCluster) -> LockManager {
    steps::manager(&cluster.url()).await
}

/// Waits until so many waiters stand in the queue of a key.
async fn queued(cluster: &RedisCluster, key: &str, count: usize) {
    let queue = match key.contains('{') {
        true => format!("lockkit:!qt:{key}"),
        false => format!("lockkit:!q:{{lockkit:{key}}}"),
    };
    let count = count.to_string();
    wait::eventually("the waiters are queued", async || {
        cluster.cli(&queue, &["ZCARD", &queue]) == count
    })
    .await;
}

/// Starts a waiter for a key. Returns it when so many waiters stand in the queue.
async fn waits(cluster: &RedisCluster, locks: &LockManager, key: &str, count: usize) -> Waiter {
    let waiter = tokio::spawn(locks.lock(key).ttl(long()).wait(Wait::Forever).acquire());
    queued(cluster, key, count).await;
    waiter
}
