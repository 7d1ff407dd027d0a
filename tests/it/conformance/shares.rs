//! Tests readers and permits: who enters beside whom, in which order, and how a share ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lock_core::{ErrorKind, LockGuard, LockManager, LockRequest, Renew, Wait};
use lock_tests::wait;
use tokio::time::timeout;

use super::{Fixture, kind, long};
use crate::steps::{Waiter, its_turn};

fn reader(locks: &LockManager) -> LockRequest {
    locks.lock("k").ttl(long()).read()
}

fn permit(locks: &LockManager, count: u32) -> LockRequest {
    locks.lock("k").ttl(long()).permits(count)
}

fn writer(locks: &LockManager) -> LockRequest {
    locks.lock("k").ttl(long())
}

async fn entered(request: LockRequest) -> LockGuard {
    let entered = request.try_acquire().await.expect("an answer");
    entered.expect("there is room")
}

async fn refused(request: LockRequest) {
    let refused = request.try_acquire().await.expect("an answer");
    assert!(refused.is_none(), "there is no room");
}

/// Starts a task that waits, and returns when it stands in the store's queue as the `place`-th.
async fn waits(store: &Fixture, request: LockRequest, place: usize) -> Waiter {
    let waiter = tokio::spawn(request.wait(Wait::Forever).acquire());
    let stands = async || store.waiting() == place;
    wait::eventually("the waiter stands in the queue", stands).await;
    waiter
}

