//! Tests a server that tells owners of changes of their keys.
//!
//! Where the owner's clock stands still, no regular renewal is ever due. So a loss is one that the server has told of.

use std::time::Duration;

use lock_core::test_util::ManualClock;
use lock_core::{LockGuard, LockManager, Watch};
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::{keys, long, manager, once, served, taken};

const KEY: &str = "lockkit:k";

/// Makes a manager whose clock stands still.
async fn timeless(url: &str) -> (LockManager, ManualClock) {
    let clock = ManualClock::new();
    let locks = LockManager::builder(url).clock(clock.clone()).connect();
    (locks.await.expect("a manager"), clock)
}

/// Counts the renewals that have asked the server to watch their keys.
fn watches(server: &RedisServer) -> u64 {
    let calls = server.commandstats();
    calls.get("client|caching").copied().unwrap_or(0)
}

async fn until_watched(server: &RedisServer, renewals: u64) {
    wait::eventually("the server watches the key", async || {
        watches(server) >= renewals
    })
    .await;
}

async fn watched(locks: &LockManager, server: &RedisServer, ttl: Duration) -> LockGuard {
    let before = watches(server);
    let request = locks.lock("k").ttl(ttl).watch(Watch::AtOnce);
    let guard = request.acquire().await.expect("free");
    until_watched(server, before + 1).await;
    guard
}

async fn told(guard: &LockGuard) {
    let told = timeout(wait::PATIENCE, guard.lost()).await;
    told.expect("the owner is told");
}

#[tokio::test]
async fn an_owner_is_told_of_a_deletion_another_value_an_expiry_and_a_flush() {
    needs!(redis_7);
    let server = RedisServer::start();
    let (locks, clock) = timeless(&server.url()).await;
    // The server knows the script of renewals. It watches no key of a renewal that it answers by asking for the script.
    let guard = watched(&locks, &server, long()).await;
    guard.release().await.expect("held");
    for command in [
        &["DEL", KEY][..],
        &["SET", KEY, "stranger", "PX", "50"],
        &["UNLINK", KEY],
        &["FLUSHALL"],
    ] {
        let guard = locks.lock("k").ttl(long()).watch(Watch::AtOnce);
        let before = watches(&server);
        let guard = guard.wait(wait::PATIENCE).acquire().await.expect("free");
        until_watched(&server, before + 1).await;
        assert!(guard.is_valid());
        server.cli(command);
        // A hint that the key was taken may have been the first one. The next comes a quarter of a second later.
        clock.advance(Duration::from_millis(300));
        told(&guard).await;
        // A stranger's key is left alone, and ends by itself.
        wait::eventually("the key is free", async || server.get(KEY).is_none()).await;
    }
    // By the owner's clock the lease has hardly begun.
    let guard = watched(&locks, &server, Duration::from_secs(1)).await;
    assert!(guard.remaining() > Duration::from_millis(900));
    wait::eventually("the key has expired", async || server.get(KEY).is_none()).await;
    clock.advance(Duration::from_millis(300));
    told(&guard).await;
}

#[tokio::test]
async fn a_hint_is_followed_by_one_renewal_and_not_by_another_hint() {
    needs!(redis_7);
    let (server, locks) = served().await;
    let guard = watched(&locks, &server, long()).await;
    // The first renewal asks twice, because the server answers by asking for the script.
    until_watched(&server, 2).await;
    let before = watches(&server);
    // The key is changed, and is still the owner's.
    server.cli(&["PEXPIRE", KEY, "50000"]);
    until_watched(&server, before + 1).await;
    let ends = server.time_to_live(KEY).expect("held");
    assert!(ends > Duration::from_secs(50), "the hint was a renewal");
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(watches(&server), before + 1);
    assert!(guard.is_valid());
    // Of many changes at once, the server tells the first one after each renewal.
    for _ in 0..50 {
        server.cli(&["PERSIST", KEY]);
    }
    until_watched(&server, before + 2).await;
    assert!(guard.is_valid());
    guard.release().await.expect("held");
}

#[tokio::test]
async fn the_locks_behind_a_watched_one_cost_what_they_cost_before() {
    needs!(redis_7);
    let (server, locks) = served().await;
    let other = manager(&server.url()).await;
    let guard = watched(&locks, &server, long()).await;
    guard.release().await.expect("held");
    once(&other, "k").await;
    server.reset_stats();
    for _ in 0..50 {
        for locks in [&locks, &other] {
            once(locks, "k").await;
        }
    }
    // The push of the first release may arrive while a later lock is held.
    let guard = taken(&locks, "k", long()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    guard.release().await.expect("held");
    assert_eq!(watches(&server), 0);
    assert_eq!(server.commandstats().get("pexpireat"), None);
}

#[tokio::test]
async fn without_a_right_an_owner_notices_a_deletion_at_its_next_renewal() {
    needs!(redis_7);
    for right in ["-client|tracking", "-client|caching"] {
        let server = RedisServer::start();
        server.cli(&[
            "ACL", "SETUSER", "u", "on", ">u", "~*", "&*", "+@all", right,
        ]);
        let url = server.url().replacen("://", "://u:u@", 1);
        let (locks, clock) = timeless(&url).await;
        server.cli(&["ACL", "LOG", "RESET"]);
        let guard = locks.lock("k").ttl(long()).watch(Watch::AtOnce);
        let guard = guard.acquire().await.expect("free");
        let renewed = || server.commandstats().get("pttl").copied().unwrap_or(0);
        let before = renewed();
        wait::eventually("the lock is renewed", async || {
            clock.advance(Duration::from_secs(1));
            renewed() > before + 2
        })
        .await;
        assert_eq!(watches(&server), 0, "{right}");
        let log = server.cli(&["ACL", "LOG"]);
        let refused = log
            .split("count\n")
            .filter(|it| it.contains("\nclient|caching\n"));
        let times = refused.map(|it| it.lines().next().and_then(|times| times.parse().ok()));
        let times: u64 = times.map(|times| times.unwrap_or(99)).sum();
        // With the first renewal, by the name of its script and then by the whole script.
        assert!(times <= 2, "the command is refused once: {log}");
        server.cli(&["DEL", KEY]);
        clock.advance(Duration::from_secs(11));
        told(&guard).await;
        assert!(keys(&server).is_empty());
    }
}
