//! Tests records: an owner leaves one in its key, and all who come after it get it.

use std::time::{Duration, Instant};

use lock_core::middleware::{Forgotten, MAX_RECORD, RecordOutcome};
use lock_core::{Error, ErrorKind, LockGuard, LockManager, Wait};
use lock_tests::wait;
use tokio::time::timeout;

use super::{Fixture, drains, kind, long, short};

/// Bytes that are no text, and that contain what separates the parts of a value.
const RECORD: &[u8] = b"a/b \0 \xff\xfe done/ cooling/ 7/";

async fn owner(locks: &LockManager) -> LockGuard {
    let request = locks.lock("k").ttl(long());
    request.acquire().await.expect("free")
}

async fn finished(locks: &LockManager) {
    let guard = owner(locks).await;
    guard.remember(RECORD, long()).expect("in bounds");
    let handle = guard.handle();
    guard.release().await.expect("held");
    assert_eq!(handle.record_outcome(), Some(RecordOutcome::Stored));
}

async fn refused(locks: &LockManager) -> Error {
    let refused = locks.lock("k").ttl(long()).acquire().await;
    refused.expect_err("the key is taken")
}

pub(super) async fn who_comes_after_a_record_gets_it_with_its_exact_end(store: &Fixture) {
    let locks = store.manager().await;
    let before = Instant::now();
    finished(&locks).await;
    for other in [locks.clone(), store.manager().await] {
        let error = refused(&other).await;
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert_eq!(error.record(), Some(RECORD));
        assert_eq!(error.code(), "lock_cooling_down");
        let left = error.retry_after().expect("a record has an exact end");
        assert!(left <= long(), "{left:?}");
        let slack = before.elapsed() + Duration::from_millis(2);
        assert!(left + slack >= long(), "{left:?}");
        let waiting = other.lock("k").wait(Wait::Forever).acquire();
        let waited = timeout(wait::PATIENCE, waiting).await;
        let error = waited.expect("a record ends a wait").expect_err("taken");
        assert_eq!(error.record(), Some(RECORD));
        assert!(!format!("{error} {error:?}").contains("done"));
    }
    assert_eq!((store.taken(), store.waiting()), (1, 0));
    assert_eq!(locks.held().len(), 0);
}

pub(super) async fn each_kind_of_end_leaves_the_record(store: &Fixture) {
    for end in [
        drop as fn(LockGuard),
        LockGuard::release_in_background,
        |guard| {
            std::thread::spawn(move || drop(guard))
                .join()
                .expect("no panic");
        },
    ] {
        let locks = store.manager().await;
        let guard = owner(&locks).await;
        let handle = guard.handle();
        guard.remember(RECORD, long()).expect("in bounds");
        end(guard);
        wait::eventually("the record is stored", async || {
            handle.record_outcome() == Some(RecordOutcome::Stored)
        })
        .await;
        assert_eq!(refused(&locks).await.record(), Some(RECORD));
        assert_eq!(locks.forget("k").await.expect("no fault"), Forgotten::Yes);
        drains(&locks).await;
    }
    store.is_left_clean().await;
}

pub(super) async fn a_record_ends_all_waits_and_no_waiter_gets_the_lock(store: &Fixture) {
    let managers = [store.manager().await, store.manager().await];
    let guard = owner(&managers[0]).await;
    let mut waiters = Vec::new();
    for locks in &managers {
        for _ in 0..5 {
            let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
            waiters.push(tokio::spawn(request.acquire()));
        }
    }
    // The tasks of the owner's process stand behind it, and one of the other process stands in the store's queue.
    wait::eventually("the other process waits", async || store.waiting() > 0).await;
    guard.remember(RECORD, long()).expect("in bounds");
    guard.release().await.expect("held");
    for waiter in waiters {
        let waited = timeout(wait::PATIENCE, waiter).await.expect("told");
        let error = waited.expect("no panic").expect_err("the work is done");
        assert_eq!(error.record(), Some(RECORD));
    }
    for locks in &managers {
        locks.drain(wait::PATIENCE).await;
    }
    assert_eq!((store.taken(), store.waiting()), (1, 0));
}

pub(super) async fn no_task_steps_over_a_lease_whose_record_is_under_way(store: &Fixture) {
    let locks = store.manager().await;
    for _ in 0..20 {
        let guard = owner(&locks).await;
        guard.remember(RECORD, long()).expect("in bounds");
        drop(guard);
        let error = refused(&locks).await;
        assert_eq!(error.kind(), ErrorKind::Busy);
        wait::eventually("the record is there", async || {
            refused(&locks).await.record() == Some(RECORD)
        })
        .await;
        assert_eq!(locks.forget("k").await.expect("no fault"), Forgotten::Yes);
    }
}

