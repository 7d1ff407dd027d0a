//! Tests split votes.
//!
//! Each contender is nearest to another server, so that each has one vote before the others arrive.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};
use tokio::time::timeout;

use super::contenders::Guarded;
use super::{Nodes, builder, kind, long};

const ROUNDS: u64 = 20;
/// The number of attempts of each contender that does not wait.
const TRIES: usize = 100;
/// The extra delay of the other servers, long against the time that a busy machine takes to send.
const FAR: Duration = Duration::from_millis(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contenders_with_a_server_each_agree_on_one_of_them() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let mut ways = Vec::new();
    let mut managers = Vec::new();
    for near in 0..3 {
        let proxies: Vec<Proxy> = nodes.0.iter().map(|it| Proxy::to(it.address())).collect();
        let urls = proxies.iter().map(Proxy::redis_url);
        managers.push(builder(urls).connect().await.expect("a manager"));
        for (place, proxy) in proxies.iter().enumerate() {
            if place != near {
                proxy.set(Direction::Requests, Flow::Delay(FAR));
            }
        }
        ways.push(proxies);
    }
    let guarded = Guarded::default();
    for _ in 0..ROUNDS {
        let all = managers.iter().map(|locks| async {
            // A server that a busy machine delays is out for a moment, which this test ignores.
            let guard = loop {
                let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
                match request.acquire().await {
                    Ok(guard) => break guard,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}"),
                }
            };
            drop(guarded.enter(guard).await);
        });
        let all: Vec<_> = all.collect();
        let [one, two, three] = <[_; 3]>::try_from(all).ok().expect("three");
        let round = async { tokio::join!(one, two, three) };
        timeout(wait::PATIENCE, round)
            .await
            .expect("every contender gets its turn");
    }
    assert_eq!(guarded.entered(), ROUNDS * 3);
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn a_split_vote_leaves_no_key_when_it_is_refused() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    nodes.0[0].cli(&["SET", "lockkit:k", "one"]);
    nodes.0[2].cli(&["SET", "lockkit:k", "another"]);
    let before = deletions(&nodes.0[1]);
    for _ in 0..TRIES / 10 {
        let refused = locks.lock("k").ttl(long()).acquire().await;
        assert_eq!(kind(refused), ErrorKind::Busy);
        // The votes are gone at once, because the next contender must not meet them.
        assert_eq!(nodes.that_have("k"), [0, 2]);
    }
    let deleted = deletions(&nodes.0[1]) - before;
    assert!(
        deleted >= 2 * TRIES as u64 / 10,
        "the contender tried again"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contenders_for_the_last_three_of_five_servers_get_no_outage() {
    needs!(redis);
    let nodes = Nodes::start(5);
    let mut managers = Vec::new();
    for _ in 0..4 {
        managers.push(nodes.acquainted().await);
    }
    nodes.0[1].kill();
    nodes.0[3].kill();
    let guarded = Guarded::default();
    let tries = |locks: &LockManager| {
        let locks = locks.clone();
        let guarded = &guarded;
        async move {
            for _ in 0..TRIES {
                match locks.lock("k").ttl(long()).acquire().await {
                    Ok(guard) => guarded.enter(guard).await.release().await.expect("held"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error:?}"),
                }
            }
        }
    };
    let waits = |locks: &LockManager| {
        let locks = locks.clone();
        let guarded = &guarded;
        async move {
            for _ in 0..ROUNDS {
                let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
                let guard = request.acquire().await.expect("its turn");
                guarded.enter(guard).await.release().await.expect("held");
            }
        }
    };
    let all = async {
        tokio::join!(
            tries(&managers[0]),
            tries(&managers[1]),
            waits(&managers[2]),
            waits(&managers[3])
        )
    };
    timeout(wait::PATIENCE, all)
        .await
        .expect("every contender is served");
    assert!(guarded.entered() >= 2 * ROUNDS);
    nodes.are_left_clean().await;
}

/// Counts the withdrawn votes and released locks of a node. No lease ends by itself here.
fn deletions(node: &RedisServer) -> u64 {
    let calls = node.commandstats();
    calls.get("del").copied().unwrap_or(0)
}
