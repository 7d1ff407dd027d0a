//! Tests the answers of a ping while servers stop, die and withdraw rights.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use lock_core::{ErrorKind, LockManager};
use lock_tests::{RedisServer, needs, wait};

use super::{kind, long, taken};

async fn impatient(url: &str) -> LockManager {
    let builder = LockManager::builder(url).operation_timeout(Duration::from_millis(500));
    builder.connect().await.expect("a manager")
}

async fn is_ready_again(locks: &LockManager) {
    wait::eventually("the store answers again", async || {
        locks.ping().await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_stopped_server_is_unavailable_until_it_goes_on() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = impatient(&server.url()).await;
    locks.ping().await.expect("a server that answers");
    server.stop();
    assert_eq!(kind(locks.ping().await), ErrorKind::Unavailable);
    assert_eq!(kind(locks.ping().await), ErrorKind::Unavailable);
    server.cont();
    is_ready_again(&locks).await;
}

#[tokio::test]
async fn a_killed_server_is_unavailable_until_another_one_has_its_place() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = impatient(&server.url()).await;
    server.kill();
    assert_eq!(kind(locks.ping().await), ErrorKind::Unavailable);
    assert_eq!(kind(locks.ping().await), ErrorKind::Unavailable);
    server.start_again();
    is_ready_again(&locks).await;
}

#[tokio::test]
async fn a_right_that_is_withdrawn_later_is_named() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = impatient(&server.url()).await;
    server.cli(&["ACL", "SETUSER", "default", "-zadd"]);
    let error = locks.ping().await.expect_err("a right is missing");
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("ZADD"), "{error}");
    server.cli(&["ACL", "SETUSER", "default", "+zadd"]);
    locks.ping().await.expect("all rights");
}

#[tokio::test]
async fn a_ping_that_is_dropped_disturbs_no_lock() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = impatient(&server.url()).await;
    let guard = taken(&locks, "k", long()).await;
    for _ in 0..100 {
        let mut ping = pin!(locks.ping());
        poll_fn(|context| Poll::Ready(ping.as_mut().poll(context).is_ready())).await;
    }
    locks.ping().await.expect("a server that answers");
    guard.release().await.expect("held");
}