pub(super) async fn a_lock_that_was_lost_by_its_owners_clock_leaves_its_record(store: &Fixture) {
    let locks = store.manager().await;
    for dropped in [false, true] {
        let request = locks.lock("k").ttl(long()).max_hold(short() / 4);
        let guard = request.acquire().await.expect("free");
        guard.remember(RECORD, long()).expect("in bounds");
        guard.lost().await;
        let handle = guard.handle();
        if dropped {
            drop(guard);
            wait::eventually("the store has answered", async || {
                handle.record_outcome() != Some(RecordOutcome::Background)
            })
            .await;
        } else {
            assert_eq!(kind(guard.release().await), ErrorKind::Lost);
        }
        assert_eq!(handle.record_outcome(), Some(RecordOutcome::Stored));
        assert_eq!(refused(&locks).await.record(), Some(RECORD));
        assert_eq!(locks.forget("k").await.expect("no fault"), Forgotten::Yes);
    }
}

pub(super) async fn a_lock_that_another_owner_has_leaves_no_record(store: &Fixture) {
    let locks = store.manager().await;
    for deleted in [true, false] {
        let guard = owner(&locks).await;
        store.is_everywhere().await;
        match deleted {
            true => store.delete("k"),
            false => store.overwrite("k"),
        }
        guard.remember(RECORD, long()).expect("in bounds");
        let handle = guard.handle();
        assert_eq!(kind(guard.release().await), ErrorKind::Lost);
        assert_eq!(handle.record_outcome(), Some(RecordOutcome::Lost));
        assert_eq!(store.taken(), usize::from(!deleted));
    }
    assert_eq!(refused(&store.manager().await).await.record(), None);
}

pub(super) async fn a_record_that_is_over_or_was_forgotten_leaves_a_free_key(store: &Fixture) {
    let locks = store.manager().await;
    let guard = owner(&locks).await;
    let first = guard.fencing_token();
    guard.remember(RECORD, short()).expect("in bounds");
    guard.release().await.expect("held");
    assert_eq!(refused(&locks).await.record(), Some(RECORD));
    tokio::time::sleep(short() + Duration::from_millis(5)).await;
    let guard = owner(&locks).await;
    let second = guard.fencing_token();
    assert!(second > first);
    assert_eq!(locks.forget("k").await.expect("no fault"), Forgotten::Held);
    guard.remember(RECORD, long()).expect("in bounds");
    guard.release().await.expect("held");
    let other = store.manager().await;
    assert_eq!(other.forget("k").await.expect("no fault"), Forgotten::Yes);
    assert_eq!(
        other.forget("k").await.expect("no fault"),
        Forgotten::Nothing
    );
    let guard = owner(&locks).await;
    assert!(guard.fencing_token() > second);
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_forgotten_cooldown_gives_the_key_to_its_waiter(store: &Fixture) {
    let locks = store.manager().await;
    let guard = locks.lock("k").cooldown(long()).acquire().await;
    guard.expect("free").release().await.expect("held");
    let waiter = tokio::spawn(locks.lock("k").wait(Wait::Forever).acquire());
    wait::eventually("the waiter waits", async || store.waiting() > 0).await;
    let other = store.manager().await;
    assert_eq!(other.forget("k").await.expect("no fault"), Forgotten::Yes);
    let next = timeout(wait::PATIENCE, waiter).await.expect("told");
    let next = next.expect("no panic").expect("free");
    next.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn the_last_record_counts_and_one_that_was_dropped_does_not(store: &Fixture) {
    let locks = store.manager().await;
    let guard = locks.lock("k").ttl(long()).cooldown(short()).acquire();
    let guard = guard.await.expect("free");
    assert_eq!(guard.record_outcome(), None);
    guard.remember("first", short()).expect("in bounds");
    guard.remember("", long()).expect("in bounds");
    guard.release().await.expect("held");
    let error = refused(&locks).await;
    assert_eq!(
        error.record(),
        Some(&b""[..]),
        "also in place of the cooldown"
    );
    assert!(error.retry_after() > Some(long() / 2));
    assert_eq!(locks.forget("k").await.expect("no fault"), Forgotten::Yes);
    let guard = owner(&locks).await;
    guard.remember("first", long()).expect("in bounds");
    guard.forget_record();
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_record_out_of_bounds_is_invalid_and_the_largest_is_kept(store: &Fixture) {
    let locks = store.manager().await;
    let guard = owner(&locks).await;
    let too_large = guard.remember(vec![7; MAX_RECORD + 1], long());
    assert_eq!(kind(too_large), ErrorKind::Invalid);
    for lifetime in [Duration::ZERO, Duration::from_secs(25 * 3_600)] {
        assert_eq!(kind(guard.remember("", lifetime)), ErrorKind::Invalid);
    }
    assert_eq!(guard.record_outcome(), None);
    let largest = vec![0xff; MAX_RECORD];
    guard.remember(&largest[..], long()).expect("in bounds");
    guard.release().await.expect("held");
    assert!(refused(&locks).await.record() == Some(&largest[..]));
    let key = locks.forget("").await;
    assert_eq!(kind(key), ErrorKind::Invalid);
}
