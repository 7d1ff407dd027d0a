//! Tests that there is one owner at a time, and the answers that other callers get.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lock_core::{ErrorKind, Wait};
use lock_tests::wait;

use super::{Fixture, drains, is_refused, kind, long};

pub(super) async fn trying_once_is_none_while_the_lock_is_held(store: &Fixture) {
    let first = store.lock("k").await.acquire().await.expect("free");
    let other = store.manager().await;
    is_refused(&other, "k").await;
    // `try_acquire` ignores the wait of the request.
    let patient = other.lock("k").wait(Wait::Forever).try_acquire().await;
    assert!(patient.expect("an answer").is_none());
    first.release().await.expect("held");
    assert!(
        other
            .lock("k")
            .try_acquire()
            .await
            .expect("an answer")
            .is_some()
    );
}

pub(super) async fn busy_says_when_to_try_again(store: &Fixture) {
    let locks = store.manager().await;
    let first = locks.lock("k").ttl(long()).acquire().await.expect("free");
    for other in [locks.clone(), store.manager().await] {
        let error = other
            .lock("k")
            .ttl(long())
            .acquire()
            .await
            .expect_err("held");
        assert_eq!((error.http_status(), error.code()), (409, "lock_busy"));
        assert_eq!(error.key(), Some("k"));
        assert!(!error.is_cooling_down());
        let hint = error.retry_after().expect("a hint");
        assert!(hint > long() / 2 && hint <= long(), "{hint:?}");
    }
    assert!(first.is_valid());
    first.release().await.expect("held");
}

pub(super) async fn another_key_is_another_lock(store: &Fixture) {
    let locks = store.manager().await;
    let one = locks.lock("k").acquire().await.expect("free");
    let other = locks.lock("k2").acquire().await.expect("free");
    let part = locks.lock("k:2").acquire().await.expect("free");
    assert!(one.is_valid() && other.is_valid() && part.is_valid());
}

pub(super) async fn after_the_release_the_key_is_free(store: &Fixture) {
    let locks = store.manager().await;
    for _ in 0..3 {
        let guard = locks.lock("k").acquire().await.expect("free");
        let handle = guard.handle();
        guard.release().await.expect("held");
        assert!(!handle.is_valid());
        assert_eq!(handle.remaining(), Duration::ZERO);
        assert_eq!(store.taken(), 0);
        let other = store.manager().await.lock("k").acquire().await;
        other.expect("free").release().await.expect("held");
    }
}

pub(super) async fn a_dropped_guard_releases_the_lock(store: &Fixture) {
    let locks = store.manager().await;
    drop(locks.lock("k").ttl(long()).acquire().await.expect("free"));
    // The next acquire of the same process supersedes the release that is still under way.
    drop(locks.lock("k").ttl(long()).acquire().await.expect("free"));
    wait::until("the key is free", || store.taken() == 0);
    drains(&locks).await;
}

pub(super) async fn only_one_of_two_tasks_on_one_thread_enters(store: &Fixture) {
    let locks = store.manager().await;
    let request = || locks.lock("k").ttl(long()).try_acquire();
    let (one, two) = tokio::join!(request(), request());
    let (one, two) = (one.expect("an answer"), two.expect("an answer"));
    assert!(one.is_some() != two.is_some());
}

