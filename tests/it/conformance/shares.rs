//! Offers the requests and the waits that the tests of readers and permits share.

use lock_core::{LockGuard, LockManager, LockRequest, Wait};
use lock_tests::wait;

use super::{Fixture, long};
use crate::steps::Waiter;

pub(super) fn reader(locks: &LockManager) -> LockRequest {
    locks.lock("k").ttl(long()).read()
}

pub(super) fn permit(locks: &LockManager, count: u32) -> LockRequest {
    locks.lock("k").ttl(long()).permits(count)
}

pub(super) fn writer(locks: &LockManager) -> LockRequest {
    locks.lock("k").ttl(long())
}

pub(super) async fn entered(request: LockRequest) -> LockGuard {
    // Unlike `try_acquire`, the error says for what it is refused.
    let entered = request.wait(Wait::None).acquire().await;
    entered.expect("there is room")
}

pub(super) async fn refused(request: LockRequest) {
    let refused = request.try_acquire().await.expect("an answer");
    assert!(refused.is_none(), "there is no room");
}

/// Starts a task that waits, and returns when it stands in the store's queue as the `place`-th.
pub(super) async fn waits(store: &Fixture, request: LockRequest, place: usize) -> Waiter {
    let waiter = tokio::spawn(request.wait(Wait::Forever).acquire());
    let stands = async || store.waiting() == place;
    wait::eventually("the waiter stands in the queue", stands).await;
    waiter
}
