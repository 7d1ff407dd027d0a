//! Tests a Redis that refuses, hangs or is stopped. An unknown state is never a 409.

use std::time::Instant;

use lock_core::LockManager;
use lock_tests::{Answer, FakeServer, RedisServer, needs, wait};

use super::client::VERSIONS;
use super::client::Version::{Http1, Http2};
use super::{BOUNDED, Gate, Server, assert_unavailable, click, hasty_layer, nothing_is_left};

#[tokio::test]
async fn a_redis_that_gives_no_usable_answer_is_a_503_in_time() {
    for answer in [
        Answer::Loading,
        Answer::ReadOnly,
        Answer::Silence,
        Answer::HangUp,
    ] {
        for redis in [
            FakeServer::start(answer.clone()),
            FakeServer::after_handshake(answer.clone()),
        ] {
            let gate = Gate::open();
            let locks = LockManager::connect_lazy(&redis.url()).expect("a URL");
            let server = Server::start(locks.clone(), hasty_layer(&locks), &gate).await;
            let start = Instant::now();
            // The first click opens the connection, and the second one uses the same
            // connection.
            for version in VERSIONS {
                assert_unavailable(&version.click(&server, "42").await);
            }
            assert!(
                start.elapsed() < BOUNDED,
                "{answer:?}: {:?}",
                start.elapsed()
            );
            assert_eq!(gate.counts(), (0, 0), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn without_a_redis_each_click_is_a_503_and_a_redis_that_starts_serves() {
    needs!(redis);
    let redis = RedisServer::start();
    redis.kill();
    let gate = Gate::open();
    let locks = LockManager::connect_lazy(&redis.url()).expect("a URL");
    let server = Server::start(locks.clone(), hasty_layer(&locks), &gate).await;
    assert_unavailable(&click(&server, "42").await);
    redis.start_again();
    wait::eventually("the server serves clicks", async || {
        let answer = click(&server, "42").await;
        assert!([201, 503].contains(&answer.status), "{answer:?}");
        answer.status == 201
    })
    .await;
    nothing_is_left(&redis, &[&server]).await;
}

/// Starts a server whose layer has the default time limits.
async fn hasty_server_on(redis: &RedisServer, gate: &Gate) -> Server {
    let locks = LockManager::connect(&redis.url()).await.expect("a manager");
    Server::start(locks.clone(), hasty_layer(&locks), gate).await
}

#[tokio::test]
async fn with_a_stopped_redis_each_click_is_a_503_and_no_key_is_left_when_redis_continues() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::open();
    let server = hasty_server_on(&redis, &gate).await;
    assert_eq!(click(&server, "warm").await.status, 201);
    redis.stop();
    for (user, version) in [("42", Http1), ("42", Http2), ("43", Http2)] {
        let start = Instant::now();
        assert_unavailable(&version.click(&server, user).await);
        assert!(start.elapsed() < BOUNDED, "{:?}", start.elapsed());
    }
    assert_eq!(gate.counts(), (1, 1), "no handler ran");
    redis.cont();
    wait::eventually("the server serves the same users again", async || {
        let answer = click(&server, "42").await;
        assert!([201, 503].contains(&answer.status), "{answer:?}");
        answer.status == 201
    })
    .await;
    nothing_is_left(&redis, &[&server]).await;
}

#[tokio::test]
async fn a_redis_that_stops_while_the_handler_runs_does_not_hold_its_answer_back() {
    needs!(redis);
    for version in VERSIONS {
        let redis = RedisServer::start();
        let gate = Gate::closed();
        let server = hasty_server_on(&redis, &gate).await;
        let (order, ()) = tokio::join!(version.click(&server, "42"), async {
            gate.entered(1).await;
            redis.stop();
            gate.let_through(1);
            let sent = Instant::now();
            gate.ended(1).await;
            assert!(sent.elapsed() < BOUNDED);
        });
        assert_eq!((order.status, &*order.body), (201, "an order"));
        redis.cont();
        nothing_is_left(&redis, &[&server]).await;
    }
}

#[tokio::test]
async fn a_redis_that_dies_while_the_handler_runs_does_not_hold_its_answer_back() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::closed();
    let server = hasty_server_on(&redis, &gate).await;
    let mut click = std::pin::pin!(Http2.click(&server, "42"));
    tokio::select! {
        early = &mut click => panic!("{early:?}"),
        _ = gate.entered(1) => {}
    }
    redis.kill();
    gate.let_through(1);
    let start = Instant::now();
    let order = click.await;
    assert_eq!((order.status, &*order.body), (201, "an order"));
    assert!(start.elapsed() < BOUNDED, "{:?}", start.elapsed());
}
