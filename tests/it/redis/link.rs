//! Tests a network that delays, swallows and cuts.

use std::time::{Duration, Instant};

use lock_core::{ErrorKind, LockManager, Renew, Wait};
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};
use tokio::time::timeout;

use super::{keys, kind, long, proxied};

#[tokio::test]
async fn behind_a_black_hole_the_lock_is_lost_before_its_key_expires() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_millis(500)).await;
    let ttl = Duration::from_secs(2);
    let guard = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    // The network is slow, so that the time of the answer differs from that of the request.
    proxy.set(Direction::Replies, Flow::Delay(Duration::from_millis(150)));
    let mut last = guard.remaining();
    wait::until("a renewal is answered", || {
        let before = std::mem::replace(&mut last, guard.remaining());
        last > before
    });
    proxy.black_hole();
    let (before, remaining) = (Instant::now(), guard.remaining());
    let watched = watch_expiry(&server, &guard);
    // The loss does not come too early either, because an error never ends a lease before its
    // deadline.
    assert!(watched.duration_since(before) >= remaining - Duration::from_millis(1));
    timeout(wait::PATIENCE, guard.lost())
        .await
        .expect("at once");
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
}

/// Watches the server and the guard until the guard is lost.
///
/// Whenever the key has expired, the guard must already know when it is asked after the server.
fn watch_expiry(server: &RedisServer, guard: &lock_core::LockGuard) -> Instant {
    loop {
        let there = server.time_to_live("lockkit:k").is_some();
        let now = Instant::now();
        if !guard.is_valid() {
            return now;
        }
        assert!(there, "the key is gone, and the guard is still valid");
    }
}

#[tokio::test]
async fn a_renewal_that_is_answered_by_an_error_is_repeated() {
    needs!(redis);
    let (_server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    let ttl = Duration::from_secs(6);
    let guard = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    let passed = proxy.bytes(Direction::Replies);
    proxy.set(
        Direction::Replies,
        Flow::Replace(b"-ERR not now\r\n".to_vec()),
    );
    wait::eventually("a renewal has failed", async || {
        proxy.bytes(Direction::Replies) > passed
    })
    .await;
    let left = guard.remaining();
    proxy.pass();
    wait::eventually("the lock is renewed", async || guard.remaining() > left).await;
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_lock_outlives_answers_that_take_more_than_a_third_of_its_ttl() {
    needs!(redis);
    let (_server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    let ttl = Duration::from_secs(3);
    let guard = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    // The first renewal asks twice, because the server has not heard of its script.
    proxy.set(Direction::Replies, Flow::Delay(Duration::from_millis(700)));
    assert!(timeout(2 * ttl, guard.lost()).await.is_err());
    proxy.pass();
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_renewal_that_is_swallowed_is_repeated() {
    needs!(redis);
    let (_server, proxy, locks) = proxied(Duration::from_millis(200)).await;
    let ttl = Duration::from_secs(6);
    let guard = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    proxy.set(Direction::Replies, Flow::Hold);
    wait::eventually("a renewal is on its way", async || {
        proxy.held(Direction::Replies) > 0
    })
    .await;
    // The answer is lost, but the connection lives.
    tokio::time::sleep(Duration::from_millis(250)).await;
    let left = guard.remaining();
    proxy.pass();
    wait::eventually("the lock is renewed", async || guard.remaining() > left).await;
    guard.release().await.expect("held");
}

#[tokio::test]
async fn renewals_survive_every_kind_of_disconnection() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    let ttl = Duration::from_secs(1);
    let guard = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    for round in 0..12 {
        match round % 3 {
            0 => proxy.cut(),
            1 => {
                proxy.refuse();
                proxy.cut();
                proxy.accept();
            }
            _ => {
                for connections in ["normal", "pubsub"] {
                    server.cli(&["CLIENT", "KILL", "TYPE", connections]);
                }
            }
        }
        assert!(timeout(ttl / 4, guard.lost()).await.is_err());
    }
    assert!(guard.is_valid());
    guard.release().await.expect("held");
    // The other verbs survive it too.
    let guard = locks.lock("k").acquire().await.expect("free");
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_connection_that_has_gone_silent_is_replaced_before_the_lease_runs_out() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_millis(500)).await;
    let ttl = Duration::from_secs(4);
    let guard = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    // The connections are half open: they get no FIN or RST, and new connections work.
    proxy.freeze();
    assert!(timeout(ttl + ttl / 4, guard.lost()).await.is_err());
    // The connection of this runtime has sent nothing since, so it notices the problem only now.
    if let Err(error) = guard.release().await {
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    wait::eventually("the lock is released", async || keys(&server).is_empty()).await;
}

#[tokio::test]
async fn a_release_whose_answer_was_lost_is_no_loss() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    proxy.set(Direction::Replies, Flow::Hold);
    let release = tokio::spawn(guard.release());
    wait::eventually("the key is deleted", async || keys(&server).is_empty()).await;
    // Another client takes the key before the release is repeated.
    server.cli(&["SET", "lockkit:k", "another"]);
    proxy.cut();
    proxy.pass();
    release
        .await
        .expect("no panic")
        .expect("the release succeeded");
    assert_eq!(server.get("lockkit:k").as_deref(), Some("another"));
}

#[tokio::test]
async fn an_acquire_whose_answer_was_lost_is_the_same_acquire_again() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    proxy.set(Direction::Replies, Flow::Hold);
    let acquire = tokio::spawn(locks.lock("k").ttl(long()).acquire());
    wait::eventually("the lock is taken", async || !keys(&server).is_empty()).await;
    let token = server.get("lockkit:k");
    proxy.cut();
    proxy.pass();
    let guard = acquire
        .await
        .expect("no panic")
        .expect("the repeated acquire meets its own token");
    assert_eq!(server.get("lockkit:k"), token);
    guard.release().await.expect("held");
    assert!(keys(&server).is_empty());
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_unavailable_in_time() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    proxy.black_hole();
    let builder = LockManager::builder(&proxy.redis_url());
    let builder = builder.connect_timeout(Duration::from_millis(200));
    let connecting = timeout(wait::PATIENCE, builder.connect()).await;
    assert_eq!(kind(connecting.expect("bounded")), ErrorKind::Unavailable);

    let locks = LockManager::connect_lazy(&proxy.redis_url()).expect("a URL");
    for wait in [
        Wait::None,
        Wait::For(Duration::from_millis(50)),
        Wait::Forever,
    ] {
        let acquire = locks.lock("k").renew(Renew::Off).wait(wait).acquire();
        let answer = timeout(wait::PATIENCE, acquire).await;
        assert_eq!(kind(answer.expect("bounded")), ErrorKind::Unavailable);
    }
    proxy.pass();
    wait::eventually("the manager locks when the network works", async || {
        let acquire = locks.lock("k").acquire().await;
        acquire.map(drop).is_ok()
    })
    .await;
}
