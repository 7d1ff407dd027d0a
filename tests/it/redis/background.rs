//! Tests releases in the background: sent on the runtime's own connection, omitted, or sent by the keeper.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager};
use lock_tests::{Direction, Flow, RedisServer, needs, wait};

use super::fencing::goes_back;
use super::{asked, drains, keys, kind, long, manager, proxied, served, served_both, waits};

async fn is_free(server: &RedisServer) {
    wait::eventually("the key is free", async || keys(server).is_empty()).await;
}

/// Waits until everything is released and the manager keeps nothing.
async fn is_over(server: &RedisServer, locks: &LockManager) {
    drains(locks).await;
    assert!(keys(server).is_empty());
}

#[tokio::test]
async fn a_lock_that_is_taken_again_at_once_is_one_script() {
    needs!(redis);
    let (server, locks) = served().await;
    let take = || locks.lock("k").ttl(long()).acquire();
    let mut guard = take().await.expect("free");
    for _ in 0..10 {
        // The server knows the script from the first time on.
        let fence = guard.fencing_token();
        server.reset_stats();
        guard.release_in_background();
        guard = take().await.expect("free");
        assert!(guard.fencing_token() > fence);
    }
    assert_eq!(asked(&server).get("evalsha"), Some(&1));
    guard.release().await.expect("held");
    is_over(&server, &locks).await;
}

#[tokio::test]
async fn a_release_is_sent_when_no_task_of_the_process_takes_the_lock_again() {
    needs!(redis);
    let (server, locks) = served().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    server.reset_stats();
    guard.release_in_background();
    is_free(&server).await;
    assert_eq!(asked(&server).get("evalsha"), Some(&1));
    is_over(&server, &locks).await;
}

#[tokio::test]
async fn a_release_that_the_acl_forbids_is_repeated_until_it_is_allowed() {
    needs!(redis);
    let (server, locks) = served().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    server.cli(&["ACL", "SETUSER", "default", "-del"]);
    server.reset_stats();
    drop(guard);
    wait::eventually("the release is refused again and again", async || {
        asked(&server).get("evalsha") > Some(&3)
    })
    .await;
    assert_eq!(keys(&server).len(), 1);
    server.cli(&["ACL", "SETUSER", "default", "+del"]);
    // The key is free long before its ttl is over.
    is_free(&server).await;
    is_over(&server, &locks).await;
}

#[tokio::test]
async fn a_release_does_not_wait_for_a_runtime_that_is_blocked() {
    needs!(redis);
    let (server, locks) = served().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    guard.release_in_background();
    // The wait blocks the test's only thread.
    assert!(wait::holds_within(wait::PATIENCE, || server
        .get("lockkit:k")
        .is_none()));
    is_over(&server, &locks).await;
}

#[tokio::test]
async fn a_release_survives_the_end_of_its_runtime() {
    needs!(redis);
    let (server, locks) = served().await;
    let elsewhere = locks.clone();
    let runtime = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            let guard = elsewhere.lock("k").ttl(long()).acquire().await;
            guard.expect("free").release_in_background();
        });
    });
    runtime.join().expect("no panic");
    is_over(&server, &locks).await;
}

#[tokio::test]
async fn a_waiter_comes_before_the_process_that_takes_the_lock_again() {
    needs!(redis);
    let (server, locks, others) = served_both().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let waiting = waits(&server, &others, "k", 1).await;
    let fence = guard.fencing_token();
    guard.release_in_background();
    let again = locks.lock("k").ttl(long()).acquire().await;
    assert_eq!(kind(again), ErrorKind::Busy);
    let next = waiting.await.expect("no panic").expect("its turn");
    assert!(next.fencing_token() > fence);
    next.release().await.expect("held");
    is_over(&server, &locks).await;
}

#[tokio::test]
async fn an_acquire_does_not_supersede_another_owner() {
    needs!(redis);
    let (server, locks) = served().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    server.cli(&["SET", "lockkit:k", "a stranger", "PX", "60000"]);
    guard.release_in_background();
    let again = locks.lock("k").ttl(long()).acquire().await;
    assert_eq!(kind(again), ErrorKind::Busy);
    assert_eq!(server.get("lockkit:k").as_deref(), Some("a stranger"));
    server.cli(&["DEL", "lockkit:k"]);
    is_over(&server, &locks).await;
}

#[tokio::test]
async fn tokens_rise_over_superseded_releases_when_the_mark_is_ahead_of_the_clock() {
    needs!(redis);
    let server = RedisServer::start();
    let mut highest = goes_back(&server);
    let locks = manager(&server.url()).await;
    for _ in 0..5 {
        let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
        let fence = u64::from(guard.fencing_token());
        assert!(fence > highest, "{fence} {highest}");
        highest = fence;
        guard.release_in_background();
    }
    is_free(&server).await;
    let other = manager(&server.url()).await;
    let guard = other.lock("k").ttl(long()).acquire().await.expect("free");
    assert!(u64::from(guard.fencing_token()) > highest);
}

#[tokio::test]
async fn the_token_of_a_superseded_release_is_remembered_when_the_acquire_is_dropped() {
    needs!(redis);
    let (server, proxy, locks) = proxied(wait::PATIENCE).await;
    let take = || locks.lock("k").ttl(long()).acquire();
    for _ in 0..2 {
        // The second time, the server knows the script.
        take().await.expect("free").release_in_background();
        take().await.expect("free").release().await.expect("held");
    }
    let guard = take().await.expect("free");
    let fence = u64::from(guard.fencing_token());
    proxy.set(Direction::Replies, Flow::Hold);
    let before = server.get("lockkit:k").expect("held");
    guard.release_in_background();
    let stepped_over = wait::eventually("the acquire has superseded the release", async || {
        server.get("lockkit:k").is_some_and(|now| now != before)
    });
    tokio::select! {
        // The acquire is polled first, before the release is sent.
        biased;
        _ = take() => panic!("the acquire was answered"),
        () = stepped_over => {}
    }
    proxy.pass();
    is_free(&server).await;
    let mark = server.get("lockkit:!f").expect("a mark");
    assert!(
        mark.parse::<u64>().expect("a number") >= fence,
        "{mark} {fence}"
    );
    is_over(&server, &locks).await;
}

#[tokio::test]
async fn an_omitted_release_is_sent_when_the_acquire_that_supersedes_it_fails() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(1)).await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    // Neither the acquire nor any other request arrives.
    proxy.set(Direction::Requests, Flow::Hold);
    guard.release_in_background();
    let step = locks.lock("k").ttl(long()).acquire().await;
    assert_eq!(kind(step), ErrorKind::Unavailable);
    proxy.pass();
    is_over(&server, &locks).await;
}
