//! Tests how several keys are acquired: all of them, or none.

use std::time::Duration;

use lock_core::{ErrorKind, LockGuard, LockManager, LockRequest, Wait};
use lock_tests::wait;
use tokio::time::timeout;

use super::{Fixture, kind, long};
use crate::steps::{Waiter, its_turn, taken};

pub(super) fn all(locks: &LockManager, keys: &[&str]) -> LockRequest {
    locks.lock_all(keys.iter().copied()).ttl(long())
}

pub(super) fn spawned(request: LockRequest) -> Waiter {
    tokio::spawn(request.wait(Wait::Forever).acquire())
}

pub(super) async fn is_free(locks: &LockManager, key: &str) -> bool {
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
    let taken = taken(&locks, "b", long()).await;
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
    let (first, last) = (
        taken(&locks, "a", long()).await,
        taken(&locks, "c", long()).await,
    );
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
    let last = taken(&locks, "c", long()).await;
    let waiter = spawned(all(&other, &["a", "c"]));
    wait::eventually("the waiter waits for the last key", async || {
        store.waiting() == 1
    })
    .await;
    let first = taken(&locks, "a", long()).await;
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
    let taken = taken(&locks, "b", long()).await;
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

pub(super) async fn several_keys_are_not_refused_by_a_lock_of_their_process_that_was_dropped(
    store: &Fixture,
) {
    let locks = store.manager().await;
    for round in 0..200 {
        let request = match round % 4 {
            0 => locks.lock("a").read(),
            1 => locks.lock("a"),
            2 => locks.lock_all(["a", "c"]),
            _ if store.is_of_several() => locks.lock("a").read(),
            _ => locks.lock("a").permits(2),
        };
        drop(request.ttl(long()).acquire().await.expect("free"));
        let both = locks.lock_all(["a", "b"]).ttl(long()).try_acquire().await;
        let both = both.expect("an answer");
        let both = both.unwrap_or_else(|| panic!("refused in round {round}"));
        both.release().await.expect("held");
    }
    store.is_left_clean().await;
}
