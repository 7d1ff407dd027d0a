//! Tests a server without memory, and one that only reads.

use std::future::ready;
use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::{drains, keys, kind, long, served, served_both, taken};

#[tokio::test]
async fn a_full_server_grants_no_lock_and_renews_and_releases_those_held() {
    needs!(redis);
    let (server, locks) = served().await;
    let ttl = Duration::from_secs(1);
    let kept = locks.lock("kept").ttl(ttl).acquire().await.expect("free");
    let given_back = taken(&locks, "back", long()).await;
    let cooled = locks.lock("cooled").ttl(long()).cooldown(long());
    let cooled = cooled.acquire().await.expect("free");
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    for wait in [Wait::None, Wait::For(Duration::from_millis(50))] {
        let error = locks
            .lock("k")
            .wait(wait)
            .acquire()
            .await
            .expect_err("full");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    given_back
        .release()
        .await
        .expect("a release needs no memory");
    assert_eq!(server.get("lockkit:back"), None);
    cooled.release().await.expect("a cooldown needs no memory");
    let value = server.get("lockkit:cooled").expect("it cools down");
    assert!(value.starts_with("cooling/"), "{value}");
    assert!(
        timeout(ttl * 2, kept.lost()).await.is_err(),
        "the lock is renewed"
    );
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    kept.release().await.expect("held");
    let guard = locks
        .lock("k")
        .acquire()
        .await
        .expect("there is memory again");
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_full_server_keeps_the_key_of_a_completed_run_to_the_end_of_its_tick() {
    needs!(redis);
    let (server, locks, other) = served_both().await;
    let job = locks.every("k", long() * 100_000).run(|_| {
        server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
        ready(())
    });
    let cools = wait::eventually("the key cools down", async || {
        let value = server.get("lockkit:k");
        value.is_some_and(|value| value.starts_with("cooling/"))
    });
    tokio::select! {
        ended = job => panic!("{ended:?}"),
        () = cools => {}
    }
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    let refused = other.lock("k").acquire().await.expect_err("it cools down");
    assert!(refused.is_cooling_down(), "{refused:?}");
}

#[tokio::test]
async fn a_waiter_on_a_full_server_is_given_the_lock() {
    needs!(redis);
    let (server, locks, other) = served_both().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = tokio::spawn(other.lock("k").wait(Wait::Forever).acquire());
    wait::eventually("the waiter is queued", async || keys(&server).len() == 2).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    guard.release().await.expect("a release needs no memory");
    let next = timeout(wait::PATIENCE, waiter).await.expect("told");
    let next = next.expect("no panic").expect("the key was there before");
    next.release().await.expect("a release needs no memory");
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
}

#[tokio::test]
async fn a_replica_grants_no_lock() {
    needs!(redis);
    let primary = RedisServer::start();
    let port = primary.port().to_string();
    primary.cli(&["CONFIG", "SET", "repl-diskless-sync-delay", "0"]);
    let replica = RedisServer::start();
    replica.cli(&["REPLICAOF", "127.0.0.1", &port]);
    wait::until("the replica follows", || {
        replica
            .info("replication")
            .get("master_link_status")
            .map(String::as_str)
            == Some("up")
    });
    let locks = LockManager::connect(&replica.url())
        .await
        .expect("the replica answers reads");
    for wait in [
        Wait::None,
        Wait::For(Duration::from_millis(50)),
        Wait::Forever,
    ] {
        let answer = timeout(wait::PATIENCE, locks.lock("k").wait(wait).acquire()).await;
        assert_eq!(kind(answer.expect("bounded")), ErrorKind::Unavailable);
    }
    assert!(keys(&primary).is_empty());
    // After its promotion the server serves the same manager on the same connections.
    replica.cli(&["REPLICAOF", "NO", "ONE"]);
    let guard = locks.lock("k").acquire().await.expect("a primary now");
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_primary_that_becomes_a_replica_loses_the_lock_in_time() {
    needs!(redis);
    let (server, locks) = served().await;
    let ttl = Duration::from_secs(1);
    let guard = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    // Its master does not exist, so it keeps its data and refuses writes.
    server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    let before = std::time::Instant::now();
    guard.lost().await;
    assert!(before.elapsed() < wait::PATIENCE);
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
}

#[tokio::test]
async fn a_server_without_enough_replicas_grants_no_lock() {
    needs!(redis);
    let (server, locks) = served().await;
    let guard = taken(&locks, "held", long()).await;
    server.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    assert_eq!(
        kind(locks.lock("k").acquire().await),
        ErrorKind::Unavailable
    );
    // NOREPLICAS refuses releases too. The keeper repeats the release until the server accepts
    // it.
    assert_eq!(kind(guard.release().await), ErrorKind::Unavailable);
    server.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    drains(&locks).await;
    assert!(keys(&server).is_empty());
}
