//! Tests the service on a real socket.

use std::net::SocketAddr;

use super::*;

#[path = "../client.rs"]
mod client;

use client::{post, post_without_reading};

/// Serves until the test ends.
fn serve(locks: &LockManager, bank: &Data<Bank>) -> SocketAddr {
    let (locks, bank) = (locks.clone(), bank.clone());
    let app = move || {
        let routes = routes(locks.clone());
        App::new().app_data(bank.clone()).configure(routes)
    };
    let server = HttpServer::new(app).workers(2).disable_signals();
    let server = server.bind(("127.0.0.1", 0)).unwrap();
    let address = server.addrs()[0];
    tokio::spawn(server.run());
    address
}

fn bank(takes: Duration) -> Data<Bank> {
    Data::new(Bank::new(takes))
}

async fn is_held(locks: &LockManager) {
    while locks.held().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_payout_is_paid_once_and_an_immediate_repetition_is_refused() {
    let bank = bank(Duration::ZERO);
    let server = serve(&LockManager::in_memory(), &bank);
    let first = post(server, "/payouts/7", None).await;
    assert_eq!((first.status, &*first.text), (201, "payout 1"));
    let second = post(server, "/payouts/7", None).await;
    assert_eq!((second.status, &*second.text), (409, "lock_cooling_down"));
    assert_eq!(second.retry_after.as_deref(), Some("2"));
    let other = post(server, "/payouts/8", None).await;
    assert_eq!((other.status, &*other.text), (201, "payout 2"));
}

#[tokio::test]
async fn a_payout_that_overlaps_with_another_is_refused() {
    let locks = LockManager::in_memory();
    let server = serve(&locks, &bank(Duration::from_secs(3600)));
    let _first = post_without_reading(server, "/payouts/7").await;
    is_held(&locks).await;
    let second = post(server, "/payouts/7", None).await;
    assert_eq!((second.status, &*second.text), (409, "lock_busy"));
    assert_eq!(second.retry_after.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_payout_ends_though_its_client_has_gone() {
    let locks = LockManager::in_memory();
    let bank = bank(Duration::from_millis(50));
    let server = serve(&locks, &bank);
    let client = post_without_reading(server, "/payouts/7").await;
    is_held(&locks).await;
    drop(client);
    let left = locks.drain(LAST_WORK).await;
    assert!(left.is_complete(), "{left:?}");
    assert_eq!(bank.paid.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_report_holds_its_lock_after_the_answer() {
    let locks = LockManager::in_memory();
    let server = serve(&locks, &bank(Duration::from_secs(3600)));
    assert_eq!(post(server, "/reports/7", None).await.status, 202);
    assert_eq!(locks.held().len(), 1);
    assert_eq!(post(server, "/reports/7", None).await.status, 200);
    assert_eq!(post(server, "/reports/8", None).await.status, 202);
    assert_eq!(locks.held().len(), 2);
}

#[tokio::test]
async fn a_service_that_shuts_down_answers_with_503() {
    let locks = LockManager::in_memory();
    let server = serve(&locks, &bank(Duration::ZERO));
    locks.drain(LAST_WORK).await;
    let refused = post(server, "/payouts/7", None).await;
    assert_eq!((refused.status, &*refused.text), (503, "lock_unavailable"));
    assert_eq!(refused.retry_after.as_deref(), Some("1"));
}
