//! Tests code that asks again for the lock that it runs under.

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use lock_core::{ErrorKind, LockHandle, LockManager, Reentrancy, Wait};

use super::{Fixture, kind, long};

/// Counts the bodies inside, and the most there ever were.
#[derive(Default)]
struct Inside {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Inside {
    async fn for_a_while(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) async fn a_nested_body_runs_under_the_same_lease(store: &Fixture) {
    let locks = store.manager().await;
    let tokens = locks.lock("k").run_with(async |outer: LockHandle| {
        let inner = locks
            .lock("k")
            .run_with(async |inner: LockHandle| {
                assert_eq!(locks.held().len(), 1);
                assert!(inner.is_valid());
                inner.fencing_token()
            })
            .await;
        assert!(
            outer.is_valid(),
            "the inner body does not end the outer lock"
        );
        (outer.fencing_token(), inner.expect("inside"))
    });
    let (outer, inner) = tokens.await.expect("the lock is free");
    assert_eq!(outer, inner);
    store.is_left_clean().await;
}

pub(super) async fn bodies_nest_as_deep_as_they_are_called(store: &Fixture) {
    async fn down(locks: &LockManager, levels: u32) -> u32 {
        let deeper = async {
            match levels {
                0 => 0,
                _ => 1 + Box::pin(down(locks, levels - 1)).await,
            }
        };
        locks.lock("k").run(deeper).await.expect("inside")
    }
    assert_eq!(down(&store.manager().await, 20).await, 20);
    store.is_left_clean().await;
}

pub(super) async fn between_two_calls_for_one_key_another_key_may_be_taken(store: &Fixture) {
    let locks = store.manager().await;
    let lock = |key| locks.lock(key).ttl(long());
    let innermost = lock("a").run(lock("b").run(lock("a").run(lock("b").run(async { 7 }))));
    assert_eq!(innermost.await.unwrap().unwrap().unwrap().unwrap(), 7);
    store.is_left_clean().await;
}

pub(super) async fn two_branches_of_a_join_exclude_each_other(store: &Fixture) {
    let locks = store.manager().await;
    let inside = Inside::default();
    let branch = || {
        let request = locks.lock("k").wait(Duration::from_secs(60));
        request.run(inside.for_a_while())
    };
    let all = locks
        .lock("k")
        .run(async { tokio::join!(branch(), branch(), branch()) });
    let (first, second, third) = all.await.expect("the lock is free");
    for branch in [first, second, third] {
        branch.expect("its turn came");
    }
    assert_eq!(inside.most.load(Ordering::SeqCst), 1);
}

pub(super) async fn a_branch_that_does_not_wait_is_refused_while_another_is_inside(
    store: &Fixture,
) {
    let locks = store.manager().await;
    let branches = locks.lock("k").run(async {
        tokio::join!(
            locks.lock("k").run(tokio::task::yield_now()),
            locks.lock("k").run(async {}),
        )
    });
    let (first, second) = branches.await.expect("the lock is free");
    first.expect("no other body was inside");
    let refused = second.expect_err("another body was inside");
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert!(refused.retry_after().is_some());
}

pub(super) async fn a_branch_waits_no_longer_than_its_wait(store: &Fixture) {
    let locks = store.manager().await;
    let outer = locks.lock("k").ttl(long()).run(async {
        let endless = locks.lock("k").run(pending::<()>());
        let waiting = locks
            .lock("k")
            .wait(Duration::from_millis(50))
            .run(async {});
        tokio::select! {
            biased;
            _ = endless => unreachable!("the branch never ends"),
            refused = waiting => kind(refused),
        }
    });
    assert_eq!(outer.await.expect("the lock is free"), ErrorKind::Busy);
}

pub(super) async fn a_nested_body_that_is_dropped_lets_the_next_one_in(store: &Fixture) {
    let locks = store.manager().await;
    let outer = locks.lock("k").run(async {
        {
            let mut dropped = pin!(locks.lock("k").run(pending::<()>()));
            assert!(is_pending(dropped.as_mut()).await, "the body is inside");
            assert_eq!(kind(locks.lock("k").run(async {}).await), ErrorKind::Busy);
        }
        locks.lock("k").run(async { "next" }).await
    });
    assert_eq!(
        outer.await.expect("the lock is free").expect("inside"),
        "next"
    );
    store.is_left_clean().await;
}

/// Returns whether one poll leaves the future pending.
async fn is_pending<F: Future>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
}

pub(super) async fn a_spawned_task_is_not_inside(store: &Fixture) {
    let locks = store.manager().await;
    let stranger = locks.lock("k").run(async {});
    let refused = locks
        .lock("k")
        .ttl(long())
        .run(async { tokio::spawn(stranger).await });
    let refused = refused.await.expect("the lock is free").expect("no panic");
    assert_eq!(kind(refused), ErrorKind::Busy);
}

pub(super) async fn a_task_that_a_body_happens_to_poll_is_not_inside(store: &Fixture) {
    let locks = store.manager().await;
    let tasks = tokio::task::LocalSet::new();
    let stranger = tasks.spawn_local(locks.lock("k").run(async {}));
    let refused = locks.lock("k").ttl(long()).run(tasks.run_until(stranger));
    let refused = refused.await.expect("the lock is free").expect("no panic");
    assert_eq!(kind(refused), ErrorKind::Busy);
}

pub(super) async fn a_scope_takes_a_spawned_task_inside(store: &Fixture) {
    let locks = store.manager().await;
    let token = locks.lock("k").run_with(async |lock: LockHandle| {
        let nested = locks
            .lock("k")
            .run_with(async |inner: LockHandle| inner.fencing_token());
        let scope = lock.clone();
        let inner = tokio::spawn(async move { scope.scope(nested).await }).await;
        assert_eq!(
            inner.expect("no panic").expect("inside"),
            lock.fencing_token()
        );
    });
    token.await.expect("the lock is free");
    store.is_left_clean().await;
}

pub(super) async fn a_spawned_scope_and_its_parent_exclude_each_other(store: &Fixture) {
    let locks = store.manager().await;
    let inside = Arc::new(Inside::default());
    let branch = || {
        let inside = Arc::clone(&inside);
        let request = locks.lock("k").wait(Wait::Forever);
        request.run(async move { inside.for_a_while().await })
    };
    let outer = locks.lock("k").run_with(async |lock: LockHandle| {
        let (one, two) = (branch(), branch());
        let (here, there) = (lock.clone(), lock.clone());
        let spawned = tokio::spawn(async move { there.scope(one).await });
        let (spawned, scoped, plain) = tokio::join!(spawned, here.scope(two), branch());
        spawned.expect("no panic").expect("its turn came");
        scoped.expect("its turn came");
        plain.expect("its turn came");
    });
    outer.await.expect("the lock is free");
    assert_eq!(inside.most.load(Ordering::SeqCst), 1);
}

pub(super) async fn a_guard_opens_a_scope_by_hand(store: &Fixture) {
    let locks = store.manager().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let outside = locks.lock("k").run(async {}).await;
    assert_eq!(kind(outside), ErrorKind::Busy, "a guard alone is no scope");
    let inside = guard.scope(locks.lock("k").run(async { 7 })).await;
    assert_eq!(inside.expect("inside"), 7);
    guard.release().await.expect("still held");
    store.is_left_clean().await;
}

pub(super) async fn another_manager_does_not_enter(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let outer = locks
        .lock("k")
        .ttl(long())
        .run(others.lock("k").run(async {}));
    assert_eq!(
        kind(outer.await.expect("the lock is free")),
        ErrorKind::Busy
    );
}

pub(super) async fn a_call_that_must_not_enter_is_refused_instead_of_waiting_for_itself(
    store: &Fixture,
) {
    let locks = store.manager().await;
    let outer = locks.lock("k").run(async {
        let request = locks.lock("k").wait(Wait::Forever);
        request.reentrant(Reentrancy::Refuse).run(async {}).await
    });
    let refused = outer
        .await
        .expect("the lock is free")
        .expect_err("the call would wait for itself");
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert_eq!(refused.key(), Some("k"));
    let alone = locks
        .lock("k")
        .reentrant(Reentrancy::Refuse)
        .run(async { 7 });
    assert_eq!(alone.await.expect("no other body is inside"), 7);
}

pub(super) async fn acquiring_never_enters_and_does_not_wait_for_itself(store: &Fixture) {
    let locks = store.manager().await;
    let outer = locks.lock("k").ttl(long()).run(async {
        let once = locks.lock("k").try_acquire().await.expect("an answer");
        assert!(once.is_none(), "the outer body holds the lock");
        let waiting = locks.lock("k").wait(Wait::Forever).acquire().await;
        assert_eq!(kind(waiting), ErrorKind::Invalid);
    });
    outer.await.expect("the lock is free");
}
