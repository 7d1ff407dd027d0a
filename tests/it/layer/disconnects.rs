//! Tests clients that go away in the middle of a request.

use std::time::Duration;

use axum::Router;
use axum::routing::post;
use lock_core::LockManager;
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};
use lock_tower::{Disconnect, LockLayer};
use tokio::io::AsyncReadExt;

use super::client::{Leaves, Rest, WAYS};
use super::{Gate, Server, click, key, layer, nothing_is_left, server_on};
use crate::shop::code;

#[tokio::test]
async fn the_order_of_a_client_that_left_is_made_once_and_its_lock_released() {
    needs!(redis);
    for how in WAYS {
        let redis = RedisServer::start();
        let gate = Gate::closed();
        let (here, there) = (
            server_on(&redis, &gate).await,
            server_on(&redis, &gate).await,
        );
        let client = how.click(&here, "42").await;
        let lock = gate.entered(1).await;
        let rest = client.leave();
        here.left(1).await;
        if let Rest::Listens(mut stream) = rest {
            let mut nothing = Vec::new();
            stream.read_to_end(&mut nothing).await.expect("closed");
            assert!(nothing.is_empty(), "{how:?}");
        }
        for server in [&here, &there] {
            assert_eq!(click(server, "42").await.status, 409, "{how:?}");
        }
        assert!(lock.is_valid());
        gate.let_through(1);
        gate.ended(1).await;
        nothing_is_left(&redis, &[&here, &there]).await;
        assert_eq!(gate.counts(), (1, 1), "{how:?}");
    }
}

#[tokio::test]
async fn the_order_of_a_client_that_left_outlives_the_ttl_of_its_lock() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::closed();
    let locks = LockManager::connect(&redis.url()).await.expect("a manager");
    let ttl = Duration::from_millis(600);
    let server = Server::start(locks.clone(), layer(&locks).ttl(ttl), &gate).await;
    let client = Leaves::WithFin.click(&server, "42").await;
    let lock = gate.entered(1).await;
    client.leave();
    let start = std::time::Instant::now();
    wait::eventually("three ttls have passed", async || {
        assert!(
            lock.is_valid(),
            "the lock is renewed while the handler runs"
        );
        start.elapsed() > ttl * 3
    })
    .await;
    assert_eq!(click(&server, "42").await.status, 409);
    gate.let_through(1);
    nothing_is_left(&redis, &[&server]).await;
    assert_eq!(gate.counts(), (1, 1));
}

#[tokio::test]
async fn a_client_that_left_before_the_lock_was_there_gets_no_order_and_leaves_no_key() {
    needs!(redis);
    for how in WAYS {
        let redis = RedisServer::start();
        let proxy = Proxy::to(redis.address());
        let gate = Gate::open();
        let builder = LockManager::builder(&proxy.redis_url());
        let locks = builder.connect().await.expect("a manager");
        // Only the client can end this acquire.
        let layer = layer(&locks).acquire_timeout(wait::PATIENCE);
        let server = Server::start(locks, layer, &gate).await;
        for user in ["warm", "warmer"] {
            assert_eq!(click(&server, user).await.status, 201);
        }
        proxy.set(Direction::Replies, Flow::Hold);
        let client = how.click(&server, "42").await;
        wait::eventually("Redis has granted the lock", async || {
            redis.get(&key("42")).is_some()
        })
        .await;
        let rest = client.leave();
        server.left(1).await;
        // A request undoes the grant. The proxy holds its answer back, as it does with that of
        // the grant.
        wait::eventually("the grant is undone", async || {
            redis.get(&key("42")).is_none()
        })
        .await;
        drop(rest);
        proxy.pass();
        assert_eq!(gate.counts(), (2, 2), "{how:?}");
        assert_eq!(click(&server, "42").await.status, 201);
        nothing_is_left(&redis, &[&server]).await;
    }
}

