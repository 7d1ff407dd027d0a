//! Tests waiters that the server refused to queue. No release is pushed to them, so they ask again by
//! themselves, long before their timer of last resort.

use std::fs;
use std::path::PathBuf;

use lock_core::Wait;
use lock_core::test_util::ManualClock;
use lock_tests::{RedisServer, needs, wait};

use super::{
    all_is_answered, its_turn, keys, long, manager, millis, on, others_run, refused, served_both,
};
use crate::redis::asked;

async fn scripts_were_asked(server: &RedisServer) {
    wait::eventually("the waiter has asked to be queued", async || {
        asked(server).get("evalsha") > Some(&0)
    })
    .await;
}

/// Checks a waiter that asks while the server refuses writes. The server allows them again before the release.
async fn comes_although(refuse: impl Fn(&RedisServer), allow: impl Fn(&RedisServer)) {
    let (server, owner, locks) = served_both().await;
    let request = || locks.lock("k").ttl(long());
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    // The server knows the scripts from here on.
    let short = tokio::spawn(request().wait(millis(50)).acquire());
    assert_eq!(refused(short).await, lock_core::ErrorKind::Busy);
    wait::eventually("that waiter has left", async || keys(&server).len() == 1).await;
    refuse(&server);
    server.reset_stats();
    let waiter = tokio::spawn(request().wait(Wait::Forever).acquire());
    scripts_were_asked(&server).await;
    assert_eq!(keys(&server).len(), 1, "there is no queue");
    allow(&server);
    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
    wait::eventually("no key is left", async || keys(&server).is_empty()).await;
}

fn set(server: &RedisServer, name: &str, value: &str) {
    server.cli(&["CONFIG", "SET", name, value]);
}

#[tokio::test]
async fn a_waiter_that_a_full_server_refused_to_queue_gets_the_lock_soon_after_its_release() {
    needs!(redis);
    comes_although(
        |server| set(server, "maxmemory", "1"),
        |server| set(server, "maxmemory", "0"),
    )
    .await;
}

#[tokio::test]
async fn a_waiter_that_a_server_without_replicas_refused_to_queue_gets_the_lock_soon_after_its_release()
 {
    needs!(redis);
    comes_although(
        |server| set(server, "min-replicas-to-write", "1"),
        |server| set(server, "min-replicas-to-write", "0"),
    )
    .await;
}

#[tokio::test]
async fn a_waiter_that_a_read_only_server_refused_to_queue_gets_the_lock_soon_after_its_release() {
    needs!(redis);
    comes_although(
        |server| drop(server.cli(&["REPLICAOF", "127.0.0.1", "1"])),
        |server| drop(server.cli(&["REPLICAOF", "NO", "ONE"])),
    )
    .await;
}

/// Makes snapshots fail, because a folder is in the place of their file.
fn cannot_be_saved(server: &RedisServer) {
    let folder = server.cli(&["CONFIG", "GET", "dir"]);
    let folder: PathBuf = folder.lines().last().expect("a folder").into();
    fs::create_dir(folder.join("dump.rdb")).expect("a folder to write in");
    set(server, "save", "3600 1");
    server.cli(&["BGSAVE"]);
    wait::until("the server refuses writes", || {
        server.info("persistence").get("rdb_last_bgsave_status") == Some(&"err".to_owned())
    });
}

#[tokio::test]
async fn a_waiter_that_a_server_without_snapshots_refused_to_queue_gets_the_lock_soon_after_its_release()
 {
    needs!(redis);
    comes_although(cannot_be_saved, |server| {
        set(server, "stop-writes-on-bgsave-error", "no");
    })
    .await;
}

#[tokio::test]
async fn a_waiter_whose_queue_is_a_key_of_another_type_gets_the_lock_soon_after_its_release() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    server.cli(&["SET", "lockkit:!q:{k}", "data"]);
    server.reset_stats();
    let waiter = tokio::spawn(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    scripts_were_asked(&server).await;
    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
    assert_eq!(server.get("lockkit:!q:{k}").as_deref(), Some("data"));
}

#[tokio::test]
async fn a_caller_beside_such_a_waiter_makes_it_ask_and_gets_no_old_answer() {
    needs!(redis);
    let server = RedisServer::start();
    let clock = ManualClock::new();
    let (owner, locks) = (
        manager(&server.url()).await,
        on(&clock, &server.url()).await,
    );
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    server.cli(&["SET", "lockkit:!q:{k}", "data"]);
    server.reset_stats();
    let waiter = tokio::spawn(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    scripts_were_asked(&server).await;
    all_is_answered(&locks).await;
    others_run().await;
    guard.release().await.expect("held");
    // No time passes for the waiter. It asks because of the caller, and comes first.
    let answer = locks.lock("k").try_acquire().await.expect("an answer");
    assert!(answer.is_none(), "the waiter has the lock");
    its_turn(waiter).await.release().await.expect("held");
    let guard = locks.lock("k").try_acquire().await.expect("an answer");
    guard.expect("free").release().await.expect("held");
}
