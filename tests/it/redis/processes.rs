//! Tests owners that are separate processes: killed, stopped, and many at once.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::process::Command;
use std::task::Poll;
use std::time::{Duration, Instant};

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{ChildProcess, RedisServer, needs, wait};
use tokio::time::timeout;

use super::{long, manager};

pub(super) const SERVER: &str = "LOCK_TESTS_SERVER";

/// Starts this binary again, with one of its ignored tests.
pub(super) fn process(test: &str, server: &RedisServer) -> ChildProcess {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(SERVER, server.url());
    ChildProcess::spawn(command)
}

#[track_caller]
pub(super) fn says(process: &ChildProcess, words: &str) {
    let line = process.line(wait::PATIENCE, |line| line == words);
    assert!(
        line.is_some(),
        "the process has not printed {words:?}:\n{}",
        process.output()
    );
}

/// Connects to the server of the test that started this process.
///
/// `None` when a user runs all ignored tests.
async fn parent() -> Option<LockManager> {
    Some(manager(&std::env::var(SERVER).ok()?).await)
}

fn ttl() -> Duration {
    Duration::from_secs(1)
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn holds_until_killed() {
    let Some(locks) = parent().await else { return };
    let guard = locks.lock("k").ttl(ttl()).acquire().await.expect("free");
    println!("\nholding");
    guard.lost().await;
    println!("\nlost");
}

#[tokio::test]
async fn a_lock_whose_process_was_killed_can_be_taken_when_it_has_run_out() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = manager(&server.url()).await;
    let mut owner = process("redis::processes::holds_until_killed", &server);
    says(&owner, "holding");
    let waiter = tokio::spawn(locks.lock("k").wait(Wait::Forever).acquire());
    wait::eventually("the waiter is queued", async || {
        server.keys().iter().any(|key| key.contains("!q"))
    })
    .await;
    owner.kill();
    let left = server
        .time_to_live("lockkit:k")
        .expect("the lock was not released");
    // The margin is for the machine. The test tells the ttl from the timer of last resort.
    let guard = timeout(left + Duration::from_secs(5), waiter).await;
    guard
        .expect("in time")
        .expect("no panic")
        .expect("free")
        .release()
        .await
        .expect("held");
}

