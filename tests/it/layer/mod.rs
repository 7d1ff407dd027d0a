//! Tests the layer on a real Redis: the effects that only real servers, sockets and processes
//! have.

mod blocking;
mod client;
mod covered;
mod disconnects;
mod duplicates;
mod outages;
mod processes;
mod replay;
mod server;
mod soak;
mod sources;
mod trips;

use std::time::Duration;

use lock_core::LockManager;
use lock_tests::http::Response;
use lock_tests::{RedisServer, wait};
use lock_tower::LockLayer;

use crate::steps::drains;
use client::Version;
use server::{Gate, Server};

/// Sends one user's click on "place the order".
async fn click(server: &Server, user: &str) -> Response {
    Version::Http1.click(server, user).await
}

/// Returns the layer with its default time limits, for the tests of outages.
fn hasty_layer(locks: &LockManager) -> LockLayer {
    let key = "submit:<header.x-user-id>:<method>:<route>";
    LockLayer::template(locks.clone(), key).expect("a template")
}

/// Returns the layer for all other tests, which a slow machine does not fail.
fn layer(locks: &LockManager) -> LockLayer {
    hasty_layer(locks).acquire_timeout(wait::PATIENCE)
}

/// Returns the key of one user's click in Redis.
fn key(user: &str) -> String {
    format!("lockkit:submit:{user}:POST:/orders")
}

/// Starts a server of the service with a manager of its own, as another process would have.
async fn server_on(redis: &RedisServer, gate: &Gate) -> Server {
    let locks = LockManager::connect(&redis.url()).await.expect("a manager");
    Server::start(locks.clone(), layer(&locks), gate).await
}

/// Waits until releases in the background have ended, and checks that Redis keeps no key.
async fn nothing_is_left(redis: &RedisServer, servers: &[&Server]) {
    for server in servers {
        drains(server.locks()).await;
    }
    let mut keys = redis.keys();
    keys.retain(|key| key != "lockkit:!f");
    assert_eq!(keys, Vec::<String>::new());
}

/// Checks for a 503 with a detail and a `Retry-After`, because the state of the lock is
/// unknown.
#[track_caller]
fn assert_unavailable(answer: &Response) {
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(crate::shop::code(answer), "lock_unavailable");
    assert!(crate::shop::retry_after(answer) >= 1);
}

/// A time far above the layer's two timeouts of 250 ms together, and far below any ttl.
const BOUNDED: Duration = Duration::from_secs(2);
