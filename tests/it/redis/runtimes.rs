//! Tests one manager in many runtimes, in unusual ones, and without any.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{RedisServer, needs, wait};
use tokio::runtime::{Builder, Runtime};

use super::{keys, kind, long};

fn runtime(builder: &mut Builder) -> Runtime {
    builder
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

fn connected(server: &RedisServer) -> LockManager {
    let runtime = runtime(&mut Builder::new_current_thread());
    runtime.block_on(super::manager(&server.url()))
}

async fn lock_wait_and_release(locks: &LockManager) {
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let waiting = locks.lock("k").ttl(long()).wait(Wait::Forever).acquire();
    assert_eq!(kind(locks.lock("k").acquire().await), ErrorKind::Busy);
    let (released, next) = tokio::join!(guard.release(), waiting);
    released.expect("held");
    next.expect("its turn").release().await.expect("held");
    locks.lock("k").run(async {}).await.expect("free");
}

/// Blocks on a future, as a program without a runtime does.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn a_manager_made_in_one_runtime_serves_ten_others_after_its_end() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = connected(&server);
    for round in 0..10 {
        let mut builder = match round % 2 {
            0 => Builder::new_current_thread(),
            _ => Builder::new_multi_thread(),
        };
        runtime(&mut builder).block_on(lock_wait_and_release(&locks));
    }
    assert!(keys(&server).is_empty());
}

#[test]
fn a_lock_works_without_any_runtime() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = connected(&server);
    block_on(lock_wait_and_release(&locks));
    let elsewhere = block_on(LockManager::connect(&server.url())).expect("a manager");
    let held = block_on(locks.lock("k").ttl(long()).acquire()).expect("free");
    let short = elsewhere.lock("k").wait(Duration::from_millis(50));
    assert_eq!(kind(block_on(short.acquire())), ErrorKind::Busy);
    drop(held);
    block_on(locks.drain(wait::PATIENCE));
    block_on(elsewhere.drain(wait::PATIENCE));
    assert!(keys(&server).is_empty());
}

#[test]
fn a_lock_works_in_a_runtime_without_timers() {
    needs!(redis);
    let server = RedisServer::start();
    let runtime = Builder::new_current_thread().enable_io().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        let locks = LockManager::connect(&server.url())
            .await
            .expect("a manager");
        lock_wait_and_release(&locks).await;
        let held = locks.lock("k").ttl(long()).acquire().await.expect("free");
        let other = LockManager::connect(&server.url())
            .await
            .expect("a manager");
        let short = other.lock("k").wait(Duration::from_millis(50));
        assert_eq!(kind(short.acquire().await), ErrorKind::Busy);
        held.release().await.expect("held");
        server.stop();
        assert_eq!(
            kind(locks.lock("k").acquire().await),
            ErrorKind::Unavailable
        );
        server.cont();
    });
}

#[tokio::test(start_paused = true)]
async fn a_lock_works_under_a_paused_clock() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = super::manager(&server.url()).await;
    lock_wait_and_release(&locks).await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    // The server does not see the hour of the runtime's clock.
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert!(guard.is_valid());
    guard.release().await.expect("held");
}

#[test]
fn a_guard_travels_from_one_runtime_to_another() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = connected(&server);
    let one = runtime(&mut Builder::new_current_thread());
    let guard = one
        .block_on(locks.lock("k").ttl(long()).acquire())
        .expect("free");
    drop(one);
    let other = runtime(&mut Builder::new_multi_thread());
    other.block_on(guard.release()).expect("held");
    assert!(keys(&server).is_empty());
}

#[test]
fn an_acquire_whose_runtime_ends_in_the_middle_leaves_nothing() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = connected(&server);
    for micros in (0..2000).step_by(100) {
        let one = runtime(&mut Builder::new_multi_thread());
        for key in 0..4 {
            one.spawn(
                locks
                    .lock(format!("k{key}"))
                    .ttl(long())
                    .wait(Wait::Forever)
                    .acquire(),
            );
        }
        std::thread::sleep(Duration::from_micros(micros));
        drop(one);
    }
    wait::until("no key is taken and no waiter is queued", || {
        keys(&server).is_empty()
    });
    let left = block_on(locks.drain(wait::PATIENCE));
    assert_eq!((left.held(), left.releasing()), (0, 0));
    assert!(keys(&server).is_empty());
}

#[test]
fn a_body_that_blocks_its_only_thread_keeps_its_lock() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = connected(&server);
    let ttl = Duration::from_secs(1);
    let runtime = runtime(&mut Builder::new_current_thread());
    let outcome = runtime.block_on(locks.lock("k").ttl(ttl).run_with(|lock| async move {
        std::thread::sleep(ttl * 2);
        assert!(lock.is_valid(), "renewed by a thread of its own");
        tokio::task::yield_now().await;
        "to the end"
    }));
    assert_eq!(outcome.expect("held all the time"), "to the end");
}

#[test]
fn a_waiter_is_served_while_its_runtime_is_busy_elsewhere() {
    needs!(redis);
    let server = RedisServer::start();
    let (owner, locks) = (connected(&server), connected(&server));
    let guard = block_on(owner.lock("k").ttl(long()).acquire()).expect("free");
    let (served, was_served) = mpsc::channel();
    let waiting = std::thread::spawn(move || {
        let runtime = runtime(&mut Builder::new_current_thread());
        runtime.block_on(async {
            let waiter = tokio::spawn(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
            for _ in 0..20 {
                // The thread never rests for long, as in an overloaded service.
                std::thread::sleep(Duration::from_millis(10));
                tokio::task::yield_now().await;
            }
            let guard = waiter.await.expect("no panic").expect("its turn");
            served.send(()).expect("the receiver lives");
            guard.release().await.expect("held");
        });
    });
    wait::until("the waiter is queued", || {
        server.keys().iter().any(|key| key.contains("!q"))
    });
    block_on(guard.release()).expect("held");
    was_served.recv_timeout(wait::PATIENCE).expect("served");
    waiting.join().expect("no panic");
}
