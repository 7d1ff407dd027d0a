//! Tests servers that are separate processes and are killed.

use std::time::Duration;

use lock_core::LockManager;
use lock_tests::{ChildProcess, RedisServer, http, needs, wait};
use tokio::time::{Instant, timeout};
use tracing_subscriber::fmt::format::FmtSpan;

use super::client::{VERSIONS, Version};
use super::{Gate, Server, click, key, layer, server_on};
use crate::shop::code;

const SERVER: &str = "LOCK_TESTS_LAYER_SERVER";

fn ttl() -> Duration {
    Duration::from_secs(1)
}

/// Starts the ignored test below in a process of its own.
fn serving(redis: &RedisServer) -> (ChildProcess, u16) {
    let test = "layer::processes::serves_until_killed";
    let process = ChildProcess::of_test(test, &[(SERVER, &redis.url())]);
    let port = process.tells("serving ").parse().expect("a port");
    (process, port)
}

/// Waits without blocking the thread, because that would stop the client too.
pub(super) async fn says(process: &ChildProcess, words: &str) {
    wait::eventually(words, async || process.has_said(words)).await;
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn serves_until_killed() {
    let Ok(url) = std::env::var(SERVER) else {
        return;
    };
    // The subscriber logs everything on every thread.
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(FmtSpan::FULL)
        .with_ansi(false)
        .init();
    let gate = Gate::closed();
    let locks = LockManager::connect(&url).await.expect("a manager");
    let server = Server::start(locks.clone(), layer(&locks).ttl(ttl()), &gate).await;
    println!("\nserving {}", server.port());
    gate.entered(1).await;
    println!("\nhandling");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_server_that_is_killed_while_its_handler_runs_costs_its_user_the_ttl() {
    needs!(redis);
    for version in VERSIONS {
        killed_while_it_handles(version).await;
    }
}

async fn killed_while_it_handles(version: Version) {
    let redis = RedisServer::start();
    let gate = Gate::open();
    let other = server_on(&redis, &gate).await;
    let (mut process, port) = serving(&redis);
    let lost =
        tokio::spawn(async move { version.post(port, "/orders", &[("x-user-id", "42")]).await });
    says(&process, "handling").await;
    let refused = click(&other, "42").await;
    assert_eq!((refused.status, &*code(&refused)), (409, "lock_busy"));

    process.kill();
    lost.await
        .expect("no panic")
        .expect_err("the killed server does not answer");
    let left = redis.time_to_live(&key("42")).unwrap_or_default();
    assert!(left <= ttl(), "{left:?}");
    let start = Instant::now();
    let served = timeout(left + Duration::from_secs(5), async {
        loop {
            let answer = click(&other, "42").await;
            match answer.status {
                409 => tokio::time::sleep(Duration::from_millis(5)).await,
                _ => return answer,
            }
        }
    })
    .await;
    assert_eq!(served.expect("served in time").status, 201);
    let early = left.saturating_sub(start.elapsed());
    assert!(
        early < ttl() / 10,
        "the lock was taken {early:?} before its end"
    );
    assert_eq!(gate.counts(), (1, 1));
}

#[tokio::test]
async fn a_frozen_server_does_not_undo_the_lock_of_the_next_one() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::closed();
    let other = server_on(&redis, &gate).await;
    let (process, port) = serving(&redis);
    let frozen =
        tokio::spawn(async move { http::post(port, "/orders", &[("x-user-id", "42")], "").await });
    says(&process, "handling").await;
    process.stop();
    wait::eventually("the lock has run out", async || {
        redis.get(&key("42")).is_none()
    })
    .await;
    let (order, ()) = tokio::join!(click(&other, "42"), async {
        let lock = gate.entered(1).await;
        let owner = redis.get(&key("42"));
        process.cont();
        // The server answers again, so its renewals and withdrawals are on their way or done.
        let twin = http::post(port, "/orders", &[("x-user-id", "42")], "").await;
        assert_eq!(twin.expect("the server answers again").status, 409);
        assert_eq!(redis.get(&key("42")), owner);
        assert!(lock.is_valid());
        gate.let_through(1);
    });
    assert_eq!(order.status, 201);
    frozen.abort();
}

#[tokio::test]
async fn a_process_logs_no_key_no_token_and_no_user_in_any_failure() {
    needs!(redis);
    let redis = RedisServer::start();
    let (mut process, port) = serving(&redis);
    let post = |user: &'static str| async move {
        let headers = [
            ("x-user-id", user),
            ("authorization", "Bearer secret-token"),
        ];
        http::post(port, "/orders", &headers, "").await
    };
    let order = tokio::spawn(post("secret-user"));
    says(&process, "handling").await;
    let token = redis.get(&key("secret-user")).expect("taken");
    let duplicate = post("secret-user").await.expect("an answer");
    assert_eq!(duplicate.status, 409);
    // The lock is lost, and its renewal notices the loss. After that Redis is down.
    redis.cli(&["DEL", &key("secret-user")]);
    redis.kill();
    let other = post("secret-other").await.expect("an answer");
    assert_eq!(other.status, 503);
    wait::eventually("the end of the hold is logged", async || {
        process.output().contains("lock_unavailable")
    })
    .await;
    process.kill();
    order.abort();
    let said = process.output();
    for words in ["lock.acquire", "lock.hold", "lock_busy", "lock_unavailable"] {
        assert!(said.contains(words), "the log has no {words}: {said}");
    }
    for value in ["secret", "submit:", "lockkit:", &*token] {
        assert!(!said.contains(value), "{value}: {said}");
    }
    for answer in [duplicate, other] {
        let answer = format!("{answer:?}");
        assert!(
            !answer.contains("secret") && !answer.contains(&token),
            "{answer}"
        );
    }
}
