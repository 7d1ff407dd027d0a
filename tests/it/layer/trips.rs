//! Tests the requests that the layer sends to Redis, counted by Redis itself.

use std::time::Duration;

use lock_core::LockManager;
use lock_tests::{Direction, Flow, Proxy, RedisServer, http, needs, wait};

use super::{Gate, Server, click, key, layer, nothing_is_left, server_on};
use crate::redis::{asked, counts};

/// Makes the connections, and makes Redis load the scripts.
async fn warm(server: &Server) {
    for _ in 0..2 {
        assert_eq!(click(server, "warm").await.status, 201);
    }
}

#[tokio::test]
async fn ten_requests_are_ten_acquires_and_ten_releases() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::open();
    let server = server_on(&redis, &gate).await;
    warm(&server).await;
    redis.reset_stats();
    for user in 0..10 {
        assert_eq!(click(&server, &user.to_string()).await.status, 201);
    }
    // Each acquire asks for TIME, and no release does.
    let asked = asked(&redis);
    let count = |command| asked.get(command).copied();
    assert_eq!((count("time"), count("pttl")), (Some(10), None));
    assert_eq!((count("evalsha"), count("eval")), (Some(10), None));
    nothing_is_left(&redis, &[&server]).await;
}

#[tokio::test]
async fn a_duplicate_costs_one_round_trip_or_none_on_its_own_server() {
    needs!(redis_7);
    let redis = RedisServer::start();
    let there = server_on(&redis, &Gate::open()).await;
    warm(&there).await;
    let gate = Gate::closed();
    let busy = server_on(&redis, &gate).await;
    let (order, ()) = tokio::join!(click(&busy, "42"), async {
        gate.entered(1).await;
        redis.reset_stats();
        assert_eq!(click(&there, "42").await.status, 409);
        assert_eq!(
            asked(&redis),
            counts(&[("set", 1), ("get", 1), ("time", 1)])
        );
        redis.reset_stats();
        assert_eq!(click(&busy, "42").await.status, 409);
        assert_eq!(asked(&redis), counts(&[]));
        gate.let_through(1);
    });
    assert_eq!(order.status, 201);
}

#[tokio::test]
async fn one_round_trip_precedes_the_handler_and_one_follows_it() {
    needs!(redis);
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.address());
    let gate = Gate::closed();
    let locks = LockManager::connect(&proxy.redis_url())
        .await
        .expect("a manager");
    // Only an answer ends the waiting of this layer.
    let layer = layer(&locks)
        .acquire_timeout(wait::PATIENCE)
        .release_timeout(wait::PATIENCE);
    let server = Server::start(locks, layer, &gate).await;
    gate.let_through(2);
    warm(&server).await;

    redis.reset_stats();
    let asked = || proxy.bytes(Direction::Requests);
    let start = asked();
    proxy.set(Direction::Replies, Flow::Hold);
    let port = server.port();
    let order =
        tokio::spawn(async move { http::post(port, "/orders", &[("x-user-id", "42")], "").await });
    // TIME is the last of the commands, so all commands before the first answer have arrived.
    wait::eventually("all commands of the acquire have arrived", async || {
        redis.commandstats().contains_key("time")
    })
    .await;
    let before_answer = asked();
    assert!(before_answer > start);
    proxy.pass();
    gate.entered(3).await;
    assert_eq!(asked(), before_answer, "one round trip before the handler");

    proxy.set(Direction::Replies, Flow::Hold);
    gate.let_through(1);
    wait::eventually("the release has arrived", async || {
        redis.get(&key("42")).is_none()
    })
    .await;
    let before_answer = asked();
    assert!(!order.is_finished(), "the answer waits for the release");
    proxy.pass();
    let order = order.await.expect("no panic").expect("an answer");
    assert_eq!(order.status, 201);
    assert_eq!(asked(), before_answer, "and one round trip after it");
    nothing_is_left(&redis, &[&server]).await;
}

#[tokio::test]
async fn a_cooldown_costs_no_trip_of_its_own() {
    needs!(redis_7);
    let redis = RedisServer::start();
    let gate = Gate::open();
    let locks = crate::steps::manager(&redis.url()).await;
    let layer = layer(&locks).release_timeout(wait::PATIENCE);
    let layer = layer.cooldown(Duration::from_secs(60));
    let server = Server::start(locks, layer, &gate).await;
    for user in ["warm", "warmer"] {
        assert_eq!(click(&server, user).await.status, 201);
    }
    redis.reset_stats();
    assert_eq!(click(&server, "42").await.status, 201);
    let asked = asked(&redis);
    let count = |command| asked.get(command).copied();
    assert_eq!((count("get"), count("evalsha")), (Some(3), Some(1)));
    assert_eq!(count("eval"), None);
}
