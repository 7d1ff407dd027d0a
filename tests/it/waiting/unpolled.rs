//! Tests waiters that are not polled while their store is out, or hangs.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::wait;
use tokio::time::timeout;

use super::millis;

/// Polls the future once and checks that it is pending.
async fn polled<F: Future>(future: &mut Pin<&mut F>) {
    let pending = poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await;
    assert!(pending, "the future is pending");
}

#[tokio::test]
async fn a_pause_after_a_failure_that_is_not_polled_blocks_no_caller() {
    let locks = LockManager::in_memory();
    let store = locks.test_store().expect("an embedded store");
    store.fail(ErrorKind::Unavailable);
    let mut waiter = pin!(locks.lock("k").wait(Wait::Forever).acquire());
    polled(&mut waiter).await;
    store.recover();
    let attempt = timeout(wait::PATIENCE, locks.lock("k").try_acquire()).await;
    let guard = attempt.expect("at once").expect("the store answers");
    drop(guard.expect("the lock is free"));
    drop(timeout(wait::PATIENCE, waiter).await.expect("its turn"));
}

#[tokio::test]
async fn a_request_to_a_store_that_hung_blocks_no_caller_when_it_is_not_polled() {
    let builder = LockManager::builder("memory:").operation_timeout(millis(5_000));
    let locks = builder.connect().await.expect("a manager");
    let store = locks.test_store().expect("an embedded store");
    store.hang();
    let mut question = pin!(locks.lock("k").wait(Wait::Forever).acquire());
    polled(&mut question).await;
    store.recover();
    let attempt = locks.lock("k").try_acquire().await;
    drop(
        attempt
            .expect("the store answers")
            .expect("the lock is free"),
    );
    drop(timeout(wait::PATIENCE, question).await.expect("its turn"));
}
