//! Tests locks of several keys whose owner is a process that is killed.

use std::time::Duration;

use lock_core::{LockManager, LockRequest, Wait};
use lock_tests::{needs, wait};
use tokio::time::timeout;

use super::processes::{parent, process};
use super::{long, served, taken};

fn all(locks: &LockManager, keys: &[&str]) -> LockRequest {
    locks.lock_all(keys.iter().copied()).ttl(long())
}

#[tokio::test]
async fn a_waiter_whose_process_was_killed_holds_lower_keys_for_a_ttl_at_most() {
    needs!(redis);
    let (server, locks) = served().await;
    let last = taken(&locks, "c", long()).await;
    let first = taken(&locks, "a", long()).await;
    let mut waiter = process("redis::lock_all_processes::waits_for_three_keys", &server);
    waiter.says("waiting");
    wait::eventually("it waits for the first key", async || {
        server.keys().contains(&"lockkit:!q:{a}".to_owned())
    })
    .await;
    first.release().await.expect("held");
    wait::eventually("it holds the lower keys", async || {
        server.get("lockkit:b").is_some()
    })
    .await;
    waiter.kill();
    let next = all(&locks, &["a", "b"]).wait(Wait::Forever).acquire();
    let next = timeout(wait::PATIENCE, next).await.expect("they run out");
    next.expect("free").release().await.expect("held");
    last.release().await.expect("held");
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn waits_for_three_keys() {
    let Some(locks) = parent().await else { return };
    println!("\nwaiting");
    let request = locks.lock_all(["a", "b", "c"]).ttl(Duration::from_secs(2));
    let guard = request
        .wait(Wait::Forever)
        .acquire()
        .await
        .expect("its turn");
    println!("\nholding");
    guard.lost().await;
}