/// Stops this process, and returns when it continues, more than half a ttl later.
fn stop_myself() {
    let mut last = Instant::now();
    let myself = rustix::process::getpid();
    rustix::process::kill_process(myself, rustix::process::Signal::STOP).expect("stopped");
    // A thread may continue for a moment after the call that stops its process.
    loop {
        let now = Instant::now();
        if now.duration_since(last) >= ttl() / 2 {
            return;
        }
        last = now;
    }
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn works_until_stopped() {
    let Some(locks) = parent().await else { return };
    let working = Cell::new(false);
    let works = &working;
    let run = locks.lock("k").ttl(ttl()).run_with(|lock| {
        // The body is polled all the time, and every poll has an effect.
        poll_fn(move |context| {
            let lawful = lock.is_valid();
            println!(
                "\nan effect {} the lock",
                if lawful { "under" } else { "WITHOUT" }
            );
            works.set(true);
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        })
    });
    let mut run = pin!(run);
    let outcome = poll_fn(|context| {
        let polled = run.as_mut().poll(context);
        // The stop comes between two polls, because the kit cannot stop work within a poll.
        if working.replace(false) {
            stop_myself();
        }
        polled
    });
    let error = outcome.await.expect_err("stopped for longer than the ttl");
    println!("\n{}", error.code());
}

#[tokio::test]
async fn a_process_that_was_stopped_for_longer_than_its_ttl_does_nothing_more() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = manager(&server.url()).await;
    let owner = process("redis::processes::works_until_stopped", &server);
    says(&owner, "an effect under the lock");
    let next = timeout(
        wait::PATIENCE,
        locks.lock("k").ttl(long()).wait(Wait::Forever).acquire(),
    );
    let next = next.await.expect("the lease ran out").expect("free");
    owner.cont();
    says(&owner, "lock_lost");
    let after = owner.output();
    assert_eq!(
        after.matches("an effect").count(),
        1,
        "the body was polled before the clock was read: {after}"
    );
    assert!(
        next.is_valid(),
        "late commands of the stopped process have no effect"
    );
    next.release().await.expect("held");
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn guards_until_stopped() {
    let Some(locks) = parent().await else { return };
    let guard = locks.lock("k").ttl(ttl()).acquire().await.expect("free");
    println!("\nholding");
    stop_myself();
    let valid = guard.is_valid();
    println!("\nvalid: {valid}");
    let kind = guard.release().await.expect_err("the lease ran out").kind();
    println!("\n{kind:?}");
}

#[tokio::test]
async fn the_first_check_after_a_stop_says_lost() {
    needs!(redis);
    let server = RedisServer::start();
    let owner = process("redis::processes::guards_until_stopped", &server);
    says(&owner, "holding");
    wait::until("the lock has run out", || server.get("lockkit:k").is_none());
    owner.cont();
    says(&owner, "valid: false");
    says(&owner, &format!("{:?}", ErrorKind::Lost));
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn increments_a_counter_without_atomics() {
    let Some(locks) = parent().await else { return };
    let url = std::env::var(SERVER).expect("set");
    let client = lock_core::redis1::Client::open(url).expect("a URL");
    let mut counter = client.get_connection().expect("a connection");
    for _ in 0..50 {
        let request = locks.lock("counter").ttl(long()).wait(Wait::Forever);
        let guard = request.acquire().await.expect("its turn");
        let read = lock_core::redis1::cmd("GET")
            .arg("n")
            .query::<Option<u64>>(&mut counter);
        let next = read.expect("an answer").unwrap_or(0) + 1;
        tokio::task::yield_now().await;
        let written = lock_core::redis1::cmd("SET")
            .arg("n")
            .arg(next)
            .exec(&mut counter);
        written.expect("an answer");
        drop(guard);
    }
    locks.drain(wait::PATIENCE).await;
    println!("\ndone");
}

#[tokio::test]
async fn four_processes_count_to_two_hundred_by_reading_and_writing() {
    needs!(redis);
    let server = RedisServer::start();
    let counting: Vec<_> = (0..4)
        .map(|_| {
            process(
                "redis::processes::increments_a_counter_without_atomics",
                &server,
            )
        })
        .collect();
    for process in &counting {
        says(process, "done");
    }
    assert_eq!(server.get("n").as_deref(), Some("200"));
    assert!(
        !server
            .keys()
            .iter()
            .any(|key| key.starts_with("lockkit:counter"))
    );
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn installs_in_one_runtime_and_locks_in_others() {
    let Some(locks) = parent().await else { return };
    locks.install().expect("the first installation");
    locks.install().expect("the same manager again");
    let second = LockManager::in_memory()
        .install()
        .expect_err("another manager");
    assert_eq!(second.kind(), ErrorKind::Invalid);
    drop(locks);
    std::thread::spawn(|| {
        for _ in 0..10 {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let runtime = runtime.expect("a runtime");
            assert_eq!(runtime.block_on(place_order(7)).expect("free"), 7);
        }
    })
    .join()
    .expect("no panic");
    println!("\ndone");
}

#[lock_core::distributed_lock(key = "order:<uid>", ttl = "10s")]
async fn place_order(uid: u64) -> Result<u64, lock_core::Error> {
    tokio::task::yield_now().await;
    Ok(uid)
}

#[tokio::test]
async fn an_installed_manager_serves_every_later_runtime() {
    needs!(redis);
    let server = RedisServer::start();
    says(
        &process(
            "redis::processes::installs_in_one_runtime_and_locks_in_others",
            &server,
        ),
        "done",
    );
    assert!(server.commandstats().get("evalsha") >= Some(&10));
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn leaves_a_waiter_alone_and_then_wants_the_lock() {
    let Some(locks) = parent().await else { return };
    let mut waiter = pin!(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    // The waiter is polled until it is refused and queued, and never again.
    for _ in 0..200 {
        let pending = poll_fn(|context| Poll::Ready(waiter.as_mut().poll(context).is_pending()));
        assert!(pending.await, "the waiter is pending");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("\nleft alone");
    loop {
        match locks.lock("k").ttl(long()).try_acquire().await {
            Ok(Some(guard)) => {
                guard.release().await.expect("held");
                println!("\nhad it");
            }
            Ok(None) => {}
            Err(error) => println!("\nfailed: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_waiter_that_is_not_polled_blocks_neither_its_own_process_nor_another() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = manager(&server.url()).await;
    let owner = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let other = process(
        "redis::processes::leaves_a_waiter_alone_and_then_wants_the_lock",
        &server,
    );
    says(&other, "left alone");
    let waiter = tokio::spawn(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    owner.release().await.expect("held");
    let guard = timeout(wait::PATIENCE, waiter).await.expect("its turn");
    drop(guard.expect("no panic").expect("free"));
    says(&other, "had it");
    assert!(!other.output().contains("failed"), "{}", other.output());
}
