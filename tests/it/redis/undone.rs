//! Questions that nobody waits for any more, and networks that deliver them late: undone.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use lock_core::{ErrorKind, Wait};
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
        wait::eventually("it is undone", async || {
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
    // Dropped when it is woken by its answer: sent, granted, and nobody has looked.
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
    wait::eventually("it is undone", async || keys(&server).is_empty()).await;
    // Between connections there is no order: the undoing might have come first.
    let clients = server.cli(&["CLIENT", "LIST"]);
    let keepers = clients.lines().find(|client| client.contains(" sub=1 "));
    let keepers = keepers.expect("the keeper listens");
    assert!(!keepers.contains(" cmd=eval"), "{keepers}");
}

#[tokio::test]
async fn an_acquire_that_was_cancelled_is_not_in_the_way_of_the_next() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, Duration::from_secs(5)).await;
    for _ in 0..20 {
        proxy.set(Direction::Replies, Flow::Hold);
        let cancelled = tokio::spawn(locks.lock("k").ttl(long()).acquire());
        wait::eventually("the server has granted it", async || {
            !keys(&server).is_empty()
        })
        .await;
        cancelled.abort();
        assert!(cancelled.await.expect_err("aborted").is_cancelled());
        proxy.pass();
        // Nobody holds the lock: the client's retry after a timeout must not be told "busy".
        let guard = locks.lock("k").ttl(long()).acquire().await;
        guard
            .expect("nobody holds it")
            .release()
            .await
            .expect("held");
    }
    wait::eventually("nothing is left", async || keys(&server).is_empty()).await;
}

#[tokio::test]
async fn acquires_that_had_no_time_leave_nothing() {
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

#[tokio::test]
async fn what_an_old_connection_delivers_late_is_undone_after_the_release_too() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, Duration::from_millis(400)).await;
    proxy.freeze();
    // Nobody answers: after a while the connection is given up for a new one.
    let first = locks.lock("other").ttl(long()).acquire();
    assert_eq!(kind(first.await), ErrorKind::Unavailable);
    // One whose first question goes down the old connection, and whose second by a new one.
    let guard = loop {
        let request = locks.lock("k").ttl(long()).wait(Wait::For(long()));
        if let Ok(guard) = request.acquire().await {
            break guard;
        }
    };
    guard.release().await.expect("held");
    proxy.thaw();
    // Their ttl is a minute: who is gone before was undone.
    wait::eventually("what came late is undone", async || {
        keys(&server).is_empty()
    })
    .await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    wait::eventually("for good", async || keys(&server).is_empty()).await;
}

#[tokio::test]
async fn what_an_old_connection_delivers_late_is_undone_after_a_loss_too() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, Duration::from_millis(400)).await;
    proxy.freeze();
    let first = locks.lock("other").ttl(long()).acquire();
    assert_eq!(kind(first.await), ErrorKind::Unavailable);
    // Long enough not to run out in the meantime, and renewed every four seconds.
    let ttl = Duration::from_secs(12);
    let guard = loop {
        let request = locks.lock("k").ttl(ttl).wait(Wait::For(long()));
        if let Ok(guard) = request.acquire().await {
            break guard;
        }
    };
    // Somebody deletes it. The first question arrives behind that, and takes the key for an owner
    // who knows of the loss.
    server.cli(&["DEL", "lockkit:k"]);
    guard.lost().await;
    drop(guard);
    // The release of the lost lease is answered, and undoes nothing of what comes behind it.
    assert!(locks.drain(wait::PATIENCE).await.is_complete());
    proxy.thaw();
    wait::eventually("it comes late", async || server.get("lockkit:k").is_some()).await;
    let mut left = ttl;
    wait::eventually("what came late is undone", async || {
        left = server.time_to_live("lockkit:k").unwrap_or(left);
        keys(&server).is_empty()
    })
    .await;
    assert!(left > ttl / 6, "it has run out by itself: {left:?}");
}

#[tokio::test]
async fn an_acquire_dropped_before_its_batch_is_sent_again_leaves_no_key() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, wait::PATIENCE).await;
    let acquire = |key: &str| tokio::spawn(locks.lock(key).ttl(long()).acquire());

    // Two requests are out, so that what comes now goes in a batch; the server does not know its
    // script, and says so.
    proxy.set(Direction::Replies, Flow::Hold);
    let alone = [acquire("a"), acquire("b")];
    wait::eventually("both are granted", async || {
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
    // One of them is dropped and undone, before the batch is sent again with its script.
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
