//! Tests a lock of several keys while it is held, and its end: one token, one loss, one release.

use lock_core::{ErrorKind, Wait};
use lock_tests::wait;
use tokio::time::timeout;

use super::lock_all::{all, is_free, spawned};
use super::{Fixture, kind, long, short};
use crate::steps::its_turn;

pub(super) async fn the_token_of_several_keys_is_above_all_earlier_ones_and_below_all_later_ones(
    store: &Fixture,
) {
    let (locks, other) = (store.manager().await, store.manager().await);
    let mut highest = None;
    for round in 0..5 {
        for key in ["a", "b", "c"] {
            let guard = other.lock(key).ttl(long()).acquire().await.expect("free");
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
    let ttl = store.renewable();
    let guard = locks.lock_all(["a", "b"]).ttl(ttl).acquire().await;
    let guard = guard.expect("free");
    tokio::time::sleep(ttl * 2).await;
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
