//! Clients that go away in the middle.

use std::net::Shutdown;

use lock_core::LockManager;
use lock_tests::http;
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Gate, Server, click, key, layer, nothing_is_left, server_on};

/// A click whose client can leave.
async fn send(server: &Server, user: &str) -> TcpStream {
    let port = server.port();
    let address = ("127.0.0.1", port);
    let mut client = TcpStream::connect(address).await.expect("it listens");
    let text = http::encode(port, "POST", "/orders", &[("x-user-id", user)], "");
    client.write_all(text.as_bytes()).await.expect("it reads");
    client
}

#[derive(Clone, Copy, Debug)]
enum Leaves {
    WithFin,
    WithReset,
    HalfClosed,
}

/// What is left of the client: a half-closed one can still read.
fn leave(client: TcpStream, how: Leaves) -> Option<TcpStream> {
    match how {
        Leaves::WithFin => None,
        Leaves::WithReset => {
            client.set_zero_linger().expect("a socket");
            None
        }
        Leaves::HalfClosed => {
            let client = client.into_std().expect("a socket");
            client.shutdown(Shutdown::Write).expect("connected");
            Some(TcpStream::from_std(client).expect("a runtime"))
        }
    }
}

#[tokio::test]
async fn the_order_of_a_client_that_left_is_made_once_and_its_lock_released() {
    needs!(redis);
    for how in [Leaves::WithFin, Leaves::WithReset, Leaves::HalfClosed] {
        let redis = RedisServer::start();
        let gate = Gate::closed();
        let (here, there) = (
            server_on(&redis, &gate).await,
            server_on(&redis, &gate).await,
        );
        let client = send(&here, "42").await;
        let lock = gate.entered(1).await;
        let rest = leave(client, how);

        // The server has noticed when it closes its side; of a reset there is nothing to see.
        if let Some(mut rest) = rest {
            let mut nothing = Vec::new();
            rest.read_to_end(&mut nothing).await.expect("closed");
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
    let ttl = std::time::Duration::from_millis(600);
    let server = Server::start(locks.clone(), layer(&locks).ttl(ttl), &gate).await;
    let client = send(&server, "42").await;
    let lock = gate.entered(1).await;
    drop(client);
    let start = std::time::Instant::now();
    wait::eventually("three ttls have passed", async || {
        assert!(lock.is_valid(), "it is renewed while the handler runs");
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
    for how in [Leaves::WithFin, Leaves::WithReset] {
        let redis = RedisServer::start();
        let proxy = Proxy::to(redis.address());
        let gate = Gate::open();
        let builder = LockManager::builder(&proxy.redis_url());
        let locks = builder.connect().await.expect("a manager");
        // Nobody but the client ends this acquire.
        let layer = layer(&locks).acquire_timeout(wait::PATIENCE);
        let server = Server::start(locks, layer, &gate).await;
        for user in ["warm", "warmer"] {
            assert_eq!(click(&server, user).await.status, 201);
        }
        proxy.set(Direction::Replies, Flow::Hold);
        let client = send(&server, "42").await;
        wait::eventually("Redis has granted it", async || {
            redis.get(&key("42")).is_some()
        })
        .await;
        let rest = leave(client, how);
        // The grant is undone, by a request whose answer is held back like the grant's own.
        wait::eventually("it is taken back", async || redis.get(&key("42")).is_none()).await;
        drop(rest);
        proxy.pass();
        assert_eq!(gate.counts(), (2, 2), "{how:?}");
        assert_eq!(click(&server, "42").await.status, 201);
        nothing_is_left(&redis, &[&server]).await;
    }
}
