//! Tests permits: how many owners enter, and in which order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lock_core::{ErrorKind, LockManager, LockRequest, Renew, Wait};
use lock_tests::wait;
use tokio::time::timeout;

use super::shares::{entered, permit, reader, refused, waits, writer};
use super::{Fixture, long};
use crate::steps::its_turn;

pub(super) async fn there_are_never_more_owners_than_permits(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..60)
        .map(|number| {
            let request = permit([&locks, &others][number % 2], 3).wait(Wait::Forever);
            let (inside, most) = (Arc::clone(&inside), Arc::clone(&most));
            tokio::spawn(request.run(async move {
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(2)).await;
                // The first owners stay until all permits are out.
                while most.load(Ordering::SeqCst) < 3 {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                inside.fetch_sub(1, Ordering::SeqCst);
            }))
        })
        .collect();
    for task in tasks {
        let run = timeout(wait::PATIENCE, task).await;
        run.expect("in time").expect("no panic").expect("a permit");
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
    store.is_left_clean().await;
}

pub(super) async fn a_full_key_is_busy_and_says_that_it_is_full(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guards = (
        entered(permit(&locks, 2)).await,
        entered(permit(&others, 2)).await,
    );
    for locks in [&locks, &others] {
        let error = permit(locks, 2).acquire().await.expect_err("full");
        assert_eq!((error.kind(), error.is_full()), (ErrorKind::Busy, true));
        assert_eq!((error.http_status(), error.code()), (429, "lock_full"));
        assert_eq!(error.key(), Some("k"));
        let hint = error.retry_after().expect("a hint");
        // The end of a share that others join is rounded up.
        let longest = long() + Duration::from_millis(2);
        assert!(hint > long() / 2 && hint <= longest, "{hint:?}");
    }
    drop(guards);
    store.is_left_clean().await;
}

pub(super) async fn a_permit_that_comes_back_goes_to_the_first_waiter(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let first = entered(permit(&locks, 2)).await;
    let second = entered(permit(&others, 2)).await;
    let third = waits(store, permit(&locks, 2), 1).await;
    let fourth = waits(store, permit(&others, 2), 2).await;
    refused(permit(&others, 3)).await;
    first.release().await.expect("held");
    let third = its_turn(third).await;
    assert!(!fourth.is_finished());
    second.release().await.expect("held");
    let fourth = its_turn(fourth).await;
    drop((third, fourth));
    store.is_left_clean().await;
}

pub(super) async fn each_request_counts_to_its_own_limit(store: &Fixture) {
    let locks = store.manager().await;
    let mut old = Vec::new();
    for _ in 0..8 {
        old.push(entered(permit(&locks, 8)).await);
    }
    refused(permit(&locks, 8)).await;
    refused(permit(&locks, 5)).await;
    for _ in 0..3 {
        old.pop();
    }
    // The drops are sent in the background. The next request comes behind them.
    refused(permit(&locks, 5)).await;
    old.pop();
    let new = entered(permit(&locks, 5)).await;
    refused(permit(&locks, 5)).await;
    let wide = entered(permit(&locks, 8)).await;
    drop((old, new, wide));
    store.is_left_clean().await;
}

pub(super) async fn a_hundred_waiting_tasks_get_their_permits(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = entered(writer(&locks)).await;
    let tasks: Vec<_> = (0..100)
        .map(|number| {
            let request = permit([&locks, &others][number % 2], 5);
            tokio::spawn(request.wait(Wait::Forever).run(async {}))
        })
        .collect();
    let queued = async || store.waiting() >= 2;
    wait::eventually("both processes stand in the queue", queued).await;
    assert_eq!(store.waiting(), 2, "each process once");
    guard.release().await.expect("held");
    for task in tasks {
        let run = timeout(wait::PATIENCE, task).await;
        run.expect("in time").expect("no panic").expect("a permit");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_process_that_has_all_permits_enters_as_soon_as_one_comes_back(
    store: &Fixture,
) {
    let locks = store.manager().await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(entered(permit(&locks, 3)).await);
    }
    for end in [None, Some(0), Some(1)] {
        for limit in [1, 2, 3] {
            let error = permit(&locks, limit).acquire().await.expect_err("full");
            assert_eq!((error.is_full(), error.key()), (true, Some("k")));
            let hint = error.retry_after().expect("a hint");
            assert!(hint > long() / 2 && hint <= long(), "{hint:?}");
        }
        entered(permit(&locks, 4))
            .await
            .release()
            .await
            .expect("held");
        let over = held.pop().expect("three");
        match end {
            None => drop(over),
            Some(0) => over.release_in_background(),
            Some(_) => over.release().await.expect("held"),
        }
        held.push(entered(permit(&locks, 3)).await);
    }
    drop(held);
    store.is_left_clean().await;
}

pub(super) async fn a_process_that_has_all_permits_enters_when_it_has_lost_one(store: &Fixture) {
    let locks = store.manager().await;
    let deleted = entered(permit(&locks, 1).ttl(store.renewable())).await;
    refused(permit(&locks, 1)).await;
    store.delete("k");
    let lost = timeout(wait::PATIENCE, deleted.lost()).await;
    lost.expect("the next renewal notices");
    let soon = permit(&locks, 1).ttl(store.soon_over());
    let ended = entered(soon.renew(Renew::Off)).await;
    timeout(wait::PATIENCE, ended.lost())
        .await
        .expect("its end");
    // The process counts until shortly before the store does.
    wait::eventually("the key is free", async || {
        let next = permit(&locks, 1).try_acquire().await;
        next.expect("an answer").is_some()
    })
    .await;
    drop((deleted, ended));
    store.is_left_clean().await;
}

pub(super) async fn a_permit_behind_a_waiting_lock_is_not_told_that_the_key_is_full(
    store: &Fixture,
) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let one = entered(permit(&locks, 2)).await;
    let waiter = waits(store, writer(&others), 1).await;
    for locks in [&locks, &others] {
        let error = permit(locks, 2).acquire().await.expect_err("a lock waits");
        assert_eq!((error.code(), error.is_full()), ("lock_busy", false));
        let error = permit(locks, 1).acquire().await.expect_err("full");
        assert!(error.is_full());
    }
    one.release().await.expect("held");
    drop(its_turn(waiter).await);
    store.is_left_clean().await;
}

pub(super) async fn readers_and_permits_exclude_each_other(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let five: fn(&LockManager) -> LockRequest = |locks| permit(locks, 5);
    for (inside, kept_out) in [(five, reader as fn(&_) -> _), (reader, five)] {
        let one = entered(inside(&locks)).await;
        for count in 0..2 {
            for locks in [&locks, &others] {
                let error = kept_out(locks).acquire().await.expect_err("another kind");
                assert_eq!(
                    (error.kind(), error.is_full()),
                    (ErrorKind::Busy, false),
                    "{count}"
                );
            }
            // Beside a second one of its kind.
            entered(inside(&others))
                .await
                .release()
                .await
                .expect("held");
        }
        let two = entered(inside(&others)).await;
        let waiter = waits(store, kept_out(&others), 1).await;
        refused(inside(&locks)).await;
        one.release().await.expect("held");
        assert!(!waiter.is_finished() && two.is_valid());
        two.release().await.expect("held");
        its_turn(waiter).await.release().await.expect("held");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_writer_excludes_permits(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = entered(writer(&locks)).await;
    for locks in [&locks, &others] {
        let error = permit(locks, 7).acquire().await;
        let error = error.expect_err("a plain lock is in");
        assert_eq!((error.code(), error.is_full()), ("lock_busy", false));
    }
    drop(guard);
    store.is_left_clean().await;
}
