//! A server that is slow, and a link with a long way: right, only slower.

use std::time::Duration;

use lock_core::Wait;
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};
use tokio::time::timeout;

use super::{keys, long, warm};

#[tokio::test]
async fn the_delay_of_the_answers_is_taken_off_the_lease() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, Duration::from_secs(5)).await;
    let (ttl, delay) = (Duration::from_secs(10), Duration::from_millis(700));
    proxy.set(Direction::Replies, Flow::Delay(delay));
    let guard = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    // The server counts from before its answer; so must the owner, who got it that much later.
    let owners = guard.remaining();
    assert!(owners <= ttl - delay, "{owners:?}");
    let servers = server.time_to_live("lock:k").expect("it is there");
    assert!(guard.remaining() < servers, "{servers:?}");
    proxy.pass();
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_slow_link_hands_over_too() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, Duration::from_secs(5)).await;
    for direction in [Direction::Requests, Direction::Replies] {
        proxy.set(direction, Flow::Delay(Duration::from_millis(10)));
    }
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
            tokio::spawn(request.run(tokio::task::yield_now()))
        })
        .collect();
    for task in tasks {
        let outcome = timeout(wait::PATIENCE, task).await.expect("told");
        outcome.expect("no panic").expect("its turn");
    }
    proxy.pass();
    assert!(keys(&server).is_empty());
}
