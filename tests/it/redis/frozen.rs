//! Tests a server that does not run: stopped, or told to pause.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::{drains, its_turn, keys, kind, long, served, served_both, taken};

fn bounded() -> Duration {
    Duration::from_secs(5)
}

#[tokio::test]
async fn a_stopped_server_is_unavailable_in_time_and_nothing_is_left_when_it_goes_on() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = LockManager::connect(&server.url())
        .await
        .expect("a manager");
    let held = taken(&locks, "held", long()).await;
    let released = taken(&locks, "released", long()).await;
    server.stop();
    for wait in [
        Wait::None,
        Wait::For(Duration::from_millis(50)),
        Wait::Forever,
    ] {
        let acquire = locks.lock("k").ttl(long()).wait(wait).acquire();
        let answer = timeout(bounded(), acquire).await;
        assert_eq!(kind(answer.expect("bounded")), ErrorKind::Unavailable);
    }
    let answer = timeout(bounded(), released.release()).await;
    assert_eq!(kind(answer.expect("bounded")), ErrorKind::Unavailable);
    assert!(held.is_valid(), "the lease still runs");
    server.cont();
    wait::eventually("the server serves again", async || {
        let acquire = locks.lock("k2").ttl(long()).acquire().await;
        acquire.map(drop).is_ok()
    })
    .await;
    held.release().await.expect("held");
    drains(&locks).await;
    assert_eq!(keys(&server), Vec::<String>::new());
}

#[tokio::test]
async fn a_connection_to_a_stopped_server_is_bounded() {
    needs!(redis);
    let server = RedisServer::start();
    server.stop();
    let builder = LockManager::builder(&server.url());
    let builder = builder.connect_timeout(Duration::from_millis(200));
    let answer = timeout(bounded(), builder.connect()).await;
    let error = answer
        .expect("bounded")
        .expect_err("the server does not answer");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.retry_after().is_some());
    server.cont();
}

#[tokio::test]
async fn a_pause_of_all_clients_is_unavailable_and_late_requests_are_undone() {
    needs!(redis);
    let server = RedisServer::start();
    let builder = LockManager::builder(&server.url());
    let builder = builder.operation_timeout(Duration::from_millis(200));
    let locks = builder.connect().await.expect("a manager");
    let guard = taken(&locks, "held", long()).await;
    server.cli(&["CLIENT", "PAUSE", "600"]);
    let answer = locks.lock("k").ttl(long()).acquire().await;
    assert_eq!(kind(answer), ErrorKind::Unavailable);
    let unknown = locks.forget("held").await.expect_err("no answer");
    assert_eq!(unknown.kind(), ErrorKind::Unavailable);
    assert_eq!(unknown.key(), Some("held"));
    wait::eventually("the pause is over", async || {
        let acquire = locks.lock("k2").ttl(long()).acquire().await;
        acquire.map(drop).is_ok()
    })
    .await;
    guard.release().await.expect("held");
    drains(&locks).await;
    assert_eq!(keys(&server), Vec::<String>::new());
}

#[tokio::test]
async fn a_pause_that_is_shorter_than_the_patience_is_only_a_delay() {
    needs!(redis);
    let (server, locks) = served().await;
    server.cli(&["CLIENT", "PAUSE", "300", "WRITE"]);
    let guard = locks.lock("k").acquire().await.expect("after the pause");
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_waiter_survives_a_short_stop_of_the_server() {
    needs!(redis);
    let (server, locks, other) = served_both().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = tokio::spawn(other.lock("k").wait(Wait::Forever).acquire());
    wait::eventually("the waiter is queued", async || keys(&server).len() == 2).await;
    server.stop();
    let release = tokio::spawn(guard.release());
    tokio::task::yield_now().await;
    server.cont();
    release.await.expect("no panic").expect("held");
    its_turn(waiter).await.release().await.expect("held");
}
