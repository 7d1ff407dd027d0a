//! Tests a redirection to the node to which a slot moves, which is followed late.

use std::time::Duration;

use lock_core::ErrorKind;
use lock_tests::{RedisCluster, RedisServer, needs, wait};
use tokio::runtime::Builder;

use super::migration::Move;
use super::{PATIENT, long, manager, once, taken};

/// How often a node has redirected a command to the node to which its slot moves.
fn redirections(node: &RedisServer) -> Option<String> {
    node.info("errorstats").remove("errorstat_ASK")
}

/// Takes a lock whose slot moves. The node to which it moves stands still for two seconds, in which the move is given up and
/// begins again, and another process gets the lock. `is_new`: whether the lock is asked for on a new runtime, which is not
/// connected with that node.
///
/// Returns whether that node then has the key of the lock.
async fn is_redirected_for_long(is_new: bool) -> bool {
    let cluster = RedisCluster::start(PATIENT);
    let (locks, other) = (manager(&cluster).await, manager(&cluster).await);
    let moving = Move::begin(&cluster, "lockkit:k");
    once(&locks, "k").await;
    let before = redirections(moving.from);
    moving.to.stop();
    let late = locks.lock("k").ttl(long()).acquire();
    let late = match is_new {
        true => tokio::task::spawn_blocking(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(late)
        }),
        false => tokio::spawn(late),
    };
    wait::eventually("the process is redirected", async || {
        redirections(moving.from) != before
    })
    .await;
    moving.is_given_up();
    let guard = taken(&other, "k", long()).await;
    moving.begins_again();
    tokio::time::sleep(Duration::from_secs(2)).await;
    moving.to.cont();
    let error = late.await.expect("no panic").expect_err("the lock is held");
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    // While the lock is held, the late call's cleanup is not redirected, and leaves that key.
    let is_there = moving.to.keys().contains(&"lockkit:k".to_owned());
    guard.release().await.expect("held");
    is_there
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_answers_long_after_the_redirection_to_it_grants_nothing() {
    needs!(redis_7);
    assert!(is_redirected_for_long(false).await, "it was asked in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_redirection_is_not_followed() {
    needs!(redis_7);
    assert!(!is_redirected_for_long(true).await);
}
