//! Tests an acquire that is sent again after a broken connection.
//!
//! A proxy delivers the first copy later.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager};
use lock_tests::{Direction, Proxy, needs, wait};

use super::{keys, kind, long, proxied};

/// Sends an acquire of `k` whose first copy stays in the proxy.
///
/// Returns the answer to the second copy.
async fn sent_twice(
    proxy: &Proxy,
    locks: &LockManager,
) -> Result<lock_core::LockGuard, lock_core::Error> {
    proxy.freeze();
    let before = proxy.held(Direction::Requests);
    let acquire = tokio::spawn(locks.lock("k").ttl(long()).acquire());
    wait::eventually("the first copy is in the proxy", async || {
        proxy.held(Direction::Requests) > before
    })
    .await;
    proxy.outlive_clients();
    acquire.await.expect("no panic")
}

/// Otherwise a late copy of the acquire and then one of the swap would make the ticket anew, after its use.
#[tokio::test]
async fn a_lock_that_was_asked_for_twice_is_passed_on_by_no_ticket_that_was_asked_for_twice() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    let guard = sent_twice(&proxy, &locks).await.expect("granted");
    let copies = proxy.held(Direction::Requests);
    proxy.freeze();
    let ticket = tokio::spawn(async move { guard.ticket(long()).await.map(drop) });
    wait::eventually("the first copy of the swap is in the proxy", async || {
        proxy.held(Direction::Requests) > copies
    })
    .await;
    proxy.outlive_clients();
    assert_eq!(
        kind(ticket.await.expect("no panic")),
        ErrorKind::Unavailable
    );
    wait::eventually("the lock is given back", async || keys(&server).is_empty()).await;
}
