//! Tests the requests that a layer with replay sends to Redis, counted by Redis itself.

use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};
use lock_tower::Replay;

use super::{Payments, app, assert_first, assert_replay, name, pay, replaying, server_on};
use crate::layer::{Gate, Server};
use crate::redis::{asked, counts};

#[tokio::test]
async fn the_first_request_costs_one_trip_before_its_handler_and_one_behind_it() {
    needs!(redis);
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.address());
    let gate = Gate::closed();
    let locks = crate::steps::manager(&proxy.redis_url()).await;
    let layer = replaying(&locks, Replay::default());
    let server = Server::serve(locks, app(layer, &gate, &Payments::default())).await;
    gate.let_through(1);
    assert_first(&pay(server.port(), "warm", "{}").await, "payment 1");

    redis.reset_stats();
    let sent = || proxy.bytes(Direction::Requests);
    let start = sent();
    proxy.set(Direction::Replies, Flow::Hold);
    let port = server.port();
    let first = tokio::spawn(async move { pay(port, "k1", "{}").await });
    // TIME is the last of the commands, so all commands before the first answer have arrived.
    wait::eventually("all commands of the acquire have arrived", async || {
        redis.commandstats().contains_key("time")
    })
    .await;
    let before_answer = sent();
    assert!(before_answer > start);
    proxy.pass();
    gate.entered(2).await;
    assert_eq!(sent(), before_answer, "one trip before the handler");

    proxy.set(Direction::Replies, Flow::Hold);
    gate.let_through(1);
    wait::eventually("the record has arrived", async || {
        let value = redis.get(&name("k1"));
        value.is_some_and(|value| value.starts_with("done/"))
    })
    .await;
    let before_answer = sent();
    assert!(!first.is_finished(), "the answer waits for the record");
    proxy.pass();
    assert_first(&first.await.expect("no panic"), "payment 2");
    assert_eq!(sent(), before_answer, "and one trip behind it");
    let asked = asked(&redis);
    assert_eq!(asked.get("evalsha").copied(), Some(1), "{asked:?}");
}

#[tokio::test]
async fn a_duplicate_costs_one_trip_of_an_acquire() {
    needs!(redis_7);
    let redis = RedisServer::start();
    let payments = Payments::default();
    let first = server_on(&redis, &Gate::open(), &payments).await;
    let second = server_on(&redis, &Gate::open(), &payments).await;
    for server in [&first, &second] {
        pay(server.port(), &format!("warm {}", server.port()), "").await;
    }
    assert_first(&pay(first.port(), "k1", "{}").await, "payment 3");
    for server in [&first, &second] {
        redis.reset_stats();
        assert_replay(&pay(server.port(), "k1", "{}").await, "payment 3");
        let acquire = counts(&[("set", 1), ("get", 1), ("time", 1)]);
        assert_eq!(asked(&redis), acquire);
    }
    redis.reset_stats();
    let other = pay(second.port(), "k1", "{ }").await;
    assert_eq!(other.status, 422, "{other:?}");
    let acquire = counts(&[("set", 1), ("get", 1), ("time", 1)]);
    assert_eq!(asked(&redis), acquire);
    assert_eq!(payments.count(), 3);
}
