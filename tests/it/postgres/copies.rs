//! Tests acquires and renewals that reach the server late, because the network has held them.

use std::time::Duration;

use lock_core::LockManager;
use lock_tests::{Direction, Proxy, SqlServer, needs, wait};

use super::table::row;
use super::{DEFAULT, long, manager, table, taken};
use crate::steps::{OUTLIVED, drains, once};

/// The time after which a copy of an acquire refuses itself, and more.
const LATE: Duration = Duration::from_secs(5);

/// Sends an acquire of `k` whose first copy stays in the proxy, and then releases the lock. Returns its manager.
async fn leaves_a_copy(proxy: &Proxy, url: &str) -> LockManager {
    let locks = manager(url).await;
    once(&locks, "warm").await;
    proxy.freeze();
    let before = proxy.held(Direction::Requests);
    let acquire = tokio::spawn(locks.lock("k").ttl(long()).acquire());
    wait::eventually("the first copy is in the proxy", async || {
        proxy.held(Direction::Requests) > before
    })
    .await;
    proxy.outlive_clients();
    // The manager may send the acquire again, or say that the server has not answered.
    if let Ok(guard) = acquire.await.expect("no panic") {
        guard.release().await.expect("held");
    }
    locks
}

async fn arrives(proxy: &Proxy) {
    proxy.thaw();
    wait::eventually("the copy arrives", async || {
        proxy.held(Direction::Requests) == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_an_acquire_that_arrives_after_five_seconds_takes_no_lock() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let proxy = Proxy::to(server.address());
    let locks = leaves_a_copy(&proxy, &server.url_through(&proxy)).await;
    let table = table(&server);
    table.is_clean().await;
    tokio::time::sleep(LATE).await;
    // Nothing is left to undo the copy.
    locks.drain(wait::PATIENCE).await;
    drop(locks);
    arrives(&proxy).await;
    // A test cannot prove that no lock ever comes, so it watches for a while.
    let comes = tokio::task::block_in_place(|| {
        wait::holds_within(Duration::from_secs(1), || table.taken() > 0)
    });
    assert!(!comes, "a late copy has taken the key");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_an_acquire_that_arrives_in_time_is_undone() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let proxy = Proxy::to(server.address());
    let locks = leaves_a_copy(&proxy, &server.url_through(&proxy)).await;
    arrives(&proxy).await;
    drains(&locks).await;
    table(&server).is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_that_arrives_behind_the_end_of_the_lease_makes_no_new_one() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let proxy = Proxy::to(server.address());
    let locks = manager(&server.url_through(&proxy)).await;
    let guard = taken(&locks, "k", OUTLIVED).await;
    proxy.freeze();
    let before = proxy.held(Direction::Requests);
    wait::eventually("the renewal is in the proxy", async || {
        proxy.held(Direction::Requests) > before
    })
    .await;
    let table = table(&server);
    wait::eventually("the lease is over", async || table.ends("k").is_none()).await;
    let key = row(DEFAULT, "k");
    let written = format!("SELECT rev FROM lockkit.cell WHERE key = {key}");
    let last = server.value(&written);
    arrives(&proxy).await;
    drop(guard);
    drains(&locks).await;
    assert_eq!(server.value(&written), last);
}
