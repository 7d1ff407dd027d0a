//! Bodies by a clock that the test moves.

use std::future::pending;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::base::machine::timeout;
use crate::base::manual_clock::ManualClock;
use crate::{LockManager, OnLost, Renew};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_body_that_goes_on_after_a_loss_is_dropped_when_its_max_hold_is_over() {
    let clock = ManualClock::new();
    let builder = LockManager::builder("memory:").clock(clock.clone());
    let locks = builder.connect().await.expect("a manager");
    let request = locks.lock("k").ttl(SECOND).renew(Renew::Off);
    let request = request.on_lost(OnLost::Ignore).max_hold(5 * SECOND);
    let (begins, begun) = oneshot::channel();
    let run = tokio::spawn(request.run_with(|_| {
        begins.send(()).expect("the test waits");
        pending::<()>()
    }));
    begun.await.expect("the body begins");
    // The lock is lost long before the body has to end.
    clock.advance(2 * SECOND);
    clock.advance(4 * SECOND);
    let ended = timeout(10 * SECOND, run).await.expect("it is dropped");
    assert!(ended.expect("no panic").unwrap_err().is_max_hold());
}

/// A leader's lock is held for days, and calls with a timeout enter it all the time.
#[tokio::test]
async fn a_body_that_entered_a_lock_and_was_dropped_leaves_no_waker_there() {
    let locks = LockManager::in_memory();
    let outer = locks.lock("k").acquire().await.expect("free");
    for _ in 0..10 {
        let nested = outer.scope(locks.lock("k").run(pending::<()>()));
        assert!(timeout(Duration::from_millis(1), nested).await.is_err());
        let limited = locks.lock("k").max_hold(Duration::from_millis(1));
        let ended = outer.scope(limited.run(pending::<()>())).await;
        assert!(ended.unwrap_err().is_max_hold());
    }
    assert_eq!(outer.lease.take_wakers(), 0);
    assert!(outer.is_valid());
}
