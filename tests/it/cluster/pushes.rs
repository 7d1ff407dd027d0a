//! Tests that waiters get their pushes, on any node and for a lock on any node.

use std::time::Duration;

use lock_tests::{RedisCluster, RedisServer, needs, wait};

use super::{IMPATIENT, PATIENT, its_turn, long, manager, taken, waits};
use crate::conformance::shared_cluster;

/// Returns a key on each of the masters.
fn one_on_each(cluster: &RedisCluster, prefix: &str) -> Vec<String> {
    let masters = cluster.masters();
    let on = |master: &RedisServer| {
        let mut keys = (0..).map(|number| format!("{prefix}:{number}"));
        keys.find(|key| cluster.master_of(&format!("lockkit:{key}")).port() == master.port())
    };
    masters.into_iter().filter_map(on).collect()
}

/// Returns the nodes on which a manager listens to releases.
fn listening(cluster: &RedisCluster) -> Vec<&RedisServer> {
    let nodes = cluster.up();
    let listens =
        |node: &&RedisServer| !node.cli(&["PUBSUB", "CHANNELS", "lockkit:!m:*"]).is_empty();
    nodes.filter(listens).collect()
}

#[tokio::test]
async fn a_release_on_any_node_is_heard_at_once_by_a_waiter_that_listens_on_another() {
    needs!(redis);
    let cluster = shared_cluster();
    let (locks, other) = (manager(cluster).await, manager(cluster).await);
    for key in one_on_each(cluster, "heard") {
        let key = key.as_str();
        let guard = locks.lock(key).ttl(long()).acquire().await.expect("free");
        let waiter = waits(cluster, &other, key, 1).await;
        guard.release().await.expect("held");
        let next = its_turn(waiter).await;
        // The waiter has its whole ttl, because it asked: the clock of another node proves nothing
        // to it.
        assert!(next.remaining() > long() * 9 / 10);
        next.release().await.expect("held");
    }
}

#[tokio::test]
async fn when_the_node_that_a_manager_listens_on_is_killed_it_listens_on_another() {
    needs!(redis);
    let cluster = RedisCluster::start(IMPATIENT);
    let (locks, other) = (manager(&cluster).await, manager(&cluster).await);
    let keys = one_on_each(&cluster, "k");
    let mut waiting = Vec::new();
    for key in &keys {
        let guard = taken(&locks, key.as_str(), long()).await;
        waiting.push((key, guard, waits(&cluster, &other, key, 1).await));
    }
    let killed = listening(&cluster)[0];
    let lost = keys
        .iter()
        .find(|key| cluster.master_of(&format!("lockkit:{key}")).port() == killed.port());
    let lost = lost.cloned();
    killed.kill();
    wait::eventually("both managers listen elsewhere", async || {
        let nodes = cluster.up();
        let channels = nodes.map(|node| node.cli(&["PUBSUB", "CHANNELS", "lockkit:!m:*"]));
        channels
            .map(|channels| channels.lines().count())
            .sum::<usize>()
            == 2
    })
    .await;
    for (key, guard, waiter) in waiting {
        if Some(key) == lost.as_ref() {
            // Waiters for a key of the killed node get an error.
            waiter.abort();
            continue;
        }
        guard.release().await.expect("held");
        its_turn(waiter).await.release().await.expect("held");
    }
}

#[tokio::test]
async fn when_the_node_that_a_manager_listens_on_is_frozen_it_listens_on_another() {
    needs!(redis);
    let cluster = RedisCluster::start(IMPATIENT);
    let locks = manager(&cluster).await;
    let frozen = listening(&cluster)[0];
    frozen.stop();
    wait::eventually("the manager listens elsewhere", async || {
        !listening(&cluster).is_empty()
    })
    .await;
    drop(locks);
    frozen.cont();
}

#[tokio::test]
async fn waiters_ask_again_when_the_node_of_their_key_is_back_without_its_data() {
    needs!(redis);
    let cluster = RedisCluster::start(PATIENT);
    let (locks, other) = (manager(&cluster).await, manager(&cluster).await);
    let heard: Vec<u16> = listening(&cluster).iter().map(|it| it.port()).collect();
    // Otherwise the managers notice that their own connection has broken.
    let key = one_on_each(&cluster, "forgotten").into_iter().find(|key| {
        let port = cluster.master_of(&format!("lockkit:{key}")).port();
        !heard.contains(&port)
    });
    let key = key.expect("a master on which no manager listens");
    let node = cluster.master_of(&format!("lockkit:{key}"));
    let lost = taken(&locks, &key, long()).await;
    let waiter = waits(&cluster, &other, &key, 1).await;
    node.kill();
    // A request of the waiter's manager to this node would find that its connection has broken. Only its looks at the nodes,
    // each of which is about some of them and two seconds behind the last, find that the node is silent.
    tokio::time::sleep(Duration::from_secs(4)).await;
    node.start_again();
    its_turn(waiter).await.release().await.expect("held");
    drop(lost);
}

#[tokio::test]
async fn a_dead_waiter_delays_the_next_one_by_its_grant() {
    needs!(redis);
    let cluster = shared_cluster();
    let (locks, other) = (manager(cluster).await, manager(cluster).await);
    let guard = taken(&locks, "dead", long()).await;
    // A listener may be connected to another node, so PUBLISH without a receiver on this node
    // proves nothing.
    let queue = "lockkit:!q:{lockkit:dead}";
    let dead = "0123456789abcdef/0123456789abcdef0123456789abcdef 1500";
    cluster.cli(queue, &["ZADD", queue, "1", dead]);
    let waiter = waits(cluster, &other, "dead", 2).await;
    guard.release().await.expect("held");
    assert!(
        cluster
            .cli("lockkit:dead", &["GET", "lockkit:dead"])
            .starts_with("0123456789abcdef/")
    );
    its_turn(waiter).await.release().await.expect("held");
}
