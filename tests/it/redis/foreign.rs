//! Tests clients of other libraries on the very same keys: `SET key token NX PX ttl`.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::{its_turn, kind, long, taken};

/// Makes a manager without a namespace.
async fn bare(server: &RedisServer) -> LockManager {
    let builder = LockManager::builder(&server.url()).namespace("");
    let builder = builder.operation_timeout(Duration::from_secs(5));
    builder.connect().await.expect("a manager")
}

fn taken_by_a_stranger(server: &RedisServer, millis: &str) -> bool {
    server.cli(&["SET", "k", "stranger", "NX", "PX", millis]) == "OK"
}

#[tokio::test]
async fn foreign_clients_and_our_owners_exclude_each_other() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = bare(&server).await;
    assert!(taken_by_a_stranger(&server, "60000"));
    let error = locks.lock("k").acquire().await.expect_err("held");
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.retry_after().is_some(), "a hint");
    server.cli(&["DEL", "k"]);
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    assert!(!taken_by_a_stranger(&server, "60000"));
    guard.release().await.expect("held");
    assert!(taken_by_a_stranger(&server, "60000"));
}

/// Checks a key with an expiry, one without, and one without a value.
#[tokio::test]
async fn a_foreign_key_is_busy_and_its_deletion_without_a_push_is_noticed_soon() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = bare(&server).await;
    for value in [
        &["stranger", "PX", "60000"][..],
        &["stranger"],
        &["", "PX", "60000"],
    ] {
        server.cli(&[&["SET", "k"], value].concat());
        for wait in [Wait::None, Wait::For(Duration::from_millis(50))] {
            let answer = locks.lock("k").wait(wait).acquire().await;
            assert_eq!(kind(answer), ErrorKind::Busy, "{value:?}");
        }
        let is_queued = || server.keys().iter().any(|key| key.contains("!q"));
        wait::eventually("no waiter is queued", async || !is_queued()).await;
        let waiter = tokio::spawn(locks.lock("k").wait(Wait::Forever).acquire());
        wait::eventually("the waiter is queued", async || is_queued()).await;
        server.cli(&["DEL", "k"]);
        its_turn(waiter).await.release().await.expect("held");
    }
}

#[tokio::test]
async fn a_foreign_lock_that_runs_out_can_be_taken_at_once() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = bare(&server).await;
    assert!(taken_by_a_stranger(&server, "300"));
    let guard = timeout(wait::PATIENCE, locks.lock("k").wait(long()).acquire()).await;
    guard
        .expect("the foreign lock ran out")
        .expect("free")
        .release()
        .await
        .expect("held");
}

#[tokio::test]
async fn any_foreign_value_in_the_key_is_busy() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = bare(&server).await;
    // The manual of Redis suggests twenty random bytes.
    let binary = r"return redis.call('SET', 'k', '\255\254\000\128random', 'PX', 60000)";
    server.cli(&["EVAL", binary, "0"]);
    for wait in [Wait::None, Wait::For(Duration::from_millis(50))] {
        assert_eq!(
            kind(locks.lock("k").wait(wait).acquire().await),
            ErrorKind::Busy
        );
    }
    for value in [
        "",
        "0",
        "cooling",
        "cooling/",
        "cooling/x",
        "/",
        "(nil)",
        "OK",
    ] {
        server.cli(&["SET", "k", value, "PX", "60000"]);
        for wait in [Wait::None, Wait::For(Duration::from_millis(50))] {
            let answer = locks.lock("k").wait(wait).acquire().await;
            assert_eq!(kind(answer), ErrorKind::Busy, "{value:?}");
        }
    }
}

#[tokio::test]
async fn a_foreign_client_that_overwrites_our_lock_keeps_it() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = bare(&server).await;
    let ttl = Duration::from_secs(2);
    let guard = locks.lock("k").ttl(ttl).acquire().await.expect("free");
    server.cli(&["SET", "k", "stranger"]);
    timeout(ttl, guard.lost())
        .await
        .expect("at the next renewal");
    drop(guard);
    locks.drain(wait::PATIENCE).await;
    assert_eq!(server.get("k").as_deref(), Some("stranger"));
    assert_eq!(
        server.time_to_live("k"),
        None,
        "the foreign key keeps its own expiry"
    );
}

#[tokio::test]
async fn two_namespaces_have_separate_locks() {
    needs!(redis);
    let server = RedisServer::start();
    let (one, other) = (bare(&server).await, super::manager(&server.url()).await);
    let held = taken(&one, "k", long()).await;
    let also = taken(&other, "k", long()).await;
    assert!(server.get("k").is_some() && server.get("lockkit:k").is_some());
    held.release().await.expect("held");
    also.release().await.expect("held");
}

#[tokio::test]
async fn two_databases_of_one_server_have_separate_locks() {
    needs!(redis);
    let server = RedisServer::start();
    let (zero, one) = (
        super::manager(&server.url()).await,
        super::manager(&format!("{}/1", server.url())).await,
    );
    let held = taken(&zero, "k", long()).await;
    let also = taken(&one, "k", long()).await;
    // Pushes are not separated by database.
    let waiting = super::manager(&server.url()).await.lock("k");
    let waiter = tokio::spawn(waiting.wait(Wait::Forever).acquire());
    wait::eventually("the waiter is queued", async || server.keys().len() == 2).await;
    also.release().await.expect("held");
    assert!(held.is_valid());
    held.release().await.expect("held");
    let next = timeout(wait::PATIENCE, waiter).await.expect("told");
    drop(next.expect("no panic").expect("its turn"));
}

#[tokio::test]
async fn a_socket_and_a_client_of_the_caller_lead_to_the_same_locks() {
    needs!(redis);
    let server = RedisServer::start();
    let client = lock_core::redis1::Client::open(server.url()).expect("a URL");
    let managers = [
        super::manager(&server.url()).await,
        super::manager(&server.socket_url()).await,
        LockManager::from_client(client).expect("a manager"),
    ];
    for (index, locks) in managers.iter().enumerate() {
        let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
        for other in &managers {
            assert_eq!(kind(other.lock("k").acquire().await), ErrorKind::Busy);
        }
        let other = &managers[(index + 1) % managers.len()];
        let waiter = tokio::spawn(other.lock("k").wait(Wait::Forever).acquire());
        wait::eventually("the waiter is queued", async || server.keys().len() == 2).await;
        guard.release().await.expect("held");
        its_turn(waiter).await.release().await.expect("held");
    }
}
