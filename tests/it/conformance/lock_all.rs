//! Tests locks of several keys: all of them, or none.

use std::time::Duration;

use lock_core::{ErrorKind, LockGuard, LockManager, LockRequest, Wait};
use lock_tests::wait;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Fixture, kind, long, short};

fn all(locks: &LockManager, keys: &[&str]) -> LockRequest {
    locks.lock_all(keys.iter().copied()).ttl(long())
}

async fn one(locks: &LockManager, key: &str) -> LockGuard {
    locks.lock(key).ttl(long()).acquire().await.expect("free")
}

fn spawned(request: LockRequest) -> JoinHandle<Result<LockGuard, lock_core::Error>> {
    tokio::spawn(request.wait(Wait::Forever).acquire())
}

async fn its_turn(waiter: JoinHandle<Result<LockGuard, lock_core::Error>>) -> LockGuard {
    let guard = timeout(wait::PATIENCE, waiter).await;
    let guard = guard.expect("its turn comes").expect("no panic");
    guard.expect("its turn")
}

async fn is_free(locks: &LockManager, key: &str) -> bool {
    let guard = locks.lock(key).ttl(long()).try_acquire().await;
    match guard.expect("the store answers") {
        Some(guard) => {
            guard.release().await.expect("held");
            true
        }
        None => false,
    }
}

