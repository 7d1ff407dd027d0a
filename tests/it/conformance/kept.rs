//! Tests locks that are kept for work that outlives its body: who may enter, and when.

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use lock_core::{ErrorKind, LockGuard, LockHandle, LockManager, LockRequest, Renew, Wait};
use lock_tests::wait;
use tokio::time::timeout;

use super::{Fixture, kind, long};
use crate::steps::{all_is_answered, its_turn, taken};

/// Polls the future once, and returns whether it is pending.
pub(super) async fn is_pending<F: Future>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
}

/// Checks that these managers do not get the key, which is held and not cooling down.
pub(super) async fn is_held(key: &str, by: &[&LockManager]) {
    for locks in by {
        let refused = locks.lock(key).ttl(long()).acquire().await;
        let error = refused.expect_err("the lock is kept");
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(!error.is_cooling_down(), "the owner's end is deferred");
    }
}

pub(super) async fn a_kept_lock_is_renewed_and_held_until_it_is_dropped(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let ttl = store.renewable();
    let guard = taken(&locks, "k", ttl).await;
    let (fence, kept) = (guard.fencing_token(), guard.keep().expect("held"));
    drop(guard);
    let lost = timeout(ttl * 2, kept.lost()).await;
    assert!(lost.is_err(), "the lock is renewed past its ttl");
    assert!(kept.is_valid() && kept.fencing_token() == fence);
    assert_eq!(locks.held().len(), 1);
    is_held("k", &[&locks, &others]).await;
    // Any thread may drop it, without a runtime.
    let work = std::thread::spawn(move || drop(kept));
    work.join().expect("no panic");
    store.is_left_clean().await;
}

pub(super) async fn a_release_takes_place_when_the_last_kept_lock_is_dropped(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    for in_background in [false, true] {
        let guard = taken(&locks, "k", long()).await;
        let (first, second) = (guard.keep().expect("held"), guard.keep().expect("held"));
        match in_background {
            true => guard.release_in_background(),
            false => guard.release().await.expect("it is deferred"),
        }
        is_held("k", &[&locks, &others]).await;
        drop(first);
        is_held("k", &[&locks, &others]).await;
        drop(second);
        store.is_left_clean().await;
    }
}

pub(super) async fn a_lock_that_is_not_kept_any_more_ends_with_its_guard(store: &Fixture) {
    let locks = store.manager().await;
    let guard = taken(&locks, "k", long()).await;
    drop(guard.keep().expect("held"));
    assert!(guard.is_valid());
    is_held("k", &[&locks]).await;
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_body_that_is_dropped_leaves_the_lock_to_its_kept_work(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let (keeps, work) = std::sync::mpsc::channel();
    let mut run = Box::pin(
        locks
            .lock("k")
            .ttl(long())
            .run_with(async |lock: LockHandle| {
                keeps
                    .send(lock.keep().expect("held"))
                    .expect("the work listens");
                pending::<()>().await;
            }),
    );
    let kept = loop {
        // A client that leaves has the future dropped in the same way.
        assert!(
            timeout(Duration::from_millis(1), run.as_mut())
                .await
                .is_err()
        );
        if let Ok(kept) = work.try_recv() {
            break kept;
        }
    };
    drop(run);
    assert!(kept.is_valid());
    is_held("k", &[&locks, &others]).await;
    drop(kept);
    store.is_left_clean().await;
}

pub(super) async fn a_waiter_of_the_same_process_enters_after_the_kept_work(store: &Fixture) {
    let locks = store.manager().await;
    let guard = taken(&locks, "k", long()).await;
    let mut next = pin!(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    assert!(is_pending(next.as_mut()).await);
    let kept = guard.keep().expect("held");
    drop(guard);
    assert!(is_pending(next.as_mut()).await, "the lock is not passed on");
    all_is_answered(&locks).await;
    assert!(is_pending(next.as_mut()).await, "the lock is not released");
    assert!(kept.is_valid());
    let fence = kept.fencing_token();
    drop(kept);
    let next = timeout(wait::PATIENCE, next).await.expect("it is told");
    let next = next.expect("its turn");
    assert!(next.fencing_token() > fence);
    next.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_waiter_of_another_process_enters_after_the_kept_work(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = taken(&locks, "k", long()).await;
    let next = tokio::spawn(others.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    wait::eventually("the waiter stands in the queue", async || {
        tokio::task::yield_now().await;
        store.is_of_several() || store.waiting() == 1
    })
    .await;
    let kept = guard.keep().expect("held");
    guard.release().await.expect("it is deferred");
    for locks in [&locks, &others] {
        all_is_answered(locks).await;
    }
    assert!(!next.is_finished() && kept.is_valid());
    drop(kept);
    its_turn(next).await.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn draining_waits_for_kept_work(store: &Fixture) {
    let locks = store.manager().await;
    let guard = taken(&locks, "k", long()).await;
    let kept = guard.keep().expect("held");
    drop(guard);
    let left = locks.drain(Duration::from_millis(20)).await;
    assert_eq!((left.held(), left.is_complete()), (1, false), "{left:?}");
    assert!(kept.is_valid(), "it is renewed on");
    let mut drain = pin!(locks.drain(wait::PATIENCE));
    assert!(is_pending(drain.as_mut()).await);
    drop(kept);
    assert!(drain.await.is_complete());
    store.is_left_clean().await;
}

/// Returns a request of each kind that takes `k`.
fn of_each_kind(store: &Fixture, locks: &LockManager) -> Vec<LockRequest> {
    let mut requests = vec![
        locks.lock("k").read(),
        locks.lock_all(["k", "l", "m"]),
        locks.lock("k").renew(Renew::Off),
    ];
    if !store.is_of_several() {
        requests.push(locks.lock("k").permits(2));
    }
    requests
}

pub(super) async fn locks_of_each_kind_are_kept(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    for request in of_each_kind(store, &locks) {
        let guard: LockGuard = request.ttl(long()).acquire().await.expect("free");
        let keys: Vec<_> = guard.keys().map(str::to_owned).collect();
        let kept = guard.keep().expect("held");
        drop(guard);
        assert!(kept.is_valid());
        for key in &keys {
            is_held(key, &[&locks, &others]).await;
        }
        drop(kept);
        store.is_left_clean().await;
    }
}

pub(super) async fn a_nested_call_keeps_others_out_of_the_outer_lock(store: &Fixture) {
    let locks = store.manager().await;
    let nested = || locks.lock("k").ttl(long());
    let outer = nested().run_with(async |lock: LockHandle| {
        let inside = nested().run_with(async |lock: LockHandle| (lock.keep(), lock.clone()));
        let (kept, ended) = inside.await.expect("inside");
        let kept = kept.expect("held");
        assert_eq!(kept.fencing_token(), lock.fencing_token());
        assert_eq!(kind(nested().run(async {}).await), ErrorKind::Busy);
        drop(kept);
        nested().run(async {}).await.expect("no other is inside");
        // The call that this handle belongs to has ended, although the lock is held.
        assert_eq!(kind(ended.keep()), ErrorKind::Lost);
        nested()
            .run_with(async |lock: LockHandle| lock.keep())
            .await
    });
    let kept = outer.await.expect("free").expect("inside").expect("held");
    is_held("k", &[&locks]).await;
    drop(kept);
    store.is_left_clean().await;
}
