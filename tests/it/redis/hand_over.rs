//! Tests the release, which gives the lock to the first waiter.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lock_core::Wait;
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};

use super::scripts::pttl;
use super::{all_is_answered, its_turn, long, manager, served, served_both, waits, warm};

#[tokio::test]
async fn processes_are_served_in_the_order_of_their_arrival() {
    needs!(redis);
    let (server, owner) = served().await;
    let mut guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let mut waiters = Vec::new();
    let mut managers = Vec::new();
    for before in 0..5 {
        let locks = manager(&server.url()).await;
        waiters.push(waits(&server, &locks, "k", before + 1).await);
        managers.push(locks);
    }
    for waiter in waiters {
        let last = guard.fencing_token();
        guard.release().await.expect("held");
        guard = its_turn(waiter).await;
        assert!(guard.fencing_token() > last);
    }
    guard.release().await.expect("held");
}

#[tokio::test]
async fn the_tasks_of_a_process_precede_another_process_for_at_most_32_passes() {
    needs!(redis);
    let (server, busy, other) = served_both().await;
    let guard = busy.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = waits(&server, &other, "k", 1).await;
    let turns = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let (request, turns) = (busy.lock("k").ttl(long()), Arc::clone(&turns));
            tokio::spawn(async move {
                let guard = request.wait(Wait::Forever).acquire().await;
                turns.fetch_add(1, Ordering::SeqCst);
                // The work takes time, so that the process can check for waiters and see that
                // there is one.
                tokio::time::sleep(Duration::from_millis(1)).await;
                guard.expect("its turn").release().await.expect("held");
            })
        })
        .collect();
    tokio::task::yield_now().await;
    guard.release().await.expect("held");
    let guard = its_turn(waiter).await;
    let before = turns.load(Ordering::SeqCst);
    assert!(before <= 32, "{before} turns of another process came first");
    guard.release().await.expect("held");
    for task in tasks {
        task.await.expect("no panic");
    }
}

#[tokio::test]
async fn a_hand_over_is_one_command() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = waits(&server, &locks, "k", 1).await;
    server.reset_stats();
    guard.release().await.expect("held");
    let guard = its_turn(waiter).await;
    let sent = server.commandstats();
    assert_eq!(sent["evalsha"], 1, "only the release is sent: {sent:?}");
    assert!(guard.is_valid());
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_waiter_that_is_cancelled_after_it_was_given_the_lock_passes_it_on() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let owner = manager(&server.url()).await;
    let slow = warm(&proxy, Duration::from_secs(5)).await;
    let locks = manager(&server.url()).await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let first = waits(&server, &slow, "k", 1).await;
    let second = waits(&server, &locks, "k", 2).await;
    all_is_answered(&slow).await;
    // The waiter is given the lock, but the proxy holds the push back.
    proxy.set(Direction::Replies, Flow::Hold);
    server.reset_stats();
    guard.release().await.expect("held");
    first.abort();
    assert!(first.await.expect_err("aborted").is_cancelled());
    proxy.pass();
    let guard = its_turn(second).await;
    let sent = server.commandstats();
    assert_eq!(
        sent["evalsha"], 2,
        "the lock is handed over twice without a request: {sent:?}"
    );
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_waiter_asks_when_its_grant_arrives_too_late() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let owner = manager(&server.url()).await;
    let slow = warm(&proxy, Duration::from_secs(5)).await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = waits(&server, &slow, "k", 1).await;
    all_is_answered(&slow).await;
    proxy.set(Direction::Replies, Flow::Hold);
    guard.release().await.expect("held");
    wait::eventually("the grant has run out", async || pttl(&server) == -2).await;
    proxy.pass();
    let guard = its_turn(waiter).await;
    // The grant was for two seconds, so the present lock was asked for after it.
    assert!(guard.remaining() > long() / 2);
    assert!(pttl(&server) > 30_000);
    guard.release().await.expect("held");
}
