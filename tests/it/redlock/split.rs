//! Votes that are split: each contender is nearest to another server, so that each has one before the
//! others come.

use std::time::Duration;

use lock_core::{ErrorKind, Wait};
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};
use tokio::time::timeout;

use super::contenders::Guarded;
use super::{Nodes, builder, long};

const ROUNDS: u64 = 20;
/// How much farther the other servers are: long against what a busy machine takes to send.
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
            // A server that a busy machine holds up is out for a moment: not what this is about.
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
            .expect("all have a turn");
    }
    assert_eq!(guarded.entered(), ROUNDS * 3);
    nodes.are_left_clean().await;
    // Each lock that was granted has been deleted on three servers at most.
    let deleted: u64 = nodes.0.iter().map(deletions).sum();
    assert!(
        deleted > 3 * guarded.entered(),
        "no vote was ever given back: {deleted}"
    );
}

/// How many votes it has taken back, and locks released: nothing here ends by itself.
fn deletions(node: &RedisServer) -> u64 {
    let calls = node.commandstats();
    calls.get("del").copied().unwrap_or(0)
}
