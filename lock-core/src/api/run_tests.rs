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