#[tokio::test]
async fn a_client_that_left_while_its_lock_was_released_has_its_order_and_no_lock() {
    needs!(redis);
    for how in WAYS {
        let redis = RedisServer::start();
        let proxy = Proxy::to(redis.address());
        let gate = Gate::closed();
        let locks = LockManager::connect(&proxy.redis_url())
            .await
            .expect("a manager");
        // Only the client can end this release.
        let layer = layer(&locks).release_timeout(wait::PATIENCE);
        let server = Server::start(locks, layer, &gate).await;
        gate.let_through(2);
        for user in ["warm", "warmer"] {
            assert_eq!(click(&server, user).await.status, 201);
        }
        let client = how.click(&server, "42").await;
        gate.entered(3).await;
        proxy.set(Direction::Replies, Flow::Hold);
        gate.let_through(1);
        wait::eventually("Redis has released the lock", async || {
            redis.get(&key("42")).is_none()
        })
        .await;
        let rest = client.leave();
        server.left(1).await;
        drop(rest);
        proxy.pass();
        nothing_is_left(&redis, &[&server]).await;
        assert_eq!(gate.counts(), (3, 3), "{how:?}");
    }
}

#[tokio::test]
async fn a_client_that_left_in_the_middle_of_the_body_with_its_key_gets_no_order() {
    needs!(redis);
    for how in WAYS {
        let redis = RedisServer::start();
        let gate = Gate::open();
        let locks = LockManager::connect(&redis.url()).await.expect("a manager");
        let key = "pay:<header.x-user-id>:<json./sku>";
        let layer = LockLayer::body_template(locks.clone(), key, 1024).expect("a template");
        let layer = layer.acquire_timeout(wait::PATIENCE);
        let entered = gate.clone();
        let create = move || async move { entered.pass(None).await };
        let app = Router::new().route("/pay", post(create)).route_layer(layer);
        let server = Server::serve(locks, app).await;
        let headers = [("x-user-id", "42"), ("content-type", "application/json")];
        let client = how
            .begin(&server, "/pay", &headers, r#"{"sku":"#, 100)
            .await;
        redis.reset_stats();
        // Half of the body is on its way or has arrived. Both cases have the same outcome.
        let rest = client.leave();
        drop(rest);
        let next = super::client::Version::Http1
            .request(&server, "POST", "/pay", &headers, r#"{"sku":"mug"}"#)
            .await;
        assert_eq!(next.status, 200, "{how:?}: {next:?}");
        assert_eq!(gate.counts(), (1, 1), "{how:?}");
        nothing_is_left(&redis, &[&server]).await;
    }
}

#[tokio::test]
async fn the_key_of_a_dropped_handler_is_free_or_kept_for_the_ttl_as_configured() {
    needs!(redis);
    for how in WAYS {
        for told in [Disconnect::Release, Disconnect::HoldUntilTtl] {
            let redis = RedisServer::start();
            let gate = Gate::closed();
            let locks = LockManager::connect(&redis.url()).await.expect("a manager");
            let ttl = Duration::from_secs(50);
            let layer = layer(&locks).ttl(ttl).on_disconnect(told);
            let server = Server::start(locks, layer, &gate).await;
            let other = server_on(&redis, &gate).await;
            let client = how.click(&server, "42").await;
            gate.entered(1).await;
            let rest = client.leave();
            server.left(1).await;
            let left = server.locks().drain(wait::PATIENCE).await;
            assert!(left.is_complete(), "{left:?}");
            drop(rest);

            gate.let_through(1);
            let next = click(&other, "42").await;
            match told {
                Disconnect::Release => assert_eq!(next.status, 201, "{how:?}"),
                _ => {
                    assert_eq!(next.status, 409, "{how:?}");
                    assert_eq!(code(&next), "lock_cooling_down");
                    let left = redis.time_to_live(&key("42")).expect("kept");
                    assert!(left > ttl / 2 && left <= ttl, "{left:?}");
                }
            }
            // The first handler was dropped at the gate.
            let ended = usize::from(told == Disconnect::Release);
            assert_eq!(gate.counts(), (1 + ended, ended), "{how:?}");
        }
    }
}
