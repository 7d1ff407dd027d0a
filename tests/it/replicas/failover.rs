//! Tests a replica that is promoted under load, when every replica has acknowledged every
//! lock.

use std::time::Duration;

use lock_tests::{RedisCluster, Sentinels, needs, wait};

use super::replica_set;
use crate::failover::{Fate, Load};

/// Returns the longest time for which two owners held one lock, over a change of masters under
/// load.
async fn held_by_two(fate: Fate) -> Duration {
    let set = replica_set(2);
    let sentinels = Sentinels::watch(&set, 3);
    let url = format!("{}&replica_acks=2", sentinels.url());
    let load = Load::start(&url, "k").await;
    wait::eventually("the load runs", async || load.granted() > 20).await;
    let first = sentinels.master();
    let granted = tokio::task::block_in_place(|| {
        match fate {
            Fate::Killed => set.at(first).kill(),
            Fate::Frozen => set.at(first).stop(),
            Fate::Replaced => sentinels.fail_over(),
        }
        wait::until("another server is the master", || {
            sentinels.master() != first
        });
        let granted = load.granted();
        // All replicas must acknowledge, and the old master must become one of them.
        match fate {
            Fate::Killed => set.at(first).start_again(),
            Fate::Frozen => set.at(first).cont(),
            Fate::Replaced => {}
        }
        sentinels.demote(set.at(first));
        granted
    });
    wait::eventually("locks are granted again", async || {
        load.granted() > granted + 40
    })
    .await;
    load.end().await
}

/// Returns the same as [`held_by_two`], for the locks of one node of a cluster and its
/// replica.
async fn held_by_two_in_a_cluster(fate: Fate) -> Duration {
    let cluster = RedisCluster::start(Duration::from_secs(1));
    let url = format!("{}?replica_acks=1", cluster.url());
    let load = Load::start(&url, "{load}").await;
    wait::eventually("the load runs", async || load.granted() > 20).await;
    let first = cluster.master_of("lockkit:{load}");
    let replica = cluster.replica_of(first);
    let granted = tokio::task::block_in_place(|| {
        match fate {
            Fate::Killed => first.kill(),
            Fate::Frozen => first.stop(),
            Fate::Replaced => cluster.promote(replica),
        }
        wait::until("the replica is the master", || replica.role() == "master");
        let granted = load.granted();
        match fate {
            Fate::Killed => first.start_again(),
            Fate::Frozen => first.cont(),
            Fate::Replaced => {}
        }
        wait::until("the old master follows", || first.role() == "slave");
        granted
    });
    wait::eventually("locks are granted again", async || {
        load.granted() > granted + 40
    })
    .await;
    load.end().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lock_has_two_owners_when_a_node_of_a_cluster_is_killed() {
    needs!(redis);
    assert_eq!(held_by_two_in_a_cluster(Fate::Killed).await, Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lock_has_two_owners_when_a_node_of_a_cluster_gives_way() {
    needs!(redis);
    assert_eq!(
        held_by_two_in_a_cluster(Fate::Replaced).await,
        Duration::ZERO
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lock_has_two_owners_when_the_master_is_killed() {
    needs!(redis);
    assert_eq!(held_by_two(Fate::Killed).await, Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lock_has_two_owners_when_the_master_freezes_and_comes_back() {
    needs!(redis);
    assert_eq!(held_by_two(Fate::Frozen).await, Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lock_has_two_owners_when_the_master_gives_way() {
    needs!(redis);
    assert_eq!(held_by_two(Fate::Replaced).await, Duration::ZERO);
}
