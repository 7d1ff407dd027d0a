//! Tests nodes that hang or have missed a failover.
//!
//! The node that has the key is healthy.

use std::time::Duration;

use lock_core::LockManager;
use lock_tests::{Answer, FakeServer, Proxy, RedisCluster, RedisServer, needs, wait};

use super::{PATIENT, long, taken};
use crate::steps::{manager, on_a_new_runtime, once, starts_although_slow};

const SHORT: Duration = Duration::from_millis(900);

/// Returns keys whose slots this node has.
fn keys_on(cluster: &RedisCluster, node: &RedisServer, count: usize) -> Vec<String> {
    let keys = (0..).map(|number| format!("k{number}"));
    let there = |key: &String| cluster.master_of(&format!("lockkit:{key}")).port() == node.port();
    keys.filter(there).take(count).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_nodes_that_hang_cost_nothing_while_the_node_of_the_keys_is_healthy() {
    needs!(redis_7);
    let cluster = RedisCluster::start(PATIENT);
    let [well, others @ ..] = cluster.nodes() else {
        panic!("nodes");
    };
    let keys = keys_on(&cluster, well, 40);
    let (held, free) = keys.split_at(20);
    let builder = || LockManager::builder(&cluster.url()).operation_timeout(Duration::from_secs(1));
    let locks = builder().connect().await.expect("a manager");
    let mut guards = Vec::new();
    for key in held {
        guards.push(taken(&locks, key, SHORT).await);
    }
    others.iter().for_each(RedisServer::stop);
    for (round, key) in free.iter().cycle().take(200).enumerate() {
        once(&locks, key).await;
        if round % 50 == 0 {
            let new = tokio::task::block_in_place(|| on_a_new_runtime(&locks, key));
            new.expect("free");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A manager that starts now learns the map from the healthy node.
    let other = builder().connect().await.expect("a manager");
    once(&other, &free[0]).await;
    let ends = || well.cli(&["PEXPIRETIME", &format!("lockkit:{}", held[0])]);
    let before = ends();
    wait::eventually("the lock is renewed", async || ends() != before).await;
    assert!(guards.iter().all(|guard| guard.is_valid()));
    others.iter().for_each(RedisServer::cont);
}

#[tokio::test]
async fn a_node_that_has_missed_a_failover_is_not_believed_when_it_alone_answers() {
    needs!(redis);
    let servers = [RedisServer::start(), RedisServer::start()];
    let [old, new] = &servers;
    let says = |server: &RedisServer, epoch| Answer::Slots {
        port: server.port(),
        epoch,
    };
    let knowing = FakeServer::after_handshake(says(new, 6));
    let stale = FakeServer::after_handshake(says(old, 5));
    let url = format!("redis-cluster://{},{}", knowing.address(), stale.address());
    let locks = manager(&url).await;
    let guard = taken(&locks, "k", long()).await;
    knowing.set(Answer::HangUp);
    let looks = || {
        let commands = stale.commands();
        commands.iter().filter(|name| *name == "CLUSTER").count() / 2
    };
    let before = looks();
    wait::eventually("the manager asks the stale node", async || {
        looks() > before + 4
    })
    .await;
    let other = taken(&locks, "other", long()).await;
    assert_eq!(old.keys(), Vec::<String>::new());
    other.release().await.expect("held");
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_manager_that_starts_waits_for_the_first_answer_longer_than_one_that_knows_the_nodes() {
    needs!(redis_7);
    let cluster = RedisCluster::start(PATIENT);
    let proxy = Proxy::to(cluster.nodes()[0].address());
    let url = format!("redis-cluster://{}", proxy.address());
    starts_although_slow(&url, &proxy).await;
}