pub(super) async fn all_keys_are_taken_or_none(store: &Fixture) {
    let (locks, other) = (store.manager().await, store.manager().await);
    let guard = all(&locks, &["b", "a", "b"]).acquire().await.expect("free");
    assert_eq!(guard.keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(store.taken(), 2);
    for locks in [&locks, &other] {
        for keys in [&["a", "c"], &["c", "b"]] {
            let refused = all(locks, keys).acquire().await.expect_err("taken");
            assert_eq!(refused.kind(), ErrorKind::Busy);
            assert!(["a", "b"].contains(&refused.key().expect("it names the key")));
            assert!(
                all(locks, keys)
                    .try_acquire()
                    .await
                    .expect("an answer")
                    .is_none()
            );
            assert!(!is_free(locks, "a").await);
        }
        wait::eventually("c is free", async || is_free(locks, "c").await).await;
    }
    guard.release().await.expect("held");
    for key in ["a", "b"] {
        assert!(is_free(&other, key).await);
    }
    store.is_left_clean().await;
}

pub(super) async fn one_key_of_several_times_is_an_ordinary_lock(store: &Fixture) {
    let locks = store.manager().await;
    let guard = all(&locks, &["k", "k"]).acquire().await.expect("free");
    assert_eq!((guard.keys().count(), store.taken()), (1, 1));
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn no_key_and_too_many_are_invalid(store: &Fixture) {
    let locks = store.manager().await;
    let many: Vec<String> = (0..17).map(|number| format!("k{number}")).collect();
    assert_eq!(
        kind(locks.lock_all(&many).acquire().await),
        ErrorKind::Invalid
    );
    assert_eq!(kind(all(&locks, &[]).acquire().await), ErrorKind::Invalid);
    assert_eq!(
        kind(all(&locks, &["a", ""]).acquire().await),
        ErrorKind::Invalid
    );
    let guard = locks.lock_all(&many[1..]).ttl(long()).acquire().await;
    assert_eq!(store.taken(), 16);
    guard
        .expect("sixteen are allowed")
        .release()
        .await
        .expect("held");
    store.is_left_clean().await;
}

pub(super) async fn keys_in_any_order_never_deadlock(store: &Fixture) {
    let managers = [store.manager().await, store.manager().await];
    let mut tasks = Vec::new();
    for turn in 0..6 {
        let locks = managers[turn % 2].clone();
        tasks.push(tokio::spawn(async move {
            let orders = [&["a", "b"], &["b", "a"], &["b", "c"], &["c", "a"]];
            for round in 0..8 {
                let request = all(&locks, orders[(turn + round) % 4]);
                let guard = request
                    .wait(Wait::Forever)
                    .acquire()
                    .await
                    .expect("its turn");
                tokio::task::yield_now().await;
                guard.release().await.expect("held");
            }
        }));
    }
    for task in tasks {
        let ended = timeout(wait::PATIENCE * 3, task).await;
        ended.expect("no task waits for ever").expect("no panic");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_waiter_for_several_keys_holds_none_while_it_waits_for_the_first(
    store: &Fixture,
) {
    let (locks, other) = (store.manager().await, store.manager().await);
    let taken = one(&locks, "b").await;
    let waiter = spawned(all(&other, &["a", "b", "c"]));
    if store.takes_several_at_once() {
        wait::eventually("the waiter stands in the queue", async || {
            store.waiting() == 1
        })
        .await;
        for key in ["a", "c"] {
            assert!(is_free(&locks, key).await, "the waiter holds no key");
        }
    }
    taken.release().await.expect("held");
    let guard = its_turn(waiter).await;
    assert_eq!(store.taken(), 3);
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_waiter_that_is_refused_again_acquires_the_keys_in_order(store: &Fixture) {
    let (locks, other) = (store.manager().await, store.manager().await);
    let (first, last) = (one(&locks, "a").await, one(&locks, "c").await);
    let waiter = spawned(all(&other, &["a", "b", "c"]));
    wait::eventually("the waiter waits for the first key", async || {
        store.waiting() == 1
    })
    .await;
    first.release().await.expect("held");
    // It got the first key, found the last one taken, gave the key back and has it again by now.
    wait::eventually("the waiter keeps the lower keys", async || {
        store.taken() == 3 && store.waiting() == 1
    })
    .await;
    last.release().await.expect("held");
    let guard = its_turn(waiter).await;
    assert_eq!(guard.keys().count(), 3);
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_waiter_holds_no_higher_key_while_it_waits_for_a_lower_one(store: &Fixture) {
    if !store.takes_several_at_once() {
        // The keys are taken in order from the start.
        return;
    }
    let (locks, other) = (store.manager().await, store.manager().await);
    let last = one(&locks, "c").await;
    let waiter = spawned(all(&other, &["a", "c"]));
    wait::eventually("the waiter waits for the last key", async || {
        store.waiting() == 1
    })
    .await;
    let first = one(&locks, "a").await;
    last.release().await.expect("held");
    // This owner takes its keys in the wrong order, and must not meet a waiter that does so too.
    let last = locks.lock("c").ttl(long()).wait(Wait::Forever).acquire();
    let last = timeout(wait::PATIENCE, last).await;
    let last = last.expect("the waiter has given it back").expect("free");
    first.release().await.expect("held");
    last.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_waiter_that_gives_up_leaves_no_key(store: &Fixture) {
    let (locks, other) = (store.manager().await, store.manager().await);
    let taken = one(&locks, "b").await;
    for order in [["a", "b"], ["b", "c"]] {
        let request = all(&other, &order).wait(Duration::from_millis(100));
        assert_eq!(kind(request.acquire().await), ErrorKind::Busy);
    }
    let waiter = spawned(all(&other, &["a", "b", "c"]));
    wait::eventually("the waiter stands in the queue", async || {
        store.waiting() == 1
    })
    .await;
    waiter.abort();
    wait::eventually("only the other owner's key is left", async || {
        store.taken() == 1 && store.waiting() == 0
    })
    .await;
    taken.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn an_acquire_of_several_keys_dropped_after_any_number_of_polls_leaves_nothing(
    store: &Fixture,
) {
    let locks = store.manager().await;
    for polls in 1..12 {
        let mut acquiring = Box::pin(all(&locks, &["a", "b", "c"]).acquire());
        let mut left = polls;
        let ended = std::future::poll_fn(|context| {
            left -= 1;
            match acquiring.as_mut().poll(context) {
                std::task::Poll::Ready(ended) => std::task::Poll::Ready(Some(ended)),
                std::task::Poll::Pending if left == 0 => std::task::Poll::Ready(None),
                std::task::Poll::Pending => std::task::Poll::Pending,
            }
        })
        .await;
        drop(acquiring);
        drop(ended);
        wait::eventually("nothing is left", async || store.taken() == 0).await;
    }
    store.is_left_clean().await;
}

pub(super) async fn a_dropped_guard_of_several_keys_releases_all(store: &Fixture) {
    let (locks, other) = (store.manager().await, store.manager().await);
    for end in [drop as fn(LockGuard), LockGuard::release_in_background] {
        end(all(&locks, &["a", "b"]).acquire().await.expect("free"));
        let request = all(&other, &["b", "a"]).wait(Wait::Forever);
        let next = timeout(wait::PATIENCE, request.acquire()).await;
        let next = next.expect("both are released").expect("free");
        next.release().await.expect("held");
    }
    store.is_left_clean().await;
}

pub(super) async fn the_token_of_several_keys_is_above_all_earlier_ones_and_below_all_later_ones(
    store: &Fixture,
) {
    let (locks, other) = (store.manager().await, store.manager().await);
    let mut highest = None;
    for round in 0..5 {
        for key in ["a", "b", "c"] {
            let guard = one(&other, key).await;
            highest = highest.max(Some(guard.fencing_token()));
            guard.release().await.expect("held");
        }
        let guard = all(&locks, &["a", "b", "c"]).acquire().await.expect("free");
        assert!(Some(guard.fencing_token()) > highest, "round {round}");
        highest = Some(guard.fencing_token());
        match round % 2 {
            0 => guard.release().await.expect("held"),
            _ => drop(guard),
        }
        for key in ["c", "b", "a"] {
            let request = other.lock(key).ttl(long()).wait(Wait::Forever);
            let guard = timeout(wait::PATIENCE, request.acquire()).await;
            let guard = guard.expect("released").expect("free");
            assert!(
                Some(guard.fencing_token()) > highest,
                "round {round}, {key}"
            );
            guard.release().await.expect("held");
        }
    }
    store.is_left_clean().await;
}

pub(super) async fn the_loss_of_one_key_is_the_loss_of_all(store: &Fixture) {
    let locks = store.manager().await;
    for lost in ["a", "b", "c"] {
        let guard = locks.lock_all(["a", "b", "c"]).ttl(short()).acquire().await;
        let guard = guard.expect("free");
        assert!(guard.is_valid());
        store.delete(lost);
        let loss = timeout(wait::PATIENCE, guard.lost()).await;
        loss.expect("the loss is noticed");
        assert!(!guard.is_valid());
        assert!(guard.remaining().is_zero());
        assert_eq!(kind(guard.release().await), ErrorKind::Lost);
        wait::eventually("the other keys are released", async || store.taken() == 0).await;
    }
    store.is_left_clean().await;
}

pub(super) async fn a_body_under_several_keys_is_dropped_with_the_first_that_is_lost(
    store: &Fixture,
) {
    let locks = store.manager().await;
    let request = locks.lock_all(["a", "b"]).ttl(short());
    let body = async {
        store.delete("b");
        std::future::pending::<()>().await;
    };
    let ended = timeout(wait::PATIENCE, request.run(body)).await;
    assert_eq!(kind(ended.expect("the loss is noticed")), ErrorKind::Lost);
    store.is_left_clean().await;
}

pub(super) async fn several_keys_are_renewed_and_outlive_their_ttl(store: &Fixture) {
    let (locks, other) = (store.manager().await, store.manager().await);
    let guard = locks.lock_all(["a", "b"]).ttl(short()).acquire().await;
    let guard = guard.expect("free");
    tokio::time::sleep(short() * 2).await;
    assert!(guard.is_valid());
    assert!(!is_free(&other, "a").await && !is_free(&other, "b").await);
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn without_renewal_several_keys_are_lost_at_their_deadline(store: &Fixture) {
    let locks = store.manager().await;
    let request = locks.lock_all(["a", "b"]).ttl(short());
    let request = request.renew(lock_core::Renew::Off);
    let guard = request.acquire().await.expect("free");
    assert!(guard.remaining() <= short());
    timeout(wait::PATIENCE, guard.lost())
        .await
        .expect("it runs out");
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    store.is_left_clean().await;
}

pub(super) async fn several_keys_held_too_long_are_lost_together(store: &Fixture) {
    let locks = store.manager().await;
    let request = all(&locks, &["a", "b"]).max_hold(short() / 4);
    let guard = request.acquire().await.expect("free");
    timeout(wait::PATIENCE, guard.lost())
        .await
        .expect("its time ends");
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    store.is_left_clean().await;
}

pub(super) async fn each_of_several_keys_cools_down(store: &Fixture) {
    let (locks, other) = (store.manager().await, store.manager().await);
    let request = all(&locks, &["a", "b"]).cooldown(long());
    let guard = request.acquire().await.expect("free");
    guard.release().await.expect("held");
    for key in ["a", "b"] {
        let refused = other.lock(key).acquire().await.expect_err("it cools down");
        assert_eq!(refused.code(), "lock_cooling_down");
        other.forget(key).await.expect("the store answers");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_nested_call_enters_the_lock_of_several_keys(store: &Fixture) {
    let locks = store.manager().await;
    let outer = all(&locks, &["a", "b"]).run_with(|lock| {
        let locks = locks.clone();
        async move {
            for keys in [&["a"][..], &["b"], &["b", "a"]] {
                let inner = all(&locks, keys).run_with(|lock| async move { lock.fencing_token() });
                assert_eq!(inner.await.expect("it enters"), lock.fencing_token());
            }
            let single = locks.lock("b").ttl(long()).run(async {}).await;
            single.expect("it enters");
            let partly = all(&locks, &["b", "c"]).wait(short());
            assert_eq!(kind(partly.run(async {}).await), ErrorKind::Invalid);
            let own = all(&locks, &["a", "b"]).wait(short());
            assert_eq!(kind(own.acquire().await), ErrorKind::Invalid);
        }
    });
    outer.await.expect("free");
    store.is_left_clean().await;
}

pub(super) async fn waiting_for_ever_for_several_keys_inside_another_lock_is_invalid(
    store: &Fixture,
) {
    let locks = store.manager().await;
    let outer = locks.lock("outer").ttl(long()).run(async {
        let inner = || all(&locks, &["a", "b"]);
        assert_eq!(
            kind(inner().wait(Wait::Forever).acquire().await),
            ErrorKind::Invalid
        );
        let error = inner()
            .wait(Wait::Forever)
            .run(async {})
            .await
            .expect_err("nested");
        assert!(error.to_string().contains("ends"), "{error}");
        inner()
            .wait(short())
            .run(async {})
            .await
            .expect("a wait that ends");
    });
    outer.await.expect("free");
    store.is_left_clean().await;
}

pub(super) async fn several_keys_leave_no_record(store: &Fixture) {
    let locks = store.manager().await;
    let guard = all(&locks, &["a", "b"]).acquire().await.expect("free");
    assert_eq!(kind(guard.remember("done", long())), ErrorKind::Invalid);
    guard.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_body_that_outlives_its_owner_keeps_all_keys(store: &Fixture) {
    let locks = store.manager().await;
    let guard = all(&locks, &["a", "b"]).acquire().await.expect("free");
    let handle = guard.handle();
    let inner = locks.lock("b").ttl(long());
    let (entered, is_in) = tokio::sync::oneshot::channel();
    let (leave, left) = tokio::sync::oneshot::channel::<()>();
    let body = tokio::spawn(async move {
        let inner = inner.run(async {
            entered.send(()).expect("the test listens");
            left.await.expect("the test says so");
        });
        handle.scope(inner).await
    });
    is_in.await.expect("it enters");
    drop(guard);
    let other = store.manager().await;
    assert!(!is_free(&other, "a").await && !is_free(&other, "b").await);
    leave.send(()).expect("it waits");
    body.await.expect("no panic").expect("it entered");
    store.is_left_clean().await;
}

pub(super) async fn tasks_of_one_process_pass_keys_of_several_on(store: &Fixture) {
    let locks = store.manager().await;
    let guard = all(&locks, &["a", "b"]).acquire().await.expect("free");
    let fence = guard.fencing_token();
    let singles = ["a", "b"].map(|key| spawned(locks.lock(key).ttl(long())));
    let pair = spawned(all(&locks, &["b", "a"]));
    tokio::task::yield_now().await;
    guard.release().await.expect("held");
    for waiter in singles {
        let guard = its_turn(waiter).await;
        assert!(guard.fencing_token() > fence);
        guard.release().await.expect("held");
    }
    let pair = its_turn(pair).await;
    assert!(pair.fencing_token() > fence);
    pair.release().await.expect("held");
    store.is_left_clean().await;
}