pub(super) async fn only_one_of_fifty_tasks_is_inside_at_a_time(store: &Fixture) {
    let inside = Arc::new(AtomicUsize::new(0));
    let mut managers = Vec::new();
    for _ in 0..3 {
        managers.push(store.manager().await);
    }
    let tasks: Vec<_> = (0..50)
        .map(|index| {
            let inside = Arc::clone(&inside);
            let request = managers[index % 3]
                .lock("k")
                .ttl(long())
                .wait(Wait::Forever);
            tokio::spawn(request.run(async move {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
            }))
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic").expect("its turn comes");
    }
    store.is_left_clean().await;
}

pub(super) async fn two_managers_exclude_each_other(store: &Fixture) {
    let (one, other) = (store.manager().await, store.manager().await);
    for _ in 0..5 {
        let guard = one.lock("k").acquire().await.expect("free");
        assert_eq!(kind(other.lock("k").acquire().await), ErrorKind::Busy);
        guard.release().await.expect("held");
        let guard = other.lock("k").acquire().await.expect("free");
        assert_eq!(kind(one.lock("k").acquire().await), ErrorKind::Busy);
        guard.release().await.expect("held");
    }
}

pub(super) async fn a_key_that_cools_down_is_refused_as_cooling_down_and_to_the_millisecond(
    store: &Fixture,
) {
    let cooldown = Duration::from_secs(60);
    let locks = store.manager().await;
    let guard = locks.lock("k").cooldown(cooldown).acquire().await;
    let before = Instant::now();
    guard.expect("free").release().await.expect("held");
    for other in [locks.clone(), store.manager().await] {
        let error = other.lock("k").acquire().await.expect_err("cooling");
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.is_cooling_down());
        assert_eq!(error.code(), "lock_cooling_down");
        let left = error.retry_after().expect("a cooldown has an exact end");
        // The count begins between the release and its answer, in whole milliseconds.
        assert!(left <= cooldown, "{left:?}");
        assert!(
            left + before.elapsed() + Duration::from_millis(2) >= cooldown,
            "{left:?}"
        );
    }
    assert_eq!(store.taken(), 1);
    assert_eq!(locks.held().len(), 0);
}

pub(super) async fn the_cooldown_of_a_handle_counts_for_a_dropped_guard_too(store: &Fixture) {
    let locks = store.manager().await;
    let guard = locks.lock("k").acquire().await.expect("free");
    guard.cooldown(Duration::from_secs(60));
    guard.cooldown(Duration::from_secs(5));
    drop(guard);
    locks.drain(wait::PATIENCE).await;
    let error = store.lock("k").await.acquire().await.expect_err("cooling");
    assert!(error.is_cooling_down());
    assert!(error.retry_after() > Some(Duration::from_secs(30)));
}

pub(super) async fn the_cooldown_of_a_request_does_not_count_for_a_dropped_guard(store: &Fixture) {
    let locks = store.manager().await;
    drop(
        locks
            .lock("k")
            .cooldown(long())
            .acquire()
            .await
            .expect("free"),
    );
    store.is_left_clean().await;
}

pub(super) async fn a_long_cooldown_has_an_exact_retry_after_while_a_waiter_waits_for_it(
    store: &Fixture,
) {
    let cooldown = Duration::from_secs(600);
    let locks = store.manager().await;
    let guard = locks.lock("k").cooldown(cooldown).acquire().await;
    guard.expect("free").release().await.expect("held");
    let waiter = tokio::spawn(locks.lock("k").wait(Wait::Forever).acquire());
    wait::eventually("the waiter waits", async || store.waiting() == 1).await;
    let error = locks.lock("k").acquire().await.expect_err("cooling");
    assert!(error.is_cooling_down());
    let left = error.retry_after().expect("a cooldown has an exact end");
    assert!(left > cooldown - wait::PATIENCE, "{left:?}");
    waiter.abort();
}

pub(super) async fn held_locks_are_listed_without_asking_the_store(store: &Fixture) {
    let locks = store.manager().await;
    assert!(locks.held().is_empty());
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let held = locks.held();
    assert_eq!(held.len(), 1);
    assert_eq!(held[0].key(), "k");
    assert_eq!(held[0].fencing_token(), guard.fencing_token());
    assert!(held[0].remaining() > long() / 2);
    assert!(held[0].held_for() < long() / 2);
    assert!(store.manager().await.held().is_empty());
    guard.release().await.expect("held");
    assert!(locks.held().is_empty());
}
