//! Tests requests whose callers have gone, and networks that deliver them late: all are undone.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use lock_core::{ErrorKind, LockGuard, LockManager, Wait};
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};

use super::{keys, kind, long, manager, warm};

#[tokio::test]
async fn an_acquire_that_timed_out_is_undone_when_the_network_is_back() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, Duration::from_millis(200)).await;
    for direction in [Direction::Requests, Direction::Replies] {
        proxy.set(direction, Flow::Hold);
        let answer = locks.lock("k").ttl(long()).acquire().await;
        assert_eq!(kind(answer), ErrorKind::Unavailable);
        proxy.pass();
        wait::eventually("the acquire is undone", async || {
            locks.held().is_empty() && keys(&server).is_empty()
        })
        .await;
    }
    let left = locks.drain(wait::PATIENCE).await;
    assert_eq!((left.held(), left.releasing()), (0, 0));
    assert!(keys(&server).is_empty());
}

#[tokio::test]
async fn an_acquire_is_undone_behind_itself_on_the_first_connection_of_a_runtime_too() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = manager(&server.url()).await;
    // The acquire is dropped when its answer wakes it: it is sent and granted, and its future has
    // not read the answer.
    {
        let mut acquire = pin!(locks.lock("k").ttl(long()).acquire());
        poll_fn(|context| {
            if server.get("lockkit:k").is_some() {
                return Poll::Ready(());
            }
            assert!(acquire.as_mut().poll(context).is_pending());
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
    wait::eventually("the acquire is undone", async || keys(&server).is_empty()).await;
    // There is no order between connections, so the undo of another connection might have come
    // first.
    let clients = server.cli(&["CLIENT", "LIST"]);
    let keepers = clients.lines().find(|client| client.contains(" sub=1 "));
    let keepers = keepers.expect("the keeper listens");
    assert!(!keepers.contains(" cmd=eval"), "{keepers}");
}

#[tokio::test]
async fn a_cancelled_acquire_does_not_block_the_next_one() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, Duration::from_secs(5)).await;
    for _ in 0..20 {
        proxy.set(Direction::Replies, Flow::Hold);
        let cancelled = tokio::spawn(locks.lock("k").ttl(long()).acquire());
        wait::eventually("the server has granted the lock", async || {
            !keys(&server).is_empty()
        })
        .await;
        cancelled.abort();
        assert!(cancelled.await.expect_err("aborted").is_cancelled());
        proxy.pass();
        // The lock has no owner, so the client's retry after a timeout must not get `Busy`.
        let guard = locks.lock("k").ttl(long()).acquire().await;
        guard
            .expect("the lock has no owner")
            .release()
            .await
            .expect("held");
    }
    wait::eventually("no key is left", async || keys(&server).is_empty()).await;
}

#[tokio::test]
async fn acquires_with_too_little_time_leave_nothing() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = manager(&server.url()).await;
    for micros in 1..200 {
        let request = locks.lock(format!("k{micros}")).ttl(long());
        let request = request.acquire_timeout(Duration::from_micros(micros));
        match request.acquire().await {
            Ok(guard) => guard.release().await.expect("held"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable),
        }
    }
    let left = locks.drain(wait::PATIENCE).await;
    assert_eq!((left.held(), left.releasing()), (0, 0));
    assert!(keys(&server).is_empty());
}

/// Acquires `k` through a proxy that delivers nothing on its present connections. The first request of the acquire uses the
/// old connection, and the second a new one.
async fn taken_by_the_second_request(
    proxy: &Proxy,
    locks: &LockManager,
    ttl: Duration,
) -> LockGuard {
    proxy.freeze();
    // No answer comes, so after a while the manager replaces the connection.
    let first = locks.lock("other").ttl(long()).acquire();
    assert_eq!(kind(first.await), ErrorKind::Unavailable);
    loop {
        let request = locks.lock("k").ttl(ttl).wait(Wait::For(long()));
        if let Ok(guard) = request.acquire().await {
            return guard;
        }
    }
}

/// Delivers the late requests, and checks that they are undone. Their ttl is a minute, so a key that is gone before was
/// undone.
async fn late_requests_are_undone(proxy: &Proxy, server: &RedisServer) {
    proxy.thaw();
    wait::eventually("the late request is undone", async || {
        keys(server).is_empty()
    })
    .await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    wait::eventually("no key comes back", async || keys(server).is_empty()).await;
}

#[tokio::test]
async fn a_late_request_of_an_old_connection_is_undone_after_the_release_too() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, Duration::from_millis(400)).await;
    let guard = taken_by_the_second_request(&proxy, &locks, long()).await;
    guard.release().await.expect("held");
    late_requests_are_undone(&proxy, &server).await;
}

#[tokio::test]
async fn a_late_request_of_an_old_connection_is_undone_after_a_downgrade_too() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, Duration::from_millis(400)).await;
    let writer = taken_by_the_second_request(&proxy, &locks, long()).await;
    let reader = writer.downgrade().await.expect("held");
    reader.release().await.expect("held");
    late_requests_are_undone(&proxy, &server).await;
}

