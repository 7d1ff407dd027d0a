//! Tests the order of arrival when the server's clock was set back. The queue then has tickets whose numbers
//! are in the future.

use std::time::Duration;

use lock_core::Wait;
use lock_core::test_util::ManualClock;
use lock_tests::{Direction, Flow, Proxy, RedisServer, ServerClock, missing, needs, wait};

use super::{
    all_is_answered, its_turn, long, manager, on, others_run, process, queued, served, served_both,
    waits,
};
use crate::redis::asked;

const QUEUE: &str = "lockkit:!q:{k}";

fn line(server: &RedisServer) -> Vec<String> {
    let line = server.cli(&["ZRANGE", QUEUE, "0", "-1"]);
    line.lines().map(str::to_owned).collect()
}

/// Sets the clock back by an hour, by moving the arrivals of all waiters an hour into the future.
fn the_clock_goes_back(server: &RedisServer) {
    for waiter in line(server) {
        server.cli(&["ZINCRBY", QUEUE, "3600000000", &waiter]);
    }
}

#[tokio::test]
async fn processes_are_served_in_the_order_of_their_arrival_when_the_clock_was_set_back() {
    needs!(redis);
    let (server, owner) = served().await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let mut managers = Vec::new();
    let mut waiters = Vec::new();
    let mut arrived = Vec::new();
    for count in 1..=4 {
        managers.push(manager(&server.url()).await);
        waiters.push(waits(&server, &managers[count - 1], "k", count).await);
        if count == 2 {
            arrived = line(&server);
            the_clock_goes_back(&server);
        }
    }
    assert_eq!(line(&server)[..2], arrived, "newcomers queue behind");
    let mut guard = guard;
    for waiter in waiters {
        guard.release().await.expect("held");
        guard = its_turn(waiter).await;
    }
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_waiter_that_asks_again_keeps_its_place_when_the_clock_was_set_back() {
    needs!(redis);
    let server = RedisServer::start();
    let clock = ManualClock::new();
    let (owner, first, second) = (
        manager(&server.url()).await,
        on(&clock, &server.url()).await,
        manager(&server.url()).await,
    );
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let one = waits(&server, &first, "k", 1).await;
    the_clock_goes_back(&server);
    let other = waits(&server, &second, "k", 2).await;
    let arrived = line(&server);
    super::all_is_answered(&first).await;
    others_run().await;
    server.reset_stats();
    clock.advance(long() / 2);
    wait::eventually("the first waiter has asked again", async || {
        asked(&server).get("evalsha") > Some(&0)
    })
    .await;
    assert_eq!(line(&server), arrived);
    guard.release().await.expect("held");
    its_turn(one).await.release().await.expect("held");
    its_turn(other).await.release().await.expect("held");
}

#[tokio::test]
async fn the_next_waiter_is_told_of_a_grant_to_a_waiter_of_unknown_age() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let stopped = process("gone::waits_for_its_turn", &server, &[]);
    queued(&server, "k", 1).await;
    the_clock_goes_back(&server);
    let next = waits(&server, &locks, "k", 2).await;
    stopped.stop();
    server.reset_stats();
    guard.release().await.expect("held");
    assert_eq!(
        asked(&server).get("publish"),
        Some(&2),
        "both waiters are told"
    );
    its_turn(next).await.release().await.expect("held");
    stopped.cont();
    stopped.says("done");
}

#[tokio::test]
async fn a_grant_that_is_heard_of_behind_a_refusal_makes_no_second_owner_when_the_clock_was_set_back()
 {
    needs!(redis);
    if let Err(why) = missing::server_clock() {
        return missing::not_run(&|| (), &format!("no clock of a server steps: {why}"));
    }
    let servers_clock = ServerClock::new();
    let server = RedisServer::options().clock(&servers_clock).start();
    let proxy = Proxy::to(server.address());
    let clock = ManualClock::new();
    let owner = manager(&server.url()).await;
    let late = on(&clock, &proxy.redis_url()).await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = waits(&server, &late, "k", 1).await;
    all_is_answered(&late).await;
    others_run().await;
    // The grant is on its way until it is over, and another owner has the lock.
    proxy.set(Direction::Replies, Flow::Hold);
    let before = proxy.held(Direction::Replies);
    guard.release().await.expect("held");
    servers_clock.step_ahead(Duration::from_secs(3));
    let next = owner.lock("k").ttl(long()).wait(Wait::Forever);
    let next = next.acquire().await.expect("the grant is over");
    // By this clock the grant is not over.
    servers_clock.step_back(Duration::from_secs(2));
    server.reset_stats();
    clock.advance(Duration::from_secs(31));
    wait::eventually("the waiter asks again", async || {
        asked(&server).get("evalsha") > Some(&0)
    })
    .await;
    assert!(proxy.held(Direction::Replies) > before);
    proxy.set(Direction::Replies, Flow::Pass);
    all_is_answered(&late).await;
    others_run().await;
    assert!(!waiter.is_finished(), "another owner has the lock");
    assert!(next.is_valid());
    next.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
}
