//! Tests waiters and the push that tells them that it is their turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::{ErrorKind, LockGuard, Wait};
use lock_tests::wait;
use tokio::time::timeout;

use super::{Fixture, kind, long};

/// Waits for less than any time after which a waiter asks by itself, so that only a push can end the
/// wait.
pub(super) async fn told<T>(future: impl Future<Output = T>) -> T {
    let soon = timeout(Duration::from_secs(3), future).await;
    soon.expect("told of the release")
}

/// Waits for one of many waiters, whose turn may take a while.
async fn served<T>(future: impl Future<Output = T>) -> T {
    timeout(wait::PATIENCE, future)
        .await
        .expect("its turn comes")
}

async fn queued(store: &Fixture, count: usize) {
    wait::eventually("the waiters are queued", async || store.waiting() == count).await;
}

pub(super) async fn tasks_of_one_manager_are_served_in_the_order_of_their_arrival(store: &Fixture) {
    let locks = store.manager().await;
    let first = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for index in 0..20 {
        let order = Arc::clone(&order);
        let body = async move {
            order.lock().expect("no panic").push(index);
            tokio::task::yield_now().await;
        };
        tasks.push(tokio::spawn(locks.lock("k").wait(Wait::Forever).run(body)));
        // The task is polled once before the next one starts, because the runtime has one thread.
        tokio::task::yield_now().await;
    }
    first.release().await.expect("held");
    for task in tasks {
        served(task).await.expect("no panic").expect("its turn");
    }
    assert_eq!(
        *order.lock().expect("no panic"),
        (0..20).collect::<Vec<_>>()
    );
}

