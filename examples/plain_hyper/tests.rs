//! Tests the service behind its layer, on a real socket.

use std::net::SocketAddr;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;

#[path = "../client.rs"]
mod client;

use client::{post, post_without_reading};

/// A running server, and the sender that stops it.
struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

async fn start(locks: &LockManager, time_of_the_bank: Duration) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async move {
        let _ = stopped.await;
    };
    let layer = one_order(locks.clone()).unwrap();
    let server = tokio::spawn(serve(listener, layer, time_of_the_bank, stopped));
    Running {
        address,
        stop,
        server,
    }
}

async fn is_held(locks: &LockManager) {
    while locks.held().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_order_is_taken_and_an_immediate_repetition_is_refused() {
    let server = start(&LockManager::in_memory(), Duration::ZERO).await;
    let first = post(server.address, "/orders", Some("ada")).await;
    assert_eq!(first.status, 200);
    assert!(first.text.starts_with("an order under fencing token "));
    let second = post(server.address, "/orders", Some("ada")).await;
    assert_eq!(second.status, 409);
    assert_eq!(second.retry_after.as_deref(), Some("2"));
    assert!(second.text.contains("lock_cooling_down"), "{}", second.text);
    let other = post(server.address, "/orders", Some("bob")).await;
    assert_eq!(other.status, 200);
}

#[tokio::test]
async fn an_order_without_a_user_is_a_bad_request() {
    let server = start(&LockManager::in_memory(), Duration::ZERO).await;
    assert_eq!(post(server.address, "/orders", None).await.status, 400);
}

#[tokio::test]
async fn an_order_ends_though_its_client_has_gone() {
    let locks = LockManager::in_memory();
    let server = start(&locks, Duration::from_millis(50)).await;
    let client = post_without_reading(server.address, "/orders").await;
    is_held(&locks).await;
    drop(client);
    let left = locks.drain(LAST_ORDERS).await;
    assert!(left.is_complete(), "{left:?}");
}

#[tokio::test]
async fn a_server_that_stops_answers_the_order_that_is_under_way() {
    let locks = LockManager::in_memory();
    let server = start(&locks, Duration::from_millis(50)).await;
    let address = server.address;
    let order = tokio::spawn(async move { post(address, "/orders", Some("ada")).await });
    is_held(&locks).await;
    server.stop.send(()).unwrap();
    server.server.await.unwrap();
    assert_eq!(order.await.unwrap().status, 200);
}
