//! Tests users that lack rights which a lock needs.

use std::time::Duration;

use lock_core::{Error, ErrorKind, LockManager, Wait};
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::{its_turn, keys, long, manager, taken};

/// Starts a server with the user `alice`, who has these rights.
fn server(may: &[&str]) -> RedisServer {
    let server = RedisServer::start();
    let user = ["ACL", "SETUSER", "alice", "on", ">sesame"];
    server.cli(&[&user[..], may].concat());
    server
}

fn url(server: &RedisServer) -> String {
    format!("redis://alice:sesame@{}", server.address())
}

/// Returns the first error of connecting and locking.
async fn refused(server: &RedisServer) -> Error {
    let attempt = async {
        let locks = LockManager::connect(&url(server)).await?;
        locks.lock("k").ttl(long()).acquire().await.map(drop)
    };
    let outcome = timeout(wait::PATIENCE, attempt).await;
    let error = outcome.expect("at once").expect_err("forbidden");
    let shown = format!("{error} {error:?}");
    assert!(
        !shown.contains("alice") && !shown.contains("sesame"),
        "{shown}"
    );
    error
}

#[tokio::test]
async fn a_user_with_the_advised_rights_can_lock_and_wait() {
    needs!(redis);
    // These are exactly the rights that the error of the next tests advises.
    let server = server(&[
        "+@read",
        "+@write",
        "+@scripting",
        "+@connection",
        "+publish",
        "+subscribe",
        "+time",
        "+info",
        "~lockkit:*",
        // A new user of Redis 6.2 may use all channels.
        "resetchannels",
        "&lockkit:!m:*",
    ]);
    let (locks, other) = (manager(&url(&server)).await, manager(&url(&server)).await);
    let guard = taken(&locks, "k", long()).await;
    let waiter = tokio::spawn(other.lock("k").wait(Wait::Forever).acquire());
    wait::eventually("the waiter is queued", async || keys(&server).len() == 2).await;
    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
}

#[tokio::test]
async fn a_user_that_may_not_run_scripts_is_misconfigured() {
    needs!(redis);
    let server = server(&["+@all", "-@scripting", "~*", "&*"]);
    assert_eq!(refused(&server).await.kind(), ErrorKind::Misconfigured);
    assert!(keys(&server).is_empty());
}

#[tokio::test]
async fn every_command_that_a_user_lacks_is_found_at_connect_and_named() {
    needs!(redis);
    let server = server(&["+@all", "~*", "&*"]);
    for command in [
        "EVAL",
        "EVALSHA",
        "TIME",
        "GET",
        "MGET",
        "SET",
        "DEL",
        "EXISTS",
        "PTTL",
        "PEXPIRE",
        "PEXPIREAT",
        "ZADD",
        "ZREM",
        "ZRANGE",
        "ZPOPMIN",
        "ZSCORE",
        "ZCARD",
        "ZREMRANGEBYSCORE",
    ] {
        server.cli(&["ACL", "SETUSER", "alice", &format!("-{command}")]);
        let connecting = LockManager::connect(&url(&server)).await;
        let error = connecting.map(drop).expect_err(command);
        assert_eq!(error.kind(), ErrorKind::Misconfigured, "{command}");
        let named = error.to_string().contains(&format!(" {command};"));
        assert!(named, "{command}: {error}");
        server.cli(&["ACL", "SETUSER", "alice", &format!("+{command}")]);
    }
    assert_eq!(server.keys(), Vec::<String>::new(), "nothing was written");
    manager(&url(&server)).await;
}

#[tokio::test]
async fn a_user_that_may_only_read_the_keys_is_found_at_connect() {
    needs!(redis_7);
    let server = server(&["+@all", "%R~*", "&*"]);
    let connecting = LockManager::connect(&url(&server)).await;
    let error = connecting
        .map(drop)
        .expect_err("the user may only read the keys");
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    assert!(error.to_string().contains("keys;"), "{error}");
}