pub(super) async fn a_waiter_of_another_manager_is_told_of_the_release(store: &Fixture) {
    for _ in 0..10 {
        let first = store.lock("k").await.acquire().await.expect("free");
        let waiter = tokio::spawn(store.lock("k").await.wait(Wait::Forever).acquire());
        queued(store, 1).await;
        first.release().await.expect("held");
        let second = told(waiter).await.expect("no panic").expect("its turn");
        second.release().await.expect("held");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_waiter_of_another_manager_is_told_of_a_release_in_the_background(
    store: &Fixture,
) {
    let first = store.lock("k").await.acquire().await.expect("free");
    let waiter = tokio::spawn(store.lock("k").await.wait(Wait::Forever).acquire());
    queued(store, 1).await;
    drop(first);
    drop(told(waiter).await.expect("no panic").expect("its turn"));
}

pub(super) async fn all_waiters_of_two_managers_get_the_lock(store: &Fixture) {
    let managers = [store.manager().await, store.manager().await];
    let first = managers[0]
        .lock("k")
        .ttl(long())
        .acquire()
        .await
        .expect("free");
    let tasks: Vec<_> = (0..40)
        .map(|index| {
            let request = managers[index % 2]
                .lock("k")
                .ttl(long())
                .wait(Wait::Forever);
            tokio::spawn(request.run(tokio::task::yield_now()))
        })
        .collect();
    // The first manager's own waiters queue behind its own lock, and not in the store.
    queued(store, 1).await;
    first.release().await.expect("held");
    for task in tasks {
        served(task).await.expect("no panic").expect("its turn");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_cancelled_waiter_leaves_nothing_and_blocks_no_other(store: &Fixture) {
    let locks = store.manager().await;
    let first = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let gone: Vec<_> = (0..3)
        .map(|_| tokio::spawn(locks.lock("k").wait(Wait::Forever).acquire()))
        .collect();
    tokio::task::yield_now().await;
    let stays = tokio::spawn(locks.lock("k").wait(Wait::Forever).acquire());
    tokio::task::yield_now().await;
    for task in gone {
        task.abort();
        assert!(task.await.expect_err("aborted").is_cancelled());
    }
    first.release().await.expect("held");
    let guard = told(stays).await.expect("no panic").expect("its turn");
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_cancelled_first_waiter_of_another_manager_blocks_no_other(store: &Fixture) {
    let first = store.lock("k").await.acquire().await.expect("free");
    let head_manager = store.manager().await;
    let head = tokio::spawn(head_manager.lock("k").wait(Wait::Forever).acquire());
    queued(store, 1).await;
    let second = tokio::spawn(store.lock("k").await.wait(Wait::Forever).acquire());
    queued(store, 2).await;
    head.abort();
    let _ = head.await;
    first.release().await.expect("held");
    let guard = told(second).await.expect("no panic").expect("its turn");
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_waiter_cancelled_at_the_moment_of_its_grant_passes_the_lock_on(
    store: &Fixture,
) {
    let (one, other) = (store.manager().await, store.manager().await);
    for round in 0..30 {
        let first = store.lock("k").await.acquire().await.expect("free");
        let doomed = tokio::spawn(one.lock("k").ttl(long()).wait(Wait::Forever).acquire());
        queued(store, 1).await;
        let last = tokio::spawn(other.lock("k").ttl(long()).wait(Wait::Forever).acquire());
        queued(store, 2).await;
        first.release_in_background();
        // The abort comes between the push and the grant, at another point in every round.
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        doomed.abort();
        let doomed = doomed.await;
        drop(doomed);
        // The machine may be busy in one of the rounds. A cancelled waiter that kept the lock would keep it
        // for a minute.
        let guard = served(last).await.expect("no panic").expect("its turn");
        guard.release().await.expect("held");
    }
    store.is_left_clean().await;
}

async fn a_thousand(store: &Fixture) -> Vec<tokio::task::JoinHandle<Result<(), lock_core::Error>>> {
    let mut managers = Vec::new();
    for _ in 0..4 {
        managers.push(store.manager().await);
    }
    let waiters = (0..1000).map(|index| {
        let request = managers[index % 4]
            .lock("k")
            .ttl(long())
            .wait(Wait::Forever);
        tokio::spawn(request.run(std::future::ready(())))
    });
    waiters.collect()
}

pub(super) async fn a_thousand_waiters_get_the_lock(store: &Fixture) {
    let first = store.lock("k").await.acquire().await.expect("free");
    let waiters = a_thousand(store).await;
    queued(store, 4).await;
    first.release().await.expect("held");
    for waiter in waiters {
        served(waiter).await.expect("no panic").expect("its turn");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_thousand_cancelled_waiters_leave_nothing(store: &Fixture) {
    let first = store.lock("k").await.acquire().await.expect("free");
    let waiters = a_thousand(store).await;
    queued(store, 4).await;
    for waiter in &waiters {
        waiter.abort();
    }
    for waiter in waiters {
        assert!(waiter.await.expect_err("aborted").is_cancelled());
    }
    wait::eventually("the queue is empty", async || store.waiting() == 0).await;
    assert_eq!(store.taken(), 1);
    first.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_caller_that_does_not_wait_gets_busy_while_others_wait(store: &Fixture) {
    let first = store.lock("k").await.acquire().await.expect("free");
    let locks = store.manager().await;
    let waiter = tokio::spawn(locks.lock("k").wait(Wait::Forever).acquire());
    for _ in 0..5 {
        assert_eq!(kind(locks.lock("k").acquire().await), ErrorKind::Busy);
        tokio::task::yield_now().await;
    }
    first.release().await.expect("held");
    drop(told(waiter).await.expect("no panic").expect("its turn"));
}

pub(super) async fn a_waiter_is_not_starved_by_another_manager_that_takes_the_lock_again_at_once(
    store: &Fixture,
) {
    served_while(store, async |guard| guard.release().await.expect("held")).await;
}

pub(super) async fn a_waiter_is_not_starved_by_a_manager_that_drops_its_guards(store: &Fixture) {
    served_while(store, async |guard| drop(guard)).await;
}

/// Checks that a waiter is served while another manager takes the lock hundreds of times.
///
/// The greedy manager has a thread of its own, as a process would, so that it is never late because
/// the waiter is about to be served.
async fn served_while(store: &Fixture, end: impl AsyncFn(LockGuard) + Send + Copy + 'static) {
    let greedy = store.manager().await;
    let first = greedy.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = tokio::spawn(store.lock("k").await.wait(Wait::Forever).acquire());
    queued(store, 1).await;
    let over = Arc::new(AtomicBool::new(false));
    let enough = Arc::clone(&over);
    let taking = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            end(first).await;
            let mut takings = 0;
            while !enough.load(Ordering::SeqCst) && takings < 500 {
                let request = greedy.lock("k").ttl(long()).wait(Wait::Forever);
                let guard = request.acquire().await.expect("its turn");
                std::thread::sleep(Duration::from_millis(1));
                end(guard).await;
                takings += 1;
            }
            takings
        })
    });
    let guard = served(waiter).await.expect("no panic").expect("its turn");
    over.store(true, Ordering::SeqCst);
    guard.release().await.expect("held");
    let takings = taking.join().expect("no panic");
    assert!(
        takings < 500,
        "the waiter was served only when the other manager had finished"
    );
}
