//! A cluster of Redis nodes: what becomes of locks, of those who wait, and of those who ask meanwhile,
//! when slots and nodes move.

mod failover;
mod hanging;
mod keys;
mod mistakes;
mod moving;
mod parted;
mod pushes;
mod replicas;

use std::time::Duration;

use lock_core::LockManager;
use lock_tests::RedisCluster;

use crate::steps::{self, Waiter, its_turn, long, refused, taken};

/// For tests in which a node fails: it is taken for dead soon.
const IMPATIENT: Duration = Duration::from_secs(1);
/// For the others, on a machine that is busy with other tests.
const PATIENT: Duration = Duration::from_secs(15);

async fn manager(cluster: &RedisCluster) -> LockManager {
    steps::manager(&cluster.url()).await
}
