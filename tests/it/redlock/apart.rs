//! Tests a server that is cut off from a client: no answer comes, and the connection does not
//! end.

use std::time::Duration;

use lock_core::ErrorKind;
use lock_tests::{Proxy, needs, wait};
use tokio::time::timeout;

use super::{Nodes, builder, kind};

/// The ttl. An attempt waits for a server for an eighth of it.
const TTL: Duration = Duration::from_secs(16);
/// The number of attempts. If each waited for the server, they would take longer than the
/// patience.
const ATTEMPTS: usize = 50;

#[tokio::test]
async fn a_server_that_is_cut_off_costs_nothing_after_the_first_miss() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let between = Proxy::to(nodes.0[2].address());
    let urls = [nodes.0[0].url(), nodes.0[1].url(), between.redis_url()];
    let locks = builder(urls).connect().await.expect("a manager");
    // Another client has one server's key, so the third server decides, and an attempt waits
    // for it.
    nodes.0[0].cli(&["SET", "lockkit:k", "stranger"]);
    let guard = locks
        .lock("k")
        .ttl(TTL)
        .acquire()
        .await
        .expect("two of three");
    guard.release().await.expect("held");

    between.black_hole();
    // Two of three servers answer. That is no outage, but a lock that the other client may
    // have.
    let busy = async || {
        let refused = locks.lock("k").ttl(TTL).acquire().await;
        assert_eq!(kind(refused), ErrorKind::Busy);
    };
    busy().await;
    timeout(wait::PATIENCE, async {
        for _ in 0..ATTEMPTS {
            busy().await;
        }
    })
    .await
    .expect("no attempt waits for the server any more");
    // An attempt that does not need that server has noticed nothing.
    let guard = locks
        .lock("l")
        .ttl(TTL)
        .acquire()
        .await
        .expect("two are free");
    guard.release().await.expect("held");

    between.pass();
    wait::eventually("the server votes again", async || {
        match locks.lock("k").ttl(TTL).acquire().await {
            Ok(guard) => guard.release().await.is_ok(),
            Err(_) => false,
        }
    })
    .await;
    nodes.0[0].cli(&["DEL", "lockkit:k"]);
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn servers_that_hang_cost_no_lock_that_a_majority_holds() {
    needs!(redis);
    let nodes = Nodes::start(5);
    let locks = nodes.acquainted().await;
    let mut guards = Vec::new();
    for number in 0..50_u32 {
        let ttl = Duration::from_millis(900) + Duration::from_millis(100) * number;
        let guard = locks.lock(format!("held:{number}")).ttl(ttl).acquire();
        guards.push(guard.await.expect("free"));
    }
    for hanging in &nodes.0[..2] {
        hanging.stop();
    }
    for round in 0..200 {
        let guard = locks.lock(format!("free:{}", round % 20)).ttl(TTL);
        let guard = guard.acquire().await.expect("three servers are healthy");
        guard.release().await.expect("held");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(guards.iter().all(|guard| guard.is_valid()));
    for hanging in &nodes.0[..2] {
        hanging.cont();
    }
    for guard in guards {
        guard.release().await.expect("held");
    }
    nodes.are_left_clean().await;
}
