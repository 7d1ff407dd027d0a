//! Tests a lock that goes from task to task of one process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Renew, Wait};
use lock_tests::wait;
use tokio::time::timeout;

use super::waiting::told;
use super::{Fixture, kind, long, short};
use crate::steps::{Waiter, drains, its_turn};

/// Starts a waiter, which is in the queue of its process when this returns. Tasks of one thread
/// run in order.
async fn waits(locks: &LockManager) -> Waiter {
    let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
    let waiter = tokio::spawn(request.acquire());
    tokio::task::yield_now().await;
    waiter
}

pub(super) async fn each_owner_has_a_window_and_a_token_of_its_own(store: &Fixture) {
    let locks = store.manager().await;
    let first = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = waits(&locks).await;
    let before = first.handle();
    first.release().await.expect("held");
    let second = told(waiter).await.expect("no panic").expect("its turn");
    assert!(second.is_valid());
    assert!(!before.is_valid(), "the first owner's window is over");
    assert_eq!(before.remaining(), Duration::ZERO);
    assert!(second.fencing_token() > before.fencing_token());
    assert_eq!(locks.held().len(), 1);
    second.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn the_loss_reaches_the_owner_and_not_its_predecessor(store: &Fixture) {
    let locks = store.manager().await;
    let request = || locks.lock("k").ttl(short()).wait(Wait::Forever);
    let first = request().acquire().await.expect("free");
    let waiter = tokio::spawn(request().acquire());
    tokio::task::yield_now().await;
    let before = first.handle();
    first.release().await.expect("held");
    let second = its_turn(waiter).await;
    store.delete("k");
    timeout(wait::PATIENCE, second.lost()).await.expect("lost");
    assert_eq!(kind(second.release().await), ErrorKind::Lost);
    let never = timeout(Duration::from_millis(20), before.lost()).await;
    assert!(
        never.is_err(),
        "the predecessor released its lock before the loss"
    );
}

pub(super) async fn a_lease_that_was_passed_on_is_still_renewed(store: &Fixture) {
    let locks = store.manager().await;
    let ttl = store.renewable();
    let request = || locks.lock("k").ttl(ttl).wait(Wait::Forever);
    let first = request().acquire().await.expect("free");
    let waiter = tokio::spawn(request().acquire());
    tokio::task::yield_now().await;
    first.release().await.expect("held");
    let second = its_turn(waiter).await;
    tokio::time::sleep(ttl * 2).await;
    assert!(second.is_valid());
    second.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_waiter_that_is_aborted_when_it_is_given_the_lock_passes_it_on(
    store: &Fixture,
) {
    let locks = store.manager().await;
    let first = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let gone = waits(&locks).await;
    let next = waits(&locks).await;
    // The waiter is given the lock, and is aborted before it has run again.
    drop(first);
    gone.abort();
    assert!(gone.await.is_err_and(|error| error.is_cancelled()));
    its_turn(next).await.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn the_last_waiter_that_is_aborted_leaves_the_lock_free(store: &Fixture) {
    let locks = store.manager().await;
    let first = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let gone = waits(&locks).await;
    drop(first);
    gone.abort();
    assert!(gone.await.is_err_and(|error| error.is_cancelled()));
    drains(&locks).await;
    store.is_left_clean().await;
}

pub(super) async fn a_lease_with_a_cooldown_is_not_passed_on(store: &Fixture) {
    let locks = store.manager().await;
    let first = locks.lock("k").ttl(long()).cooldown(long());
    let first = first.acquire().await.expect("free");
    let waiter = locks.lock("k").ttl(long()).wait(Duration::from_millis(100));
    let waiter = tokio::spawn(waiter.acquire());
    tokio::task::yield_now().await;
    first.release().await.expect("held");
    let refused = waiter
        .await
        .expect("no panic")
        .expect_err("the lock cools down");
    assert_eq!(refused.kind(), ErrorKind::Busy);
}

pub(super) async fn a_lease_of_another_length_is_not_passed_on(store: &Fixture) {
    let locks = store.manager().await;
    for (ttl, renew) in [(short(), Renew::Auto), (long(), Renew::Off)] {
        let first = locks.lock("k").ttl(long()).acquire().await.expect("free");
        let request = locks.lock("k").ttl(ttl).renew(renew).wait(Wait::Forever);
        let waiter = tokio::spawn(request.acquire());
        tokio::task::yield_now().await;
        first.release().await.expect("held");
        let second = told(waiter).await.expect("no panic").expect("its turn");
        assert!(
            second.remaining() <= ttl,
            "the second lease has a ttl of its own"
        );
        second.release().await.expect("held");
    }
    store.is_left_clean().await;
}

pub(super) async fn while_no_other_process_waits_a_lease_stays_in_its_process(store: &Fixture) {
    let locks = store.manager().await;
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let task = |_| {
        let (locks, tokens) = (locks.clone(), Arc::clone(&tokens));
        tokio::spawn(async move {
            let request = || locks.lock("k").ttl(long()).wait(Wait::Forever);
            // The loop ends when the manager is drained.
            while let Ok(guard) = request().acquire().await {
                let token = u64::from(guard.fencing_token());
                tokens.lock().expect("no panic").push(token);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    };
    let tasks: Vec<_> = (0..8).map(task).collect();
    // Tokens rise by one while a lease is passed on. A released lease gets its next token from
    // the store. A cohort has 32 passes while another process waits.
    let longest_run = || {
        let tokens = tokens.lock().expect("no panic");
        let (mut run, mut longest) = (0, 0);
        for pair in tokens.windows(2) {
            run = if pair[1] == pair[0] + 1 { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        longest
    };
    let wanted = if store.has_long_cohorts() { 64 } else { 4 };
    wait::eventually("a lease is passed on again and again", async || {
        longest_run() > wanted
    })
    .await;
    assert!(store.has_long_cohorts() || longest_run() <= 32);
    drains(&locks).await;
    for task in tasks {
        task.await.expect("no panic");
    }
    store.is_left_clean().await;
}

pub(super) async fn no_process_starves_behind_the_tasks_of_another(store: &Fixture) {
    let (busy, other) = (store.manager().await, store.manager().await);
    let done = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (locks, done) = (busy.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                while !done.load(Ordering::SeqCst) {
                    let guard = locks.lock("k").ttl(long()).wait(Wait::Forever).acquire();
                    drop(guard.await.expect("its turn"));
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for _ in 0..10 {
        let waiter = tokio::spawn(other.lock("k").ttl(long()).wait(Wait::Forever).acquire());
        its_turn(waiter).await.release().await.expect("held");
    }
    done.store(true, Ordering::SeqCst);
    for task in tasks {
        task.await.expect("no panic");
    }
    busy.drain(wait::PATIENCE).await;
    store.is_left_clean().await;
}
