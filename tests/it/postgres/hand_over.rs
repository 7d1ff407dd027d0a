//! Tests the hand-over between processes, and a waiter whose listening connection is cut meanwhile.

use std::time::Duration;

use lock_core::{LockManager, Wait};
use lock_tests::{Direction, Flow, Proxy, SqlServer, needs, wait};

use super::{its_turn, listening_through, long, manager, table, taken};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_listening_connection_is_cut_while_the_key_is_handed_over_gets_it() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let proxy = Proxy::to(server.address());
    let owner = manager(server.url()).await;
    let waiting = manager(&listening_through(&server, &proxy)).await;
    let guard = taken(&owner, "k", long()).await;
    let waiter = tokio::spawn(waiting.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    table(&server).queued(1).await;
    // The push is on its way, and does not arrive.
    proxy.set(Direction::Replies, Flow::Hold);
    guard.release().await.expect("held");
    table(&server).queued(0).await;
    wait::eventually("the push is in the proxy", async || {
        proxy.held(Direction::Replies) > 0
    })
    .await;
    proxy.cut();
    proxy.pass();
    its_turn(waiter).await.release().await.expect("held");
    table(&server).is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_that_does_not_listen_is_left_out_until_it_asks_again() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let proxy = Proxy::to(server.address());
    let owner = manager(server.url()).await;
    let deaf = manager(&listening_through(&server, &proxy)).await;
    let second = LockManager::builder(server.url()).label("listens");
    let second = second.connect().await.expect("a manager");
    let guard = taken(&owner, "k", long()).await;
    let first = tokio::spawn(deaf.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    table(&server).queued(1).await;
    let next = tokio::spawn(second.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    table(&server).queued(2).await;
    let listening = || -> usize {
        let locks = server.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'");
        locks.parse().expect("a number")
    };
    let before = listening();
    proxy.refuse();
    proxy.cut();
    wait::eventually("the server knows that one does not listen", async || {
        listening() < before
    })
    .await;
    guard.release().await.expect("held");
    // The one that does not listen has not had the key for its grant.
    let seen = owner.operator("tests").inspect("k").await;
    let holders = seen.expect("an inspection");
    let identity = holders.holders()[0].identity().expect("a live process");
    assert_eq!(identity.label(), Some("listens"));
    let next = its_turn(next).await;
    proxy.accept();
    next.release().await.expect("held");
    its_turn(first).await.release().await.expect("held");
}

/// So the message alone gives it the key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_requests_do_not_arrive_is_given_the_key() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let proxy = Proxy::to(server.address());
    let owner = manager(server.url()).await;
    let url = format!("{}?listen={}", server.url_through(&proxy), server.url());
    let waiting = manager(&url).await;
    let guard = taken(&owner, "k", long()).await;
    let waiter = tokio::spawn(waiting.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    table(&server).queued(1).await;
    proxy.set(Direction::Requests, Flow::Hold);
    guard.release().await.expect("held");
    let given = its_turn(waiter).await;
    proxy.pass();
    given.release().await.expect("held");
    table(&server).is_clean().await;
}

/// Neither side is told that the connection is dead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_behind_a_half_open_connection_costs_the_others_a_grant_and_gets_its_turn() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let proxy = Proxy::to(server.address());
    let owner = manager(server.url()).await;
    let deaf = manager(&listening_through(&server, &proxy)).await;
    let second = manager(server.url()).await;
    let guard = taken(&owner, "k", long()).await;
    let first = tokio::spawn(deaf.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    table(&server).queued(1).await;
    let next = tokio::spawn(second.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    table(&server).queued(2).await;
    proxy.freeze();
    guard.release().await.expect("held");
    // Which of the two is first depends on which notices first: the waiter that its connection is dead, or the server that
    // the grant is over.
    let (first, next) = tokio::join!(ends(first), ends(next));
    assert!(first && next);
    table(&server).is_clean().await;
}

/// Releases the lock as soon as the waiter has it.
async fn ends(waiter: crate::steps::Waiter) -> bool {
    let guard = tokio::time::timeout(3 * wait::PATIENCE, waiter).await;
    let guard = guard
        .expect("in time")
        .expect("no panic")
        .expect("its turn");
    tokio::time::sleep(Duration::from_millis(10)).await;
    guard.release().await.is_ok()
}
