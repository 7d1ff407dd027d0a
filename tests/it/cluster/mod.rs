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

use lock_core::LockManager;
use lock_tests::RedisCluster;

use crate::steps::{self, Waiter, its_turn, kind, long, once, refused, taken};

/// The node timeout for tests in which a node fails, so that it is soon taken for dead.
const IMPATIENT: Duration = Duration::from_secs(1);
/// The node timeout for the other tests, on a machine that is busy with tests.
const PATIENT: Duration = Duration::from_secs(15);

async fn manager(cluster: &RedisCluster) -> LockManager {
    steps::manager(&cluster.url()).await
}
