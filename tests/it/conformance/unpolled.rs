//! Tests futures that are polled for a while and then left alone.
//!
//! An example is a `select!` whose other branch runs.
//!
//! No other caller may depend on such a future.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use lock_core::{Error, ErrorKind, LockGuard, LockManager, LockRequest, Wait};
use lock_tests::wait;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;

use super::{Fixture, kind, long, shares};
use crate::steps::{drains, its_turn};

type Future<T> = Pin<Box<dyn std::future::Future<Output = T> + Send>>;
type Waiting = Future<Result<LockGuard, Error>>;

/// Polls the future once and checks that it is pending.
async fn polled<T>(future: &mut Future<T>) {
    let pending = poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await;
    assert!(pending, "the future is pending");
}

/// Makes a waiter that is queued in the store and then not polled.
async fn left_in_the_queue(store: &Fixture, locks: &LockManager) -> Waiting {
    let waiter = locks.lock("k").ttl(long()).wait(Wait::Forever).acquire();
    let mut waiter: Waiting = Box::pin(waiter);
    wait::eventually("the waiter is queued in the store", async || {
        polled(&mut waiter).await;
        store.waiting() == 1
    })
    .await;
    // By now the waiter has read its refusal.
    for _ in 0..20 {
        polled(&mut waiter).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    waiter
}

/// A reader holds the key, and a waiting writer of any process, this one too, is not polled any more.
pub(super) async fn readers_do_not_wait_for_a_writer_that_is_not_polled(store: &Fixture) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let inside = shares::entered(shares::reader(&locks)).await;
    let writer = left_in_the_queue(store, &others).await;
    for locks in [&locks, &others] {
        let next = tokio::spawn(shares::reader(locks).wait(Wait::Forever).acquire());
        its_turn(next).await.release().await.expect("held");
    }
    // The writer stands in the queue again once it is polled.
    let writer = tokio::spawn(writer);
    wait::eventually("the writer is queued again", async || store.waiting() == 1).await;
    inside.release().await.expect("held");
    its_turn(writer).await.release().await.expect("held");
    store.is_left_clean().await;
}

/// Waiting shares that are not polled any more, of each kind, before one that is polled.
pub(super) async fn shares_that_are_not_polled_stop_no_other_of_their_process(store: &Fixture) {
    let locks = store.manager().await;
    for request in [
        shares::reader,
        (|locks| shares::permit(locks, 1)) as fn(&_) -> _,
    ] {
        let writer = held(&locks).await;
        let mut left = Vec::new();
        for _ in 0..20 {
            let waiter = request(&locks).wait(Wait::Forever).acquire();
            let mut waiter: Waiting = Box::pin(waiter);
            polled(&mut waiter).await;
            left.push(waiter);
        }
        let in_store = async || {
            for waiter in &mut left {
                polled(waiter).await;
            }
            store.waiting() >= 1
        };
        wait::eventually("the first ones are queued", in_store).await;
        let next = tokio::spawn(request(&locks).wait(Wait::Forever).acquire());
        writer.release().await.expect("held");
        its_turn(next).await.release().await.expect("held");
        drop(left);
        store.is_left_clean().await;
    }
}

/// Makes a waiter that queues behind others of its process and is then not polled.
async fn left_behind_others(locks: &LockManager) -> Waiting {
    let waiter = locks.lock("k").ttl(long()).wait(Wait::Forever).acquire();
    let mut waiter: Waiting = Box::pin(waiter);
    polled(&mut waiter).await;
    waiter
}

/// Makes a request for a free lock that is not polled once it is sent. `None`: the store answers at once.
async fn left_with_a_question(store: &Fixture, locks: &LockManager) -> Option<Waiting> {
    // The connection exists already, so that one poll sends the request.
    held(locks).await.release().await.expect("held");
    store.is_left_clean().await;
    let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
    let request = request.acquire_timeout(Duration::from_millis(300));
    let mut question: Waiting = Box::pin(request.acquire());
    let now = poll_fn(|context| Poll::Ready(question.as_mut().poll(context))).await;
    if now.is_ready() {
        return None;
    }
    wait::eventually("the store has granted the lock", async || store.taken() > 0).await;
    Some(question)
}

