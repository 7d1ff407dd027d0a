//! Tests votes that arrive when their manager, or its runtime, has ended.

use std::time::Duration;

use lock_tests::{Proxy, RedisServer, needs, wait};
use tokio::runtime::Runtime;

use super::{Nodes, builder, long, meets};

/// The background release gives up on a silent server before this time is over.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Drops a guard, the manager, and its runtime if it has one, while a vote of the last server is on its way, and lets
/// the vote arrive. The ttl is a minute.
async fn a_late_vote_is_undone(runtime: Option<Runtime>) {
    let nodes = Nodes::start(3);
    let last = Proxy::to(nodes.0[2].address());
    let urls = [nodes.0[0].url(), nodes.0[1].url(), last.redis_url()];
    let locks = builder(urls).operation_timeout(TIMEOUT);
    let locks = locks.connect().await.expect("a manager");
    let acquire = async || {
        let acquire = locks.lock("k").ttl(long()).acquire();
        let granted = match &runtime {
            Some(runtime) => runtime.spawn(acquire).await.expect("no panic"),
            None => acquire.await,
        };
        granted.expect("free")
    };
    meets(&locks, 3).await;
    // The runtime has its connections from here on.
    let guard = acquire().await;
    wait::eventually("all servers have voted", async || {
        guard.acks().granted() == 3
    })
    .await;
    guard.release().await.expect("held");
    nodes.are_left_clean().await;

    nodes.0[2].reset_stats();
    last.black_hole();
    drop(acquire().await);
    drop(locks);
    if let Some(runtime) = runtime {
        runtime.shutdown_background();
    }
    let has_it = |node: &RedisServer| node.get("lockkit:k").is_some();
    wait::eventually("the lock is released", async || {
        !nodes.0[..2].iter().any(has_it)
    })
    .await;
    // In this time a thread ends that does not wait for the vote.
    tokio::time::sleep(TIMEOUT + TIMEOUT / 2).await;
    last.pass();
    wait::eventually("the last server has voted", async || {
        nodes.0[2].commandstats().contains_key("set")
    })
    .await;
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn a_vote_that_outlives_its_manager_is_undone() {
    needs!(redis);
    a_late_vote_is_undone(None).await;
}

#[tokio::test]
async fn a_vote_that_outlives_its_manager_and_its_runtime_is_undone() {
    needs!(redis);
    let runtime = Runtime::new().expect("a runtime");
    a_late_vote_is_undone(Some(runtime)).await;
}