#[tokio::test]
async fn a_late_request_of_an_old_connection_is_undone_after_a_loss_too() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, Duration::from_millis(400)).await;
    // The ttl is long enough not to run out meanwhile, and the lease is renewed every four
    // seconds.
    let ttl = Duration::from_secs(12);
    let guard = taken_by_the_second_request(&proxy, &locks, ttl).await;
    // The test deletes the key. The first request arrives after that and takes the key for an
    // owner that already knows of the loss.
    server.cli(&["DEL", "lockkit:k"]);
    guard.lost().await;
    drop(guard);
    // The release of the lost lease is answered, and undoes nothing that arrives later.
    assert!(locks.drain(wait::PATIENCE).await.is_complete());
    // The client undoes the late request once it reads the reply, so the test holds the reply until it has seen the
    // key.
    proxy.set(Direction::Replies, Flow::Hold);
    proxy.thaw();
    wait::eventually("the first request arrives late", async || {
        server.get("lockkit:k").is_some()
    })
    .await;
    proxy.pass();
    let mut left = ttl;
    wait::eventually("the late request is undone", async || {
        left = server.time_to_live("lockkit:k").unwrap_or(left);
        keys(&server).is_empty()
    })
    .await;
    assert!(left > ttl / 6, "the lease has run out by itself: {left:?}");
}

#[tokio::test]
async fn an_acquire_dropped_before_its_batch_is_sent_again_leaves_no_key() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, wait::PATIENCE).await;
    let acquire = |key: &str| tokio::spawn(locks.lock(key).ttl(long()).acquire());

    // Two requests are under way, so later ones go in a batch. The server does not know the
    // script of the batch and says so.
    proxy.set(Direction::Replies, Flow::Hold);
    let alone = [acquire("a"), acquire("b")];
    wait::eventually("both locks are granted", async || {
        ["lockkit:a", "lockkit:b"]
            .iter()
            .all(|key| server.get(key).is_some())
    })
    .await;
    let held = proxy.held(Direction::Replies);
    let batch = [acquire("c"), acquire("d")];
    wait::eventually("the batch is answered", async || {
        proxy.held(Direction::Replies) > held
    })
    .await;
    // One of the two is dropped and undone before the batch is sent again with its script.
    proxy.set(Direction::Replies, Flow::HoldAfter(held));
    let mut guards = Vec::new();
    for granted in alone {
        guards.push(granted.await.expect("no panic").expect("free"));
    }
    let before = proxy.held(Direction::Replies);
    let [gone, stays] = batch;
    gone.abort();
    wait::eventually("the undo is answered", async || {
        proxy.held(Direction::Replies) > before
    })
    .await;
    proxy.pass();
    guards.push(stays.await.expect("no panic").expect("free"));
    // The keeper's second undo would come 6 s after the first.
    let undone = || server.get("lockkit:c").is_none();
    assert!(wait::holds_within(Duration::from_secs(3), undone));
    for guard in guards {
        guard.release().await.expect("held");
    }
}

#[tokio::test]
async fn a_late_answer_to_a_batch_deletes_no_lock_that_was_granted_since() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, Duration::from_secs(1)).await;
    let acquire = |key: &str| {
        let request = locks.lock(key).ttl(long()).wait(Wait::Forever);
        tokio::spawn(request.acquire())
    };
    let all = ["a", "b", "c", "d", "e"];
    // Several at once, so that the server knows the script of the batch.
    for guard in all.map(acquire) {
        let guard = guard.await.expect("no panic").expect("free");
        guard.release().await.expect("held");
    }

    proxy.set(Direction::Replies, Flow::Hold);
    let locked = |keys: &[&str]| {
        let has = |key: &&str| server.get(&format!("lockkit:{key}")).is_some();
        keys.iter().all(has)
    };
    let mut asked = Vec::from(["a", "b"].map(acquire));
    wait::eventually("two requests are under way", async || locked(&["a", "b"])).await;
    let batches = || {
        let calls = server.commandstats();
        calls.get("evalsha").copied().unwrap_or(0)
    };
    let before = batches();
    asked.extend(["c", "d", "e"].map(acquire));
    wait::eventually("the batch is answered", async || locked(&all)).await;
    assert_eq!(batches(), before + 1, "the later three went together");

    // The answers stay on their way, and the tasks ask again by a connection of their own.
    proxy.freeze();
    proxy.set(Direction::Replies, Flow::Pass);
    let mut guards = Vec::new();
    for guard in asked {
        guards.push(
            guard
                .await
                .expect("no panic")
                .expect("the token is its own"),
        );
    }
    proxy.thaw();
    wait::eventually("the late answers arrive", async || {
        proxy.held(Direction::Replies) == 0
    })
    .await;
    for _ in 0..100 {
        assert!(locked(&all), "a lock that is held was deleted");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for guard in guards {
        guard.release().await.expect("held");
    }
}
