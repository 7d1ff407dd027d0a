//! Futures that are polled for a while and then left alone, as in a `select!` whose other branch runs:
//! none of them is needed for others to go on.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use lock_core::{Error, ErrorKind, LockGuard, LockManager, LockRequest, Wait};
use lock_tests::wait;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;

use super::{Fixture, kind, long};

type Future<T> = Pin<Box<dyn std::future::Future<Output = T> + Send>>;
type Waiting = Future<Result<LockGuard, Error>>;

/// Polls it once; it is not done.
async fn polled<T>(future: &mut Future<T>) {
    let pending = poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await;
    assert!(pending, "it has to wait");
}

/// A waiter that stands in the store's queue, and is left alone there.
async fn left_in_the_queue(store: &Fixture, locks: &LockManager) -> Waiting {
    let waiter = locks.lock("k").ttl(long()).wait(Wait::Forever).acquire();
    let mut waiter: Waiting = Box::pin(waiter);
    wait::eventually("it stands in the store's queue", async || {
        polled(&mut waiter).await;
        store.waiting() == 1
    })
    .await;
    // It has heard that it was refused.
    for _ in 0..20 {
        polled(&mut waiter).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    waiter
}

/// A waiter behind others of its process, left alone there.
async fn left_behind_others(locks: &LockManager) -> Waiting {
    let waiter = locks.lock("k").ttl(long()).wait(Wait::Forever).acquire();
    let mut waiter: Waiting = Box::pin(waiter);
    polled(&mut waiter).await;
    waiter
}

/// A question for a free lock that is left alone once it has been sent. `None`: the store answers at once.
async fn left_with_a_question(store: &Fixture, locks: &LockManager) -> Option<Waiting> {
    // The connection is there, so that one poll sends it.
    held(locks).await.release().await.expect("held");
    store.is_left_clean().await;
    let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
    let request = request.acquire_timeout(Duration::from_millis(300));
    let mut question: Waiting = Box::pin(request.acquire());
    let now = poll_fn(|context| Poll::Ready(question.as_mut().poll(context))).await;
    if now.is_ready() {
        return None;
    }
    wait::eventually("the store has granted it", async || store.taken() > 0).await;
    Some(question)
}

/// A request that does not wait until what is left alone is given back for the sake of other processes.
fn soon(locks: &LockManager) -> LockRequest {
    let request = locks.lock("k").ttl(long());
    request.acquire_timeout(Duration::from_millis(1_500))
}

async fn held(locks: &LockManager) -> LockGuard {
    let request = locks.lock("k").ttl(long());
    request.acquire().await.expect("free")
}

/// A waiter that is polled.
async fn waits(locks: &LockManager) -> JoinHandle<Result<LockGuard, Error>> {
    let waiter = tokio::spawn(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    yield_now().await;
    waiter
}

async fn served(waiter: JoinHandle<Result<LockGuard, Error>>) -> LockGuard {
    let served = timeout(wait::PATIENCE, waiter).await;
    let guard = served.expect("its turn comes").expect("no panic");
    guard.expect("its turn")
}

pub(super) async fn a_waiter_that_is_not_polled_keeps_no_newcomer_from_a_lock_that_is_given_to_it(
    store: &Fixture,
) {
    let (owner, locks) = (store.manager().await, store.manager().await);
    let first = held(&owner).await;
    let waiter = left_in_the_queue(store, &locks).await;
    first.release().await.expect("held");
    wait::eventually("a newcomer has it", async || {
        let attempt = soon(&locks).try_acquire().await;
        attempt.expect("the store answers").is_some()
    })
    .await;
    drop(waiter);
    store.is_left_clean().await;
}

pub(super) async fn a_waiter_that_is_not_polled_keeps_nobody_behind_it_waiting(store: &Fixture) {
    let (owner, locks) = (store.manager().await, store.manager().await);
    let first = held(&owner).await;
    let waiter = left_in_the_queue(store, &locks).await;
    let behind = waits(&locks).await;
    first.release().await.expect("held");
    drop(served(behind).await);
    drop(waiter);
    store.is_left_clean().await;
}

pub(super) async fn a_lease_that_is_passed_to_a_waiter_that_is_not_polled_goes_on(store: &Fixture) {
    let locks = store.manager().await;
    let first = held(&locks).await;
    let waiter = left_behind_others(&locks).await;
    let behind = waits(&locks).await;
    first.release().await.expect("held");
    served(behind).await.release().await.expect("held");
    drop(waiter);
    store.is_left_clean().await;
}

pub(super) async fn a_lease_that_no_waiter_picks_up_goes_back_to_the_store(store: &Fixture) {
    let (locks, other) = (store.manager().await, store.manager().await);
    let first = held(&locks).await;
    let waiter = left_behind_others(&locks).await;
    let elsewhere = waits(&other).await;
    first.release().await.expect("held");
    let guard = served(elsewhere).await;
    assert!(locks.held().is_empty());
    guard.release().await.expect("held");
    let guard = timeout(wait::PATIENCE, waiter).await;
    drop(guard.expect("its turn comes").expect("free again"));
    store.is_left_clean().await;
}

pub(super) async fn a_question_that_is_not_polled_keeps_nobody_of_its_manager_waiting(
    store: &Fixture,
) {
    let locks = store.manager().await;
    let question = left_with_a_question(store, &locks).await;
    let attempt = soon(&locks).try_acquire().await;
    let guard = attempt.expect("the store answers").expect("nobody has it");
    guard.release().await.expect("held");
    drop(question);
    store.is_left_clean().await;
}

pub(super) async fn a_question_that_is_not_polled_is_undone_for_other_managers(store: &Fixture) {
    let (locks, other) = (store.manager().await, store.manager().await);
    let Some(question) = left_with_a_question(store, &locks).await else {
        return;
    };
    let elsewhere = waits(&other).await;
    served(elsewhere).await.release().await.expect("held");
    let guard = timeout(wait::PATIENCE, question).await;
    drop(guard.expect("its turn comes").expect("free again"));
    store.is_left_clean().await;
}

pub(super) async fn many_waiters_that_are_not_polled_keep_nobody_waiting(store: &Fixture) {
    let (owner, locks) = (store.manager().await, store.manager().await);
    let first = held(&owner).await;
    let mut waiters = vec![left_in_the_queue(store, &locks).await];
    for _ in 0..20 {
        waiters.push(left_behind_others(&locks).await);
    }
    let behind = waits(&locks).await;
    first.release().await.expect("held");
    served(behind).await.release().await.expect("held");
    // The lock has been passed to one of them, or lies in the store: all are served once they are polled.
    for waiter in waiters {
        let guard = timeout(wait::PATIENCE, waiter).await;
        let guard = guard.expect("its turn comes").expect("its turn");
        guard.release().await.expect("held");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_waiter_that_was_not_polled_stands_in_line_again_where_it_stood(
    store: &Fixture,
) {
    let (owner, locks) = (store.manager().await, store.manager().await);
    let first = held(&owner).await;
    let mut waiter = left_in_the_queue(store, &locks).await;
    let second = waits(&locks).await;
    first.release().await.expect("held");
    let second = served(second).await;
    let last = waits(&locks).await;
    polled(&mut waiter).await;
    second.release().await.expect("held");
    let waiter = served(tokio::spawn(waiter)).await;
    let fence = waiter.fencing_token();
    waiter.release().await.expect("held");
    assert!(fence < served(last).await.fencing_token());
}

pub(super) async fn a_wait_that_ended_unpolled_keeps_nobody_behind_it_waiting(store: &Fixture) {
    let (owner, locks) = (store.manager().await, store.manager().await);
    let first = held(&owner).await;
    let wait = Duration::from_millis(200);
    let request = locks.lock("k").ttl(long()).wait(wait);
    let mut waiter: Waiting = Box::pin(request.acquire());
    for _ in 0..20 {
        polled(&mut waiter).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let behind = waits(&locks).await;
    tokio::time::sleep(wait).await;
    first.release().await.expect("held");
    drop(served(behind).await);
    drop(waiter);
    store.is_left_clean().await;
}

pub(super) async fn draining_takes_back_what_waiters_that_are_not_polled_have(store: &Fixture) {
    let owner = store.manager().await;
    let first = held(&owner).await;
    let given = store.manager().await;
    let waiter = left_in_the_queue(store, &given).await;
    first.release().await.expect("held");
    is_drained(store, &given).await;
    let passed = store.manager().await;
    let first = held(&passed).await;
    let second = left_behind_others(&passed).await;
    first.release().await.expect("held");
    is_drained(store, &passed).await;
    let asked = store.manager().await;
    let question = left_with_a_question(store, &asked).await;
    is_drained(store, &asked).await;
    for unpolled in [waiter, second].into_iter().chain(question) {
        let ended = timeout(wait::PATIENCE, unpolled).await;
        assert_eq!(kind(ended.expect("at once")), ErrorKind::Unavailable);
    }
}

async fn is_drained(store: &Fixture, locks: &LockManager) {
    let left = locks.drain(wait::PATIENCE).await;
    assert_eq!((left.held(), left.releasing()), (0, 0));
    wait::eventually("no key is taken", async || store.taken() == 0).await;
}