#[tokio::test]
async fn a_command_of_a_script_that_is_forbidden_later_is_misconfigured() {
    needs!(redis);
    let server = server(&["+@all", "~*", "&*"]);
    let locks = manager(&url(&server)).await;
    let guard = taken(&locks, "k", long()).await;
    server.cli(&["ACL", "SETUSER", "alice", "-del"]);
    let error = guard.release().await.expect_err("forbidden");
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
}

#[tokio::test]
async fn a_user_that_may_not_use_the_keys_is_misconfigured_and_the_error_names_them() {
    needs!(redis);
    let server = server(&["+@all", "~other:*", "&*"]);
    let error = refused(&server).await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("~<namespace>*"), "{error}");
    assert_eq!(error.http_status(), 500);
}

#[tokio::test]
async fn a_user_that_may_not_use_the_mark_is_misconfigured_and_leaves_no_lock() {
    needs!(redis);
    let server = server(&["+@all", "~lockkit:k", "&*"]);
    assert_eq!(refused(&server).await.kind(), ErrorKind::Misconfigured);
    wait::eventually("no lock stays", async || keys(&server).is_empty()).await;
}

#[tokio::test]
async fn a_user_without_the_right_to_time_is_misconfigured_and_leaves_no_lock() {
    needs!(redis);
    let server = server(&["+@all", "-time", "~*", "&*"]);
    assert_eq!(refused(&server).await.kind(), ErrorKind::Misconfigured);
    wait::eventually("no lock stays", async || keys(&server).is_empty()).await;
}

#[tokio::test]
async fn a_user_that_may_do_nothing_is_misconfigured() {
    needs!(redis);
    let server = server(&["-@all"]);
    assert_eq!(refused(&server).await.kind(), ErrorKind::Misconfigured);
}

#[tokio::test]
async fn a_user_that_may_not_subscribe_waits_by_polling() {
    needs!(redis);
    let server = server(&["+@all", "~*", "resetchannels"]);
    let (locks, other) = (manager(&url(&server)).await, manager(&url(&server)).await);
    let guard = taken(&locks, "k", long()).await;
    let waiter = tokio::spawn(other.lock("k").wait(Wait::Forever).acquire());
    wait::eventually("the waiter is queued", async || keys(&server).len() == 2).await;
    guard.release().await.expect("no push, no error");
    its_turn(waiter).await.release().await.expect("held");
}

#[tokio::test]
async fn without_the_right_to_publish_a_released_key_is_free_and_its_waiter_keeps_its_ticket() {
    needs!(redis);
    let server = server(&["+@all", "~*", "resetchannels"]);
    let locks = manager(&url(&server)).await;
    let guard = taken(&locks, "k", long()).await;
    // This waiter does not ask by itself.
    let waiting = format!("{0:016x}/{0:032x} 2000", 7);
    server.cli(&["ZADD", "lockkit:!q:{k}", "1", &waiting]);
    guard.release().await.expect("no push, no error");
    assert_eq!(server.get("lockkit:k"), None);
    let queue = server.cli(&["ZRANGE", "lockkit:!q:{k}", "0", "-1"]);
    assert_eq!(queue.trim(), waiting);
}

#[tokio::test]
async fn a_revoked_permission_is_misconfigured_until_it_is_granted_again() {
    needs!(redis);
    let server = server(&["+@all", "~*", "&*"]);
    let locks = manager(&url(&server)).await;
    let guard = taken(&locks, "k", long()).await;
    server.cli(&["ACL", "SETUSER", "alice", "resetkeys"]);
    let error = guard.release().await.expect_err("forbidden");
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    let acquire = locks.lock("k").wait(Duration::from_secs(1)).acquire();
    assert_eq!(super::kind(acquire.await), ErrorKind::Misconfigured);
    server.cli(&["ACL", "SETUSER", "alice", "~*"]);
    let other = locks.lock("k2").acquire().await.expect("allowed again");
    other.release().await.expect("held");
}