pub(super) async fn readers_share_a_key_and_a_writer_waits_for_all(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let mut readers = Vec::new();
    for locks in [&locks, &locks, &others, &others] {
        readers.push(entered(reader(locks)).await);
    }
    assert_eq!(store.taken(), 1);
    refused(writer(&locks)).await;
    let waiting = waits(store, writer(&others), 1).await;
    for guard in readers.drain(1..) {
        guard.release().await.expect("held");
    }
    assert!(!waiting.is_finished());
    assert!(readers[0].is_valid());
    drop(readers);
    let guard = its_turn(waiting).await;
    refused(reader(&locks)).await;
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_writer_excludes_readers_and_permits(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = entered(writer(&locks)).await;
    for locks in [&locks, &others] {
        let error = reader(locks).acquire().await.expect_err("a writer is in");
        assert_eq!((error.kind(), error.is_full()), (ErrorKind::Busy, false));
        let error = permit(locks, 7).acquire().await;
        let error = error.expect_err("a plain lock is in");
        assert_eq!((error.code(), error.is_full()), ("lock_busy", false));
    }
    guard.release().await.expect("held");
    entered(reader(&others))
        .await
        .release()
        .await
        .expect("held");
}

pub(super) async fn a_reader_behind_a_waiting_writer_waits_too(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let first = entered(reader(&locks)).await;
    let second = waits(store, writer(&others), 1).await;
    refused(reader(&locks)).await;
    refused(reader(&others)).await;
    let third = waits(store, reader(&locks), 2).await;
    first.release().await.expect("held");
    let guard = its_turn(second).await;
    assert!(!third.is_finished());
    guard.release().await.expect("held");
    let guard = its_turn(third).await;
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn the_end_of_a_writer_lets_in_all_readers_up_to_the_next_writer(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let first = entered(writer(&locks)).await;
    let mut readers = Vec::new();
    for place in 1..=6 {
        let of = [&locks, &others][place % 2];
        readers.push(waits(store, reader(of), place).await);
    }
    let next = waits(store, writer(&others), 7).await;
    let last = waits(store, reader(&locks), 8).await;
    first.release().await.expect("held");
    let mut inside = Vec::new();
    for reader in readers {
        inside.push(its_turn(reader).await);
    }
    assert!(inside.iter().all(|guard| guard.is_valid()));
    assert!(!next.is_finished() && !last.is_finished());
    drop(inside);
    let guard = its_turn(next).await;
    assert!(!last.is_finished());
    drop(guard);
    drop(its_turn(last).await);
    store.is_left_clean().await;
}

pub(super) async fn a_writer_that_gives_up_lets_in_the_readers_behind_it(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let first = entered(reader(&locks)).await;
    let second = waits(store, writer(&others), 1).await;
    let third = waits(store, reader(&locks), 2).await;
    let fourth = waits(store, reader(&others), 3).await;
    second.abort();
    let (third, fourth) = (its_turn(third).await, its_turn(fourth).await);
    assert!(first.is_valid() && third.is_valid() && fourth.is_valid());
    drop((first, third, fourth));
    store.is_left_clean().await;
}

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

pub(super) async fn a_share_that_is_not_renewed_ends_alone(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let soon = store.soon_over();
    let dead = entered(permit(&locks, 2).ttl(soon).renew(Renew::Off)).await;
    let alive = entered(permit(&others, 2).ttl(store.renewable())).await;
    refused(permit(&locks, 2)).await;
    // It is let in when the dead owner's lease has run out.
    let next = permit(&locks, 2).wait(Wait::Forever).acquire();
    let next = timeout(wait::PATIENCE, next).await;
    let next = next.expect("in time").expect("room");
    assert!(!dead.is_valid() && alive.is_valid());
    refused(permit(&others, 2)).await;
    drop((dead, alive, next));
    store.is_left_clean().await;
}

pub(super) async fn shares_are_renewed_beside_one_another(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let ttl = store.renewable();
    let lone = entered(reader(&locks).ttl(ttl * 2)).await;
    tokio::time::sleep(ttl * 5 / 2).await;
    assert!(lone.is_valid(), "a lone share is renewed");
    let beside = entered(reader(&others).ttl(ttl)).await;
    tokio::time::sleep(ttl * 5 / 2).await;
    assert!(lone.is_valid() && beside.is_valid());
    lone.release().await.expect("held");
    tokio::time::sleep(ttl * 3 / 2).await;
    assert!(beside.is_valid(), "the other one goes on");
    refused(writer(&locks)).await;
    beside.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn all_shares_of_a_key_that_is_deleted_are_lost(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let ttl = store.renewable();
    let one = entered(reader(&locks).ttl(ttl)).await;
    let other = entered(reader(&others).ttl(ttl)).await;
    store.delete("k");
    let next = entered(reader(&others)).await;
    for guard in [one, other] {
        let lost = timeout(wait::PATIENCE, guard.lost()).await;
        lost.expect("the next renewal notices");
        assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    }
    assert!(next.is_valid());
    drop(next);
    store.is_left_clean().await;
}

pub(super) async fn a_key_that_is_overwritten_is_lost_and_left_alone(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let ttl = store.renewable();
    let one = entered(reader(&locks).ttl(ttl)).await;
    let other = entered(reader(&others).ttl(ttl)).await;
    store.overwrite("k");
    for guard in [one, other] {
        let lost = timeout(wait::PATIENCE, guard.lost()).await;
        lost.expect("the next renewal notices");
        assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    }
    assert_eq!(store.taken(), 1);
    refused(reader(&locks)).await;
}

pub(super) async fn a_readers_token_is_between_those_of_the_writers_around_it(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let mut before = None;
    for round in 0..20 {
        let guard = entered(writer([&locks, &others][round % 2])).await;
        let first = guard.fencing_token();
        assert!(before < Some(first), "{before:?} {first:?}");
        guard.release().await.expect("held");
        let readers = [
            entered(reader(&locks)).await,
            entered(reader(&others)).await,
        ];
        for reader in readers {
            assert!(reader.fencing_token() > first);
            before = before.max(Some(reader.fencing_token()));
            reader.release().await.expect("held");
        }
    }
}

pub(super) async fn a_waiting_share_that_is_cancelled_leaves_nothing_and_blocks_no_other(
    store: &Fixture,
) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = entered(writer(&locks)).await;
    let mut waiters = Vec::new();
    for place in 1..=12 {
        let of = [&locks, &others][place % 2];
        waiters.push(waits(store, permit(of, 2), place).await);
    }
    for waiter in waiters.iter().step_by(2) {
        waiter.abort();
    }
    guard.release().await.expect("held");
    for waiter in waiters.into_iter().skip(1).step_by(2) {
        drop(its_turn(waiter).await);
    }
    store.is_left_clean().await;
}

pub(super) async fn a_share_that_was_given_back_is_not_in_the_way_of_its_process(store: &Fixture) {
    let locks = store.manager().await;
    for _ in 0..30 {
        drop(entered(permit(&locks, 1)).await);
        entered(permit(&locks, 1)).await.release_in_background();
        drop(entered(writer(&locks)).await);
        drop(entered(reader(&locks)).await);
    }
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
    let queued = async || store.waiting() >= 32;
    wait::eventually("both processes have all of their places", queued).await;
    assert_eq!(store.waiting(), 32, "each process has 16 places");
    guard.release().await.expect("held");
    for task in tasks {
        let run = timeout(wait::PATIENCE, task).await;
        run.expect("in time").expect("no panic").expect("a permit");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_wait_for_a_share_ends_in_time(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = entered(writer(&locks)).await;
    let span = Duration::from_millis(80);
    let ended = [
        reader(&others).wait(span).acquire().await,
        permit(&others, 5).wait(span).acquire().await,
        permit(&locks, 5).wait(span).acquire().await,
    ];
    for ended in ended {
        assert_eq!(kind(ended), ErrorKind::Busy);
    }
    assert!(guard.is_valid());
    drop(guard);
    store.is_left_clean().await;
}

pub(super) async fn a_share_may_be_entered_by_what_may_stand_beside_it(store: &Fixture) {
    let locks = store.manager().await;
    let inside = |outer: LockRequest, inner: fn(&LockManager) -> LockRequest| {
        let locks = locks.clone();
        async move {
            let inner = outer.run_with(|outer| async move {
                let inner = inner(&locks).run_with(|lock| async move { lock.fencing_token() });
                inner.await.map(|inner| inner == outer.fencing_token())
            });
            inner.await.expect("free")
        }
    };
    let read: fn(&LockManager) -> LockRequest = |locks| reader(locks);
    let write: fn(&LockManager) -> LockRequest = |locks| writer(locks);
    let five: fn(&LockManager) -> LockRequest = |locks| permit(locks, 5);
    for (outer, inner) in [
        (writer(&locks), read),
        (writer(&locks), five),
        (reader(&locks), read),
        (permit(&locks, 5), five),
        (permit(&locks, 3), five),
        (permit(&locks, 3), read),
    ] {
        let same = inside(outer, inner).await.expect("it enters");
        assert!(same, "the same lease");
    }
    for (outer, inner) in [
        (reader(&locks), write),
        (permit(&locks, 5), write),
        (reader(&locks), five),
        (permit(&locks, 6), five),
    ] {
        let error = inside(outer, inner)
            .await
            .expect_err("it would wait for itself");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(
            error.to_string().contains("would wait for itself"),
            "{error}"
        );
    }
    store.is_left_clean().await;
}

pub(super) async fn options_that_a_share_cannot_have_are_invalid(store: &Fixture) {
    let locks = store.manager().await;
    let second = Duration::from_secs(1);
    for (request, why) in [
        (permit(&locks, 0), "1 to 10000 permits"),
        (permit(&locks, 10_001), "1 to 10000 permits"),
        (permit(&locks, 5).read(), "`read` or `permits` twice"),
        (reader(&locks).permits(5), "`read` or `permits` twice"),
        (reader(&locks).cooldown(second), "no cooldown"),
        (permit(&locks, 5).cooldown(second), "no cooldown"),
        (reader(&locks).interop(lock_core::Interop::On), "no gaps"),
    ] {
        let checked = request.check().expect_err("invalid");
        assert!(checked.to_string().contains(why), "{checked}");
        let error = request.acquire().await.expect_err("invalid");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(why), "{error}");
    }
    let guard = entered(reader(&locks)).await;
    let error = guard.remember("answer", second).expect_err("invalid");
    assert!(error.to_string().contains("no record"), "{error}");
    guard.cooldown(second);
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_writer_goes_on_as_a_reader_with_its_token_and_lets_readers_in(
    store: &Fixture,
) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let ttl = store.renewable();
    let guard = entered(writer(&locks).ttl(ttl)).await;
    let (fence, before) = (guard.fencing_token(), guard.handle());
    let waiters = [
        waits(store, reader(&others), 1).await,
        waits(store, reader(&locks), 2).await,
    ];
    let next = waits(store, writer(&others), 3).await;
    let guard = guard.downgrade().await.expect("held");
    assert_eq!(guard.fencing_token(), fence);
    assert!(guard.is_valid() && guard.is_shared() && !before.is_valid());
    let mut readers = Vec::new();
    for waiter in waiters {
        readers.push(its_turn(waiter).await);
    }
    tokio::time::sleep(ttl * 3 / 2).await;
    assert!(guard.is_valid(), "it is renewed");
    assert!(!next.is_finished());
    guard.release().await.expect("held");
    drop(readers);
    let next = its_turn(next).await;
    assert!(next.fencing_token() > fence);
    drop(next);
    store.is_left_clean().await;
}

pub(super) async fn a_share_or_a_lost_lock_is_not_downgraded(store: &Fixture) {
    let locks = store.manager().await;
    let guard = entered(reader(&locks)).await;
    assert_eq!(kind(guard.downgrade().await), ErrorKind::Invalid);
    let guard = entered(writer(&locks)).await;
    store.delete("k");
    assert_eq!(kind(guard.downgrade().await), ErrorKind::Lost);
    drop(entered(writer(&locks)).await);
    store.is_left_clean().await;
}
