//! Tests a replica that becomes the master of some slots.

use lock_tests::{RedisCluster, needs, wait};

use super::{IMPATIENT, manager, taken};
use crate::failover::{Fate, Load, TTL, service_goes_on};

async fn goes_on(fate: Fate) {
    let cluster = RedisCluster::start(IMPATIENT);
    // All keys of the load are on the master that fails.
    let load = Load::start(&cluster.url(), "{load}").await;
    let first = cluster.master_of("lockkit:{load}");
    let replica = cluster.replica_of(first);
    let break_it = || match fate {
        Fate::Killed => first.kill(),
        Fate::Frozen => first.stop(),
        Fate::Replaced => cluster.promote(replica),
    };
    let serves = || replica.try_cli(&["SET", "serves{load}", "1"]).is_ok();
    service_goes_on(load, break_it, serves).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_a_master_is_killed_its_locks_can_be_taken_as_soon_as_there_is_another() {
    needs!(redis);
    goes_on(Fate::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_a_master_is_frozen_its_locks_can_be_taken_as_soon_as_there_is_another() {
    needs!(redis);
    goes_on(Fate::Frozen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_a_master_gives_way_its_locks_can_be_taken_at_once() {
    needs!(redis);
    goes_on(Fate::Replaced).await;
}

#[tokio::test]
async fn while_one_master_is_frozen_the_locks_of_the_others_are_renewed() {
    needs!(redis_7);
    let cluster = RedisCluster::start(super::PATIENT);
    let locks = lock_core::LockManager::connect(&cluster.url())
        .await
        .expect("a manager");
    let mut guards = Vec::new();
    for number in 0..60 {
        let key = format!("held:{number}");
        let guard = taken(&locks, key.as_str(), TTL).await;
        guards.push((key, guard));
    }
    let frozen = &cluster.nodes()[0];
    let (lost, kept): (Vec<_>, Vec<_>) = guards
        .into_iter()
        .partition(|(key, _)| cluster.master_of(&format!("lockkit:{key}")).port() == frozen.port());
    assert!(
        lost.len() > 5 && kept.len() > 5,
        "there are locks on every node"
    );
    frozen.stop();
    for (_, guard) in &lost {
        guard.lost().await;
    }
    // The loop ends well past the time at which these locks would have been lost too.
    for _ in 0..3 {
        let (key, _) = &kept[0];
        let ends = || cluster.cli(key, &["PEXPIRETIME", &format!("lockkit:{key}")]);
        let before = ends();
        wait::eventually("the lock is renewed", async || ends() != before).await;
    }
    assert!(kept.iter().all(|(_, guard)| guard.is_valid()));
    frozen.cont();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_the_new_master_knows_is_kept_and_renewed_there() {
    needs!(redis_7);
    let cluster = RedisCluster::start(IMPATIENT);
    let locks = manager(&cluster).await;
    let guard = locks.lock("k").ttl(TTL).acquire().await.expect("free");
    let first = cluster.master_of("lockkit:k");
    let replica = cluster.replica_of(first);
    tokio::task::block_in_place(|| cluster.promote(replica));
    let ends = || replica.cli(&["PEXPIRETIME", "lockkit:k"]);
    let before = ends();
    wait::eventually("the lock is renewed", async || ends() != before).await;
    guard.release().await.expect("held");
    assert_eq!(replica.get("lockkit:k"), None);
}
