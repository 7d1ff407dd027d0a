//! A cluster of Redis nodes: what becomes of locks, of those who wait, and of those who ask meanwhile,
//! when slots and nodes move.

mod failover;
mod keys;
mod mistakes;
mod moving;
mod pushes;
mod replicas;

use std::time::Duration;

use lock_core::LockManager;
use lock_tests::RedisCluster;

/// For tests in which a node fails: it is taken for dead soon.
const IMPATIENT: Duration = Duration::from_secs(1);
/// For the others, on a machine that is busy with other tests.
const PATIENT: Duration = Duration::from_secs(15);

async fn manager(cluster: &RedisCluster) -> LockManager {
    let builder = LockManager::builder(&cluster.url()).operation_timeout(Duration::from_secs(5));
    builder.connect().await.expect("a manager")
}

fn long() -> Duration {
    Duration::from_secs(60)
}
