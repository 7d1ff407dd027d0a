//! Tests a slow server, and a link with a long delay.

use std::time::Duration;

use lock_core::LockManager;
use lock_tests::{Direction, Flow, Proxy, RedisServer, Sentinels, needs, wait};

use super::{once, proxied};
use crate::conformance::{shared_cluster, shared_watched};

#[tokio::test]
async fn the_delay_of_the_answers_is_subtracted_from_the_lease() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    let (ttl, delay) = (Duration::from_secs(10), Duration::from_millis(700));
    proxy.set(Direction::Replies, Flow::Delay(delay));
    let guard = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    // The server counts from a time before its answer. So must the owner, who got the answer that much
    // later.
    let owners = guard.remaining();
    assert!(owners <= ttl - delay, "{owners:?}");
    let servers = server.time_to_live("lockkit:k").expect("the key exists");
    assert!(guard.remaining() < servers, "{servers:?}");
    proxy.pass();
    guard.release().await.expect("held");
}

/// Finds servers over a link so slow that a nearby server would have answered before a connection is
/// made.
#[tokio::test]
async fn distant_sentinels_and_nodes_are_found() {
    needs!(redis);
    let (sentinels, cluster) = (&shared_watched().sentinels, shared_cluster());
    let far = |server: &RedisServer| {
        let proxy = Proxy::to(server.address());
        for direction in [Direction::Requests, Direction::Replies] {
            proxy.set(direction, Flow::Delay(Duration::from_millis(100)));
        }
        proxy
    };
    let (sentinel, node) = (far(&sentinels.servers()[0]), far(&cluster.nodes()[0]));
    let service = Sentinels::SERVICE;
    for url in [
        format!(
            "redis-sentinel://{}/0?service={service}",
            sentinel.address()
        ),
        format!("redis-cluster://{}", node.address()),
    ] {
        let builder = LockManager::builder(&url).namespace("far:");
        let locks = builder.operation_timeout(wait::PATIENCE).connect().await;
        let locks = locks.expect("a manager");
        once(&locks, "k").await;
    }
}