/// Makes a release that is sent and then not polled.
async fn left_releasing(guard: LockGuard) -> Future<Result<(), Error>> {
    let mut release: Future<Result<(), Error>> = Box::pin(guard.release());
    // The embedded store answers at once.
    let polled = poll_fn(|context| Poll::Ready(release.as_mut().poll(context))).await;
    match polled {
        Poll::Ready(released) => Box::pin(async { released }),
        Poll::Pending => release,
    }
}

/// Makes a request whose limit is below the time after which an unpolled future's lock goes to other
/// processes.
fn soon(locks: &LockManager) -> LockRequest {
    let request = locks.lock("k").ttl(long());
    request.acquire_timeout(Duration::from_millis(1_500))
}

async fn held(locks: &LockManager) -> LockGuard {
    let request = locks.lock("k").ttl(long());
    request.acquire().await.expect("free")
}

/// Starts a waiter that is polled.
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

pub(super) async fn a_waiter_that_is_not_polled_and_is_given_the_lock_does_not_block_a_newcomer(
    store: &Fixture,
) {
    let (owner, locks) = (store.manager().await, store.manager().await);
    let first = held(&owner).await;
    let waiter = left_in_the_queue(store, &locks).await;
    first.release().await.expect("held");
    wait::eventually("a newcomer gets the lock", async || {
        let attempt = soon(&locks).try_acquire().await;
        attempt.expect("the store answers").is_some()
    })
    .await;
    drop(waiter);
    store.is_left_clean().await;
}

pub(super) async fn a_waiter_that_is_not_polled_does_not_block_the_waiters_behind_it(
    store: &Fixture,
) {
    let (owner, locks) = (store.manager().await, store.manager().await);
    let first = held(&owner).await;
    let waiter = left_in_the_queue(store, &locks).await;
    let behind = waits(&locks).await;
    first.release().await.expect("held");
    drop(served(behind).await);
    drop(waiter);
    store.is_left_clean().await;
}

pub(super) async fn a_lease_that_is_passed_to_a_waiter_that_is_not_polled_is_passed_on(
    store: &Fixture,
) {
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

pub(super) async fn a_release_that_is_not_polled_does_not_block_the_waiters_of_its_process(
    store: &Fixture,
) {
    let locks = store.manager().await;
    // The server has the script of a release, so that one poll releases the lock.
    held(&locks).await.release().await.expect("held");
    let first = held(&locks).await;
    // A lock with another ttl is not passed on inside the process.
    let request = locks.lock("k").ttl(2 * long()).wait(Wait::Forever);
    let behind = tokio::spawn(request.acquire());
    yield_now().await;
    let release = left_releasing(first).await;
    let second = served(behind).await;
    release.await.expect("held");
    second.release().await.expect("held");
    store.is_left_clean().await;
}

pub(super) async fn a_request_that_is_not_polled_does_not_block_callers_of_its_manager(
    store: &Fixture,
) {
    let locks = store.manager().await;
    let question = left_with_a_question(store, &locks).await;
    let attempt = soon(&locks).try_acquire().await;
    let guard = attempt
        .expect("the store answers")
        .expect("the lock is free");
    guard.release().await.expect("held");
    drop(question);
    store.is_left_clean().await;
}

pub(super) async fn a_request_that_is_not_polled_is_undone_for_other_managers(store: &Fixture) {
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

pub(super) async fn many_waiters_that_are_not_polled_block_no_caller(store: &Fixture) {
    let (owner, locks) = (store.manager().await, store.manager().await);
    let first = held(&owner).await;
    let mut waiters = vec![left_in_the_queue(store, &locks).await];
    for _ in 0..20 {
        waiters.push(left_behind_others(&locks).await);
    }
    let behind = waits(&locks).await;
    first.release().await.expect("held");
    served(behind).await.release().await.expect("held");
    // One of them has been passed the lock, or the lock is free in the store. All are served once they are
    // polled.
    for waiter in waiters {
        let guard = timeout(wait::PATIENCE, waiter).await;
        let guard = guard.expect("its turn comes").expect("its turn");
        guard.release().await.expect("held");
    }
    store.is_left_clean().await;
}

pub(super) async fn a_waiter_that_was_not_polled_keeps_its_place_in_the_queue(store: &Fixture) {
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

pub(super) async fn a_wait_that_ended_unpolled_does_not_block_the_waiters_behind_it(
    store: &Fixture,
) {
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

pub(super) async fn draining_takes_locks_back_from_waiters_that_are_not_polled(store: &Fixture) {
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
    drains(locks).await;
    wait::eventually("no key is taken", async || store.taken() == 0).await;
}
