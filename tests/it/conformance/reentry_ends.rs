//! Tests how nested bodies and their outer lock end: by loss, limit, cooldown, release and panic.

use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

use lock_core::{ErrorKind, LockHandle, OnLost, Renew};
use lock_tests::wait;
use tokio::sync::oneshot;

use super::{Fixture, kind, long, short};

pub(super) async fn the_loss_of_the_outer_lock_ends_the_inner_body_too(store: &Fixture) {
    let locks = store.manager().await;
    let outer = locks
        .lock("k")
        .ttl(short())
        .on_lost(OnLost::Ignore)
        .run(async {
            let inner = locks.lock("k").ttl(short()).run(async {
                store.delete("k");
                pending::<()>().await;
            });
            assert_eq!(kind(inner.await), ErrorKind::Lost);
            let late = locks.lock("k").run(async {}).await;
            assert_eq!(kind(late), ErrorKind::Lost, "no body enters a lost lock");
            "to its end"
        });
    assert_eq!(outer.await.expect("the loss is ignored"), "to its end");
}

pub(super) async fn a_nested_limit_ends_the_nested_body_only(store: &Fixture) {
    let locks = store.manager().await;
    let outer = locks
        .lock("k")
        .ttl(long())
        .run_with(async |lock: LockHandle| {
            let request = locks.lock("k").max_hold(Duration::from_millis(20));
            assert_eq!(kind(request.run(pending::<()>()).await), ErrorKind::Lost);
            assert!(lock.is_valid());
            locks.lock("k").run(async { "again" }).await
        });
    assert_eq!(outer.await.expect("not lost").expect("inside"), "again");
    store.is_left_clean().await;
}

pub(super) async fn a_nested_cooldown_is_applied_when_the_outer_lock_is_released(store: &Fixture) {
    let locks = store.manager().await;
    let outer = locks.lock("k").run(async {
        let inner = locks.lock("k").cooldown(long()).run(async {}).await;
        inner.expect("inside");
        locks.lock("k").run(async {}).await.expect("still inside");
    });
    outer.await.expect("the lock is free");
    let refused = locks
        .lock("k")
        .acquire()
        .await
        .expect_err("the lock cools down");
    assert!(refused.retry_after().expect("exact") > long() / 2);
}

pub(super) async fn a_nested_body_lengthens_a_lease_that_is_too_short_for_it(store: &Fixture) {
    let locks = store.manager().await;
    let outer = locks.lock("k").ttl(short()).renew(Renew::Off);
    let lengthened = outer.run_with(async |lock: LockHandle| {
        let inner = locks.lock("k").ttl(long()).renew(Renew::Off);
        inner
            .run(wait::eventually("the lease is extended", async || {
                lock.remaining() > long() / 2
            }))
            .await
    });
    lengthened.await.expect("not lost").expect("not lost");
}

pub(super) async fn a_lease_without_renewal_is_renewed_while_a_nested_body_needs_it(
    store: &Fixture,
) {
    let locks = store.manager().await;
    let outer = locks.lock("k").ttl(short()).renew(Renew::Off);
    let outcome = outer.run(async {
        let inner = locks
            .lock("k")
            .ttl(short())
            .run(tokio::time::sleep(short() * 3));
        inner.await.expect("renewed");
        pending::<()>().await;
    });
    assert_eq!(
        kind(outcome.await),
        ErrorKind::Lost,
        "the lease is not renewed after the nested body"
    );
}

pub(super) async fn a_body_that_outlives_its_owner_keeps_the_lock_to_its_end(store: &Fixture) {
    let locks = store.manager().await;
    let (entered, has_entered) = oneshot::channel();
    let (end, ends) = oneshot::channel::<()>();
    let nested = locks
        .lock("k")
        .ttl(long())
        .run_with(async |lock: LockHandle| {
            entered.send(()).expect("the owner listens");
            ends.await.expect("the test ends the body");
            assert!(lock.is_valid());
        });
    let owner = locks
        .lock("k")
        .ttl(long())
        .run_with(async |lock: LockHandle| {
            let task = tokio::spawn(async move { lock.scope(nested).await });
            has_entered.await.expect("the body enters");
            (task,)
        });
    let (task,) = owner.await.expect("the lock is free");
    assert_eq!(kind(locks.lock("k").acquire().await), ErrorKind::Busy);
    let left = locks.drain(Duration::from_millis(20)).await;
    assert!(
        !left.is_complete(),
        "the drain waits for the body: {left:?}"
    );
    end.send(()).expect("the body waits");
    task.await.expect("no panic").expect("the body ends");
    store.is_left_clean().await;
}

pub(super) async fn once_the_lock_is_released_its_scope_has_no_lock(store: &Fixture) {
    let locks = store.manager().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let handle = guard.handle();
    guard.release().await.expect("held");
    let other = store.manager().await;
    let late = handle.scope(locks.lock("k").run(async {
        assert_eq!(kind(other.lock("k").acquire().await), ErrorKind::Busy);
    }));
    late.await.expect("the late call takes a lock of its own");
    store.is_left_clean().await;
}

pub(super) async fn a_panic_in_a_nested_body_lets_the_next_one_in(store: &Fixture) {
    let locks = store.manager().await;
    let outer = locks.lock("k").ttl(long()).run(async {
        let mut panics = Box::pin(locks.lock("k").run(async { panic!("on purpose") }));
        let caught = poll_fn(|context| {
            let poll = AssertUnwindSafe(|| panics.as_mut().poll(context).is_pending());
            Poll::Ready(catch_unwind(poll))
        });
        assert!(caught.await.is_err(), "the panic goes on");
        drop(panics);
        locks.lock("k").run(async { "next" }).await
    });
    assert_eq!(
        outer.await.expect("the lock is free").expect("inside"),
        "next"
    );
    store.is_left_clean().await;
}
