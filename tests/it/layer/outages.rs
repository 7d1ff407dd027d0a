//! Tests a Redis that refuses, hangs, is stopped or is slow. An unknown state is never a 409.

use std::time::{Duration, Instant};

use lock_core::LockManager;
use lock_tests::{Answer, FakeServer, RedisServer, needs, wait};
use tokio::time::timeout;

use super::client::VERSIONS;
use super::client::Version::{Http1, Http2};
use super::{
    BOUNDED, Gate, Server, assert_unavailable, click, hasty_layer, nothing_is_left, server_on,
};

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
async fn with_a_stopped_redis_each_click_is_a_503_and_no_key_is_left_when_redis_continues() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::open();
    let locks = LockManager::connect(&redis.url()).await.expect("a manager");
    let server = Server::start(locks.clone(), hasty_layer(&locks), &gate).await;
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
async fn the_layer_waits_for_a_slow_redis_as_long_as_configured() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::open();
    // Its layer waits for as long as `wait::PATIENCE`.
    let server = server_on(&redis, &gate).await;
    assert_eq!(click(&server, "warm").await.status, 201);
    for version in VERSIONS {
        redis.stop();
        let mut order = std::pin::pin!(version.click(&server, "42"));
        // This is twice the default timeout, and no answer has come.
        let early = timeout(Duration::from_millis(500), &mut order).await;
        assert!(early.is_err(), "{early:?}");
        redis.cont();
        assert_eq!(order.await.status, 201, "{version:?}");
    }
    nothing_is_left(&redis, &[&server]).await;
}
