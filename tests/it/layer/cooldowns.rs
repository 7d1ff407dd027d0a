//! Tests how long a key stays taken after an answer.

use std::time::Duration;

use lock_core::LockManager;
use lock_tests::http::Response;
use lock_tests::{RedisServer, needs, wait};
use lock_tower::LockLayer;

use super::client::{VERSIONS, Version};
use super::{Gate, Server, key, layer, nothing_is_left};
use crate::shop::{code, retry_after};

/// Starts two servers with the same layer, whose handlers wait at the gate.
async fn pair(
    redis: &RedisServer,
    gate: &Gate,
    layer: impl Fn(&LockManager) -> LockLayer,
) -> [Server; 2] {
    let mut servers = Vec::new();
    for _ in 0..2 {
        let locks = LockManager::connect(&redis.url()).await.expect("a manager");
        servers.push(Server::start(locks.clone(), layer(&locks), gate).await);
    }
    servers.try_into().unwrap_or_else(|_| panic!("two of them"))
}

async fn answered(version: Version, server: &Server, user: &str, answer: &str) -> Response {
    let headers = [("x-user-id", user), ("x-answer", answer)];
    version.post(server, &headers).await
}

#[tokio::test]
async fn only_success_is_followed_by_a_cooldown_and_only_a_cooldown_blocks_the_other_server() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::open();
    let long = |locks: &LockManager| layer(locks).cooldown(Duration::from_secs(60));
    let servers = pair(&redis, &gate, long).await;
    for version in VERSIONS {
        for (status, cools) in [
            ("200", true),
            ("201", true),
            ("303", true),
            ("302", false),
            ("400", false),
            ("409", false),
            ("422", false),
            ("500", false),
            ("503", false),
            ("panic", false),
        ] {
            let user = format!("{version:?}-{status}");
            let first = answered(version, &servers[0], &user, status).await;
            let expected = status.parse().unwrap_or(500);
            assert_eq!(first.status, expected, "{first:?}");
            if status == "panic" {
                // The task releases the lock as it unwinds, at about the time of the answer.
                wait::eventually("the lock is released", async || {
                    redis.get(&key(&user)).is_none()
                })
                .await;
            }
            let next = answered(version, &servers[1], &user, "201").await;
            if cools {
                assert_eq!(next.status, 409, "{user}");
                assert_eq!(code(&next), "lock_cooling_down");
                assert!((59..=60).contains(&retry_after(&next)), "{next:?}");
            } else {
                assert_eq!(next.status, 201, "{user}");
            }
        }
    }
}

#[tokio::test]
async fn a_handler_slower_than_the_cooldown_is_followed_by_the_whole_cooldown() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::closed();
    let cooldown = Duration::from_millis(900);
    let short = |locks: &LockManager| layer(locks).cooldown(cooldown);
    let servers = pair(&redis, &gate, short).await;
    let began = std::time::Instant::now();
    let (order, ()) = tokio::join!(answered(Version::Http1, &servers[0], "42", "201"), async {
        gate.entered(1).await;
        wait::eventually("the handler has run longer than the cooldown", async || {
            began.elapsed() > cooldown
        })
        .await;
        gate.let_through(1);
    });
    assert_eq!(order.status, 201);
    // The last millisecond counts as a whole second, so `Retry-After` is never 0.
    gate.let_through(1);
    wait::eventually("the cooldown is over", async || {
        let next = answered(Version::Http2, &servers[1], "42", "201").await;
        if next.status == 409 {
            assert_eq!(
                (code(&next).as_str(), retry_after(&next)),
                ("lock_cooling_down", 1)
            );
        }
        next.status == 201
    })
    .await;
    assert_eq!(gate.counts(), (2, 2));
}

#[tokio::test]
async fn an_interval_counts_from_the_grant() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::closed();
    let interval = Duration::from_secs(60);
    let spaced = |locks: &LockManager| layer(locks).min_interval(interval);
    let servers = pair(&redis, &gate, spaced).await;
    let worked = Duration::from_millis(300);
    let (order, ()) = tokio::join!(answered(Version::Http2, &servers[0], "42", "201"), async {
        let lock = gate.entered(1).await;
        let began = std::time::Instant::now();
        wait::eventually("the handler has run for its time", async || {
            began.elapsed() > worked
        })
        .await;
        assert!(lock.is_valid());
        gate.let_through(1);
    });
    assert_eq!(order.status, 201);
    let left = redis.time_to_live(&key("42")).expect("the key cools down");
    assert!(left <= interval - worked, "{left:?}");
    let next = answered(Version::Http1, &servers[1], "42", "201").await;
    assert_eq!((next.status, &*code(&next)), (409, "lock_cooling_down"));
}

#[tokio::test]
async fn cooldown_with_alone_decides_the_cooldown() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::open();
    let by_answer = |locks: &LockManager| {
        layer(locks).cooldown_with(|head| match head.status.as_u16() {
            401 => Duration::from_secs(60),
            _ => Duration::ZERO,
        })
    };
    let servers = pair(&redis, &gate, by_answer).await;
    for version in VERSIONS {
        let user = format!("{version:?}");
        assert_eq!(
            answered(version, &servers[0], &user, "201").await.status,
            201
        );
        assert_eq!(
            answered(version, &servers[1], &user, "401").await.status,
            401
        );
        let next = answered(version, &servers[0], &user, "201").await;
        assert_eq!((next.status, &*code(&next)), (409, "lock_cooling_down"));
    }
}

#[tokio::test]
async fn the_cooldowns_and_releases_of_a_handler_count_on_the_other_server() {
    needs!(redis);
    let redis = RedisServer::start();
    let minute = Duration::from_secs(60);
    for version in VERSIONS {
        let gate = Gate::closed();
        let servers = pair(&redis, &gate, |locks| layer(locks).cooldown(minute)).await;
        let (failed, ()) = tokio::join!(answered(version, &servers[0], "42", "500"), async {
            let lock = gate.entered(1).await;
            lock.cool_down(minute);
            gate.let_through(1);
        });
        assert_eq!(failed.status, 500);
        let next = answered(version, &servers[1], "42", "201").await;
        assert_eq!((next.status, &*code(&next)), (409, "lock_cooling_down"));

        let (made, ()) = tokio::join!(answered(version, &servers[0], "43", "201"), async {
            let lock = gate.entered(2).await;
            lock.skip_cooldown();
            gate.let_through(1);
        });
        assert_eq!(made.status, 201);

        // The handler releases its lock in the middle, so the next one need not wait for the
        // handler's end.
        let (first, next) = tokio::join!(answered(version, &servers[0], "43", "201"), async {
            let lock = gate.entered(3).await;
            lock.release_now().await.expect("held");
            let let_them = async {
                let next = gate.entered(4).await;
                assert!(next.fencing_token() > lock.fencing_token());
                next.skip_cooldown();
                gate.let_through(2);
            };
            tokio::join!(answered(version, &servers[1], "43", "201"), let_them).0
        });
        assert_eq!((first.status, next.status), (201, 201), "{version:?}");
        redis.cli(&["DEL", &key("42")]);
        nothing_is_left(&redis, &[&servers[0], &servers[1]]).await;
    }
}
