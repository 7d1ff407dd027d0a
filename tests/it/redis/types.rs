//! Tests keys of the lock that hold another type of value.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::{drains, its_turn, keys, kind, long, manager, served, served_both, taken, waits};

#[tokio::test]
async fn a_key_of_another_type_is_a_mistake_and_is_left_unchanged() {
    needs!(redis);
    let (server, locks) = served().await;
    server.cli(&["RPUSH", "lockkit:k", "data"]);
    for wait in [Wait::None, Wait::For(long())] {
        let answer = timeout(wait::PATIENCE, locks.lock("k").wait(wait).acquire()).await;
        assert_eq!(kind(answer.expect("at once")), ErrorKind::Misconfigured);
    }
    locks.drain(wait::PATIENCE).await;
    assert_eq!(server.cli(&["LRANGE", "lockkit:k", "0", "-1"]), "data");
}

#[tokio::test]
async fn a_lock_overwritten_by_another_type_is_lost_and_left_unchanged() {
    needs!(redis);
    let (server, locks) = served().await;
    let ttl = Duration::from_secs(3);
    let guard = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    let others = locks.lock("k2").ttl(ttl).acquire().await.expect("free");
    server.cli(&["DEL", "lockkit:k"]);
    server.cli(&["RPUSH", "lockkit:k", "data"]);
    timeout(ttl / 2, guard.lost())
        .await
        .expect("at the next renewal");
    assert_eq!(kind(guard.release().await), ErrorKind::Lost);
    assert_eq!(server.cli(&["LRANGE", "lockkit:k", "0", "-1"]), "data");
    assert!(others.is_valid(), "renewed in the same batch");
    others.release().await.expect("held");
}

/// Checks a high-water mark from which no fencing token can be counted.
///
/// The lock is refused and no key is left, both if the mark was bad before the manager connected
/// and if it became bad later.
async fn is_refused_as_a_mark(spoil: impl Fn(&RedisServer)) {
    let spoilt = RedisServer::start();
    spoil(&spoilt);
    let late = LockManager::connect_lazy(&spoilt.url()).expect("a URL");
    no_lock_is_given(&late, &spoilt).await;

    let (server, locks) = served().await;
    drop(locks.lock("k").acquire().await.expect("the mark is good"));
    locks_are_gone(&server).await;
    server.cli(&["DEL", "lockkit:!f"]);
    spoil(&server);
    no_lock_is_given(&locks, &server).await;
    server.cli(&["DEL", "lockkit:!f"]);
    let guard = locks
        .lock("k")
        .acquire()
        .await
        .expect("the mark is good again");
    guard.release().await.expect("held");
    drains(&locks).await;
}

async fn no_lock_is_given(locks: &LockManager, server: &RedisServer) {
    for wait in [Wait::None, Wait::For(long())] {
        let acquire = locks.lock("k").ttl(long()).wait(wait).acquire();
        let answer = timeout(wait::PATIENCE, acquire).await;
        let error = answer.expect("at once").expect_err("no fencing token");
        assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error:?}");
        locks_are_gone(server).await;
    }
}

async fn locks_are_gone(server: &RedisServer) {
    wait::eventually("the key is free again", async || keys(server).is_empty()).await;
}

#[tokio::test]
async fn a_mark_of_another_type_is_a_mistake_and_no_lock_stays() {
    needs!(redis);
    is_refused_as_a_mark(|server| {
        server.cli(&["RPUSH", "lockkit:!f", "data"]);
    })
    .await;
}

#[tokio::test]
async fn a_mark_that_is_no_number_is_a_mistake_and_no_lock_stays() {
    needs!(redis);
    for garbage in ["garbage", "", "-1", "1e3", "99999999999999999999", "1.5"] {
        is_refused_as_a_mark(|server| {
            server.cli(&["SET", "lockkit:!f", garbage]);
        })
        .await;
    }
}

#[tokio::test]
async fn a_mark_above_every_clock_is_a_mistake_and_stays_as_it_is() {
    needs!(redis);
    for mark in ["9000000000000000", "9007199254740991", "9999999999999998"] {
        is_refused_as_a_mark(|server| {
            server.cli(&["SET", "lockkit:!f", mark]);
        })
        .await;

        // A hand-over does not count from such a mark either.
        let (server, locks, other) = served_both().await;
        let guard = taken(&locks, "k", long()).await;
        let waiter = waits(&server, &other, "k", 1).await;
        server.cli(&["SET", "lockkit:!f", mark]);
        guard.release().await.expect("held");
        drop(its_turn(waiter).await);
        locks_are_gone(&server).await;
        assert_eq!(server.get("lockkit:!f").as_deref(), Some(mark));
    }
}

#[tokio::test]
async fn tokens_count_on_from_a_mark_that_is_ahead_of_the_clock() {
    needs!(redis);
    let server = RedisServer::start();
    let ahead = 4_000_000_000_000_000_u64;
    server.cli(&["SET", "lockkit:!f", &ahead.to_string()]);
    let (locks, other) = (manager(&server.url()).await, manager(&server.url()).await);
    let mut last = ahead;
    for round in 0..6 {
        let request = [&locks, &other][round % 2].lock("k").ttl(long());
        let guard = request.acquire().await.expect("free");
        let token = u64::from(guard.fencing_token());
        assert!(token > last, "{token} after {last}");
        last = token;
        match round {
            // The leases end in different ways.
            0 | 1 => guard.release().await.expect("held"),
            2 => {
                server.cli(&["DEL", "lockkit:k"]);
                drop(guard);
            }
            _ => {
                drop(guard);
                wait::eventually("the lock is released", async || keys(&server).is_empty()).await;
            }
        }
    }
}

#[tokio::test]
async fn with_a_queue_of_another_type_only_the_push_is_missing() {
    needs!(redis);
    let (server, locks, other) = served_both().await;
    server.cli(&["SET", "lockkit:!q:{k}", "data"]);
    let ttl = Duration::from_secs(1);
    let guard = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    let waiter = tokio::spawn(other.lock("k").wait(Wait::Forever).acquire());
    assert!(
        timeout(ttl * 2, guard.lost()).await.is_err(),
        "the lock is renewed"
    );
    guard.release().await.expect("held");
    let next = timeout(wait::PATIENCE, waiter)
        .await
        .expect("the waiter asks at the end of the known ttl");
    let next = next.expect("no panic").expect("its turn");
    next.cooldown(Duration::from_millis(10));
    next.release().await.expect("held");
    assert_eq!(server.get("lockkit:!q:{k}").as_deref(), Some("data"));
}
