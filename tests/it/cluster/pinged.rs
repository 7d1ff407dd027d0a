//! Tests the answers to a ping while masters fail.

use lock_core::{ErrorKind, LockManager};
use lock_tests::{RedisCluster, RedisServer, needs, wait};

use super::IMPATIENT;
use crate::steps::kind;

#[tokio::test]
async fn a_killed_master_is_no_outage_once_it_is_replaced_and_a_killed_cluster_is_one() {
    needs!(redis);
    let cluster = RedisCluster::start(IMPATIENT);
    let locks = LockManager::connect(&cluster.url()).await;
    let locks = locks.expect("a manager");
    locks.ping().await.expect("a master that answers");
    let first = cluster.master_of("lockkit:k");
    first.kill();
    wait::eventually("the slots of the key have another master", async || {
        locks.lock("k").try_acquire().await.is_ok()
    })
    .await;
    wait::eventually("the manager asks a master that lives", async || {
        locks.ping().await.is_ok()
    })
    .await;
    cluster.up().for_each(RedisServer::kill);
    assert_eq!(kind(locks.ping().await), ErrorKind::Unavailable);
}
