//! How long a lock goes from task to task of one process while another one waits: 32 times, and for
//! 20 ms. Both are counted exactly: the process's clock moves only when the test moves it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lock_core::test_util::ManualClock;
use lock_core::{ErrorKind, LockManager, LockRequest, Wait};
use lock_tests::{RedisServer, needs, wait};
use tokio::task::JoinHandle;

use super::{Waiter, its_turn, long, manager, millis, on, others_run, queued};
use crate::redis::{asked, counts};

fn request(locks: &LockManager) -> LockRequest {
    locks.lock("k").ttl(long()).wait(Wait::Forever)
}

/// Stands in its process's line when this returns.
async fn waits(locks: &LockManager) -> Waiter {
    let waiter = tokio::spawn(request(locks).acquire());
    others_run().await;
    waiter
}

/// So many tasks, each of which does `work` under the lock, once.
async fn crowd(
    locks: &LockManager,
    tasks: usize,
    work: impl Fn() + Clone + Send + 'static,
) -> Vec<JoinHandle<()>> {
    let task = |_| {
        let (request, work) = (request(locks), work.clone());
        tokio::spawn(async move {
            let guard = request.acquire().await.expect("its turn");
            work();
            guard.release().await.expect("held");
        })
    };
    let tasks = (0..tasks).map(task).collect();
    others_run().await;
    tasks
}

async fn all_are_served(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        let served = tokio::time::timeout(wait::PATIENCE, task).await;
        served.expect("not forgotten").expect("no panic");
    }
}

#[tokio::test]
async fn while_another_process_waits_a_lock_is_passed_on_thirty_two_times_and_not_once_more() {
    needs!(redis);
    let server = RedisServer::start();
    let other = manager(&server.url()).await;
    // No time passes: it is the number that ends it.
    let busy = on(&ManualClock::new(), &server.url()).await;
    let guard = request(&busy).acquire().await.expect("free");
    let waiter = waits(&other).await;
    queued(&server, 1).await;
    let turns = Arc::new(AtomicU64::new(0));
    let turn = {
        let turns = Arc::clone(&turns);
        move || {
            turns.fetch_add(1, Ordering::SeqCst);
        }
    };
    let tasks = crowd(&busy, 50, turn).await;
    guard.release().await.expect("held");
    let guard = its_turn(waiter).await;
    assert_eq!(turns.load(Ordering::SeqCst), 32);
    guard.release().await.expect("held");
    all_are_served(tasks).await;
}

#[tokio::test]
async fn while_another_process_waits_a_lock_is_passed_on_for_twenty_milliseconds_and_no_longer() {
    needs!(redis);
    let server = RedisServer::start();
    let other = manager(&server.url()).await;
    let clock = ManualClock::new();
    let busy = on(&clock, &server.url()).await;
    let guard = request(&busy).acquire().await.expect("free");
    let waiter = waits(&other).await;
    queued(&server, 1).await;
    let (second, third) = (waits(&busy).await, waits(&busy).await);
    clock.advance(millis(19));
    guard.release().await.expect("held");
    let guard = its_turn(second).await;
    assert!(!waiter.is_finished());
    clock.advance(millis(1));
    guard.release().await.expect("held");
    let guard = its_turn(waiter).await;
    assert!(!third.is_finished());
    guard.release().await.expect("held");
    its_turn(third).await.release().await.expect("held");
}

/// The bound that the docs state: (processes ahead) × (20 ms + one hold). A hold takes 7 ms here, and
/// each process has more tasks than it may serve in a row.
#[tokio::test]
async fn a_process_waits_for_a_count_and_a_hold_of_each_that_is_before_it() {
    needs!(redis);
    const HOLD: u64 = 7;
    let server = RedisServer::start();
    let clock = ManualClock::new();
    let (first, second, last) = (
        on(&clock, &server.url()).await,
        on(&clock, &server.url()).await,
        on(&clock, &server.url()).await,
    );
    let passed = Arc::new(AtomicU64::new(0));
    let holds = {
        let (passed, clock) = (Arc::clone(&passed), clock.clone());
        move || {
            clock.advance(millis(HOLD));
            passed.fetch_add(HOLD, Ordering::SeqCst);
        }
    };
    let guard = request(&first).acquire().await.expect("free");
    let mut tasks = crowd(&first, 30, holds.clone()).await;
    tasks.append(&mut crowd(&second, 30, holds).await);
    queued(&server, 1).await;
    let waiter = waits(&last).await;
    queued(&server, 2).await;
    guard.release().await.expect("held");
    let guard = its_turn(waiter).await;
    let waited = passed.load(Ordering::SeqCst);
    assert!(waited <= 2 * (20 + HOLD), "{waited} ms");
    assert!(waited >= 2 * HOLD, "both came before");
    guard.release().await.expect("held");
    all_are_served(tasks).await;
}

#[tokio::test]
async fn passing_a_lock_on_asks_redis_nothing() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = on(&ManualClock::new(), &server.url()).await;
    let mut guard = request(&locks).acquire().await.expect("free");
    let mut waiters = Vec::new();
    for _ in 0..20 {
        waiters.push(waits(&locks).await);
    }
    server.reset_stats();
    for waiter in waiters {
        let before = guard.fencing_token();
        guard.release().await.expect("held");
        guard = its_turn(waiter).await;
        assert!(guard.fencing_token() > before);
    }
    assert_eq!(asked(&server), counts(&[]));
    guard.release().await.expect("held");
}

/// Somebody overwrites the key of a lock that goes from task to task: one of them is told of the loss,
/// the one that has it then, and nobody goes on with it.
#[tokio::test]
async fn the_loss_of_a_lock_that_is_passed_on_is_told_once_and_ends_the_passing() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = manager(&server.url()).await;
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::new(Mutex::new(Vec::new()));
    let task = |_| {
        let (locks, over, ends) = (locks.clone(), Arc::clone(&over), Arc::clone(&ends));
        tokio::spawn(async move {
            while !over.load(Ordering::SeqCst) {
                let request = locks.lock("k").ttl(millis(1_200)).wait(Wait::Forever);
                let guard = request.acquire().await.expect("its turn");
                tokio::time::sleep(millis(1)).await;
                let end = guard.release().await.map_err(|error| error.kind());
                ends.lock().expect("no panic").push(end);
            }
        })
    };
    let tasks: Vec<_> = (0..4).map(task).collect();
    let lost = || {
        ends.lock()
            .expect("no panic")
            .iter()
            .filter(|end| end.is_err())
            .count()
    };
    let served = || ends.lock().expect("no panic").len();
    wait::eventually("it goes round", async || served() > 100).await;
    server.cli(&["SET", "lockkit:k", "stranger", "PX", "60000"]);
    wait::eventually("the loss is told", async || lost() > 0).await;
    let before = served();
    queued(&server, 1).await;
    assert_eq!(served(), before, "nobody has it but the stranger");
    assert_eq!(server.get("lockkit:k").as_deref(), Some("stranger"));
    over.store(true, Ordering::SeqCst);
    server.cli(&["DEL", "lockkit:k"]);
    all_are_served(tasks).await;
    let ends = ends.lock().expect("no panic");
    let lost: Vec<_> = ends.iter().filter_map(|end| end.err()).collect();
    assert_eq!(lost, [ErrorKind::Lost]);
}
