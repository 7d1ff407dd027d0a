//! Tests servers that lose data: restarts with and without their data, flushes, crashes under
//! load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lock_core::{ErrorKind, LockManager, ReleaseMode, Wait};
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::{drains, its_turn, keys, kind, long, manager, served, served_both};

fn ttl() -> Duration {
    Duration::from_secs(1)
}

#[tokio::test]
async fn a_server_that_comes_back_empty_ends_the_old_lock_and_renews_the_next() {
    needs!(redis);
    let (server, locks) = served().await;
    let old = locks.lock("k").ttl(ttl()).acquire().await.expect("free");
    let token = old.fencing_token();
    server.restart_empty();
    timeout(ttl(), old.lost())
        .await
        .expect("noticed at a renewal");
    let next = locks.lock("k").ttl(ttl()).wait(long()).acquire().await;
    let next = next.expect("free");
    assert!(next.fencing_token() > token);
    assert!(timeout(ttl() * 2, next.lost()).await.is_err());
    assert!(server.get("lockkit:k").is_some());
    assert_eq!(kind(old.release().await), ErrorKind::Lost);
    next.release().await.expect("held");
}

/// Returns when a key ends, in milliseconds of the server's clock. The key must be there, and must end. Redis 7 has a command
/// for it.
fn ends(server: &RedisServer, key: &str) -> i64 {
    let script = "local time, left = redis.call('TIME'), redis.call('PTTL', KEYS[1]) \
                  if left < 0 then return 'no end' end \
                  return time[1] * 1000 + math.floor(time[2] / 1000) + left";
    let ends = server.cli(&["EVAL", script, "1", key]);
    ends.parse().expect("kept")
}

#[tokio::test]
async fn a_server_that_kept_its_data_keeps_the_lock() {
    needs!(redis);
    let server = RedisServer::options().append_only().start();
    let locks = manager(&server.url()).await;
    let ttl = Duration::from_secs(6);
    let guard = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    server.restart();
    let at_restart = ends(&server, "lockkit:k");
    wait::eventually("the lock is renewed again", async || {
        // Both ends are rounded.
        ends(&server, "lockkit:k") > at_restart + 10
    })
    .await;
    assert!(guard.is_valid());
    guard.release().await.expect("held");
    assert!(keys(&server).is_empty());
}

#[tokio::test]
async fn a_flush_of_all_data_is_a_loss_and_fencing_tokens_still_rise() {
    needs!(redis);
    let (server, locks) = served().await;
    let old = locks.lock("k").ttl(ttl()).acquire().await.expect("free");
    server.cli(&["FLUSHALL"]);
    timeout(ttl(), old.lost())
        .await
        .expect("noticed at a renewal");
    let next = locks.lock("k").acquire().await.expect("free");
    assert!(next.fencing_token() > old.fencing_token());
}

#[tokio::test]
async fn a_flush_of_the_scripts_has_no_effect() {
    needs!(redis);
    let (server, locks, other) = served_both().await;
    let mut held = Vec::new();
    for index in 0..250 {
        let request = locks.lock(format!("k{index}")).ttl(ttl());
        held.push(request.acquire().await.expect("free"));
    }
    let start = Instant::now();
    let mut rounds = 0;
    while start.elapsed() < ttl() * 2 {
        server.cli(&["SCRIPT", "FLUSH"]);
        let guard = locks.lock("a").acquire().await.expect("free");
        let waiting = other.lock("a").wait(Wait::Forever).acquire();
        let (released, next) = tokio::join!(guard.release(), waiting);
        released.expect("held");
        server.cli(&["SCRIPT", "FLUSH"]);
        next.expect("its turn").release().await.expect("held");
        rounds += 1;
    }
    assert!(rounds > 1);
    for guard in held {
        guard
            .release()
            .await
            .expect("renewed in batches all the time");
    }
    assert!(keys(&server).is_empty());
}

/// Returns a limit that is longer than a request may stay unanswered, with time for a busy
/// machine.
fn bounded() -> Duration {
    Duration::from_secs(5)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_under_load_is_unavailable_and_never_busy() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = LockManager::connect(&server.url())
        .await
        .expect("a manager");
    let over = Arc::new(AtomicBool::new(false));
    let (granted, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let tasks: Vec<_> = (0..32)
        .map(|task| {
            let (locks, over) = (locks.clone(), Arc::clone(&over));
            let (granted, refused) = (Arc::clone(&granted), Arc::clone(&refused));
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    // Each task has a key of its own, so that no other client ever has its
                    // lock.
                    let request = locks.lock(format!("k{task}")).ttl(long());
                    let answer = timeout(bounded(), request.acquire()).await;
                    match answer.expect("bounded") {
                        Ok(guard) => {
                            granted.fetch_add(1, Ordering::Relaxed);
                            // After a release that failed, the key is on a server that is
                            // gone.
                            drop(guard.release().await);
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
                            refused.fetch_add(1, Ordering::Relaxed);
                            tokio::time::sleep(Duration::from_millis(1)).await;
                        }
                    }
                }
            })
        })
        .collect();
    for _ in 0..3 {
        let before = granted.load(Ordering::Relaxed);
        let work = async || granted.load(Ordering::Relaxed) > before + 200;
        wait::eventually("there is load", work).await;
        server.kill();
        let before = refused.load(Ordering::Relaxed);
        let out = async || refused.load(Ordering::Relaxed) > before + 200;
        wait::eventually("every task has its error", out).await;
        server.start_again();
        let before = granted.load(Ordering::Relaxed);
        let back = async || granted.load(Ordering::Relaxed) > before;
        // The promise is one second. The margin is for a busy machine.
        timeout(Duration::from_secs(3), wait::eventually("service", back))
            .await
            .expect("served again soon after its return");
    }
    over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.expect("no panic");
    }
    drains(&locks).await;
    assert!(keys(&server).is_empty());
}

#[tokio::test]
async fn work_that_is_done_when_the_server_dies_keeps_its_result() {
    needs!(redis);
    for release in [ReleaseMode::Await, ReleaseMode::Background] {
        let server = RedisServer::start();
        let locks = LockManager::connect(&server.url())
            .await
            .expect("a manager");
        let request = locks.lock("k").ttl(long()).release(release);
        let body = async {
            server.kill();
            "done"
        };
        let outcome = timeout(bounded(), request.run(body)).await;
        assert_eq!(outcome.expect("bounded").expect("the body ran"), "done");
    }
}

#[tokio::test]
async fn waiters_survive_a_short_restart() {
    needs!(redis);
    let server = RedisServer::options().append_only().start();
    let (locks, other) = (manager(&server.url()).await, manager(&server.url()).await);
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = tokio::spawn(other.lock("k").wait(Wait::Forever).acquire());
    wait::eventually("the waiter is queued", async || keys(&server).len() == 2).await;
    server.restart();
    // The managers make their connections and subscriptions again.
    wait::eventually("both managers are connected", async || {
        let clients = server.cli(&["CLIENT", "LIST"]);
        // Each manager has the keeper's connection, and one has that on which the waiter
        // asked.
        clients.matches(" sub=1 ").count() == 3
    })
    .await;
    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
}
