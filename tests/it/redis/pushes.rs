//! Tests pushes that tell waiters of a release, and pushes that are lost.

use std::time::Duration;

use lock_core::Wait;
use lock_tests::{Direction, Flow, RedisServer, needs, wait};
use tokio::time::timeout;

use super::{its_turn, keys, long, manager, proxied, queued, served_both, taken, waits};

/// Returns the token of the first waiter in the queue.
pub(super) fn first(server: &RedisServer, key: &str) -> String {
    let member = server.cli(&["ZRANGE", &format!("lockkit:!q:{{{key}}}"), "0", "0"]);
    let (token, _grant) = member.split_once(' ').expect("a token and its grant");
    token.to_owned()
}

/// Returns the channel on which the token's manager listens.
pub(super) fn channel(token: &str) -> String {
    let (manager, _) = token.split_once('/').expect("a token");
    format!("lockkit:!m:{manager}")
}

#[tokio::test]
async fn two_managers_of_one_process_do_not_take_each_others_pushes() {
    needs!(redis);
    let (server, one, two) = served_both().await;
    let owner = manager(&server.url()).await;
    for _ in 0..10 {
        let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
        let first = waits(&server, &one, "k", 1).await;
        let second = waits(&server, &two, "k", 2).await;
        guard.release().await.expect("held");
        let both = async {
            tokio::select! {
                guard = first => { guard.expect("no panic").expect("its turn").release().await.expect("held"); }
                guard = second => { guard.expect("no panic").expect("its turn").release().await.expect("held"); }
            }
        };
        timeout(wait::PATIENCE, both)
            .await
            .expect("one of the waiters is told");
        wait::eventually("no waiter is left", async || keys(&server).is_empty()).await;
    }
}

#[tokio::test]
async fn a_waiter_whose_push_is_lost_without_a_disconnection_is_told_by_the_next_release() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = tokio::spawn(locks.lock("k").wait(Wait::Forever).acquire());
    queued(&server, "k", 1).await;
    // The test overwrites the lock by hand, so no client publishes anything.
    server.cli(&["SET", "lockkit:k", "stranger", "PX", "500"]);
    assert!(guard.release().await.is_err());
    let again = owner.lock("k").ttl(long()).wait(long()).acquire().await;
    again
        .expect("the foreign lock ran out")
        .release()
        .await
        .expect("held");
    let next = timeout(wait::PATIENCE, waiter)
        .await
        .expect("the release tells the waiter");
    drop(next.expect("no panic").expect("free"));
}

#[tokio::test]
async fn a_release_between_being_refused_and_listening_is_not_missed() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    let owner = manager(&server.url()).await;
    for _ in 0..5 {
        let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
        proxy.set(Direction::Replies, Flow::Hold);
        server.reset_stats();
        let waiter = tokio::spawn(locks.lock("k").wait(Wait::Forever).acquire());
        wait::eventually("the waiter is refused", async || {
            server.commandstats().contains_key("time")
        })
        .await;
        guard.release().await.expect("held");
        proxy.pass();
        its_turn(waiter).await.release().await.expect("held");
    }
}

#[tokio::test]
async fn a_push_that_overtakes_the_refusal_is_not_missed() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    let owner = manager(&server.url()).await;
    for _ in 0..5 {
        let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
        // The first refusal passes. The refusal that comes with the ticket is slow.
        proxy.set(Direction::Replies, Flow::Delay(Duration::from_millis(20)));
        let waiter = tokio::spawn(locks.lock("k").wait(Wait::Forever).acquire());
        queued(&server, "k", 1).await;
        guard.release().await.expect("held");
        let next = timeout(wait::PATIENCE, waiter).await.expect("not missed");
        let next = next.expect("no panic").expect("free");
        proxy.pass();
        next.release().await.expect("held");
    }
}

#[tokio::test]
async fn a_push_that_comes_after_the_grant_leaves_the_lock_alone() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = waits(&server, &locks, "k", 1).await;
    let token = first(&server, "k");
    guard.release().await.expect("held");
    let guard = waiter.await.expect("no panic").expect("its turn");
    let before = guard.fencing_token();
    // The messages repeat a grant, and announce a turn that has already come.
    for message in [
        format!("g {token} 0 99000 1 7 lockkit:k"),
        format!("n {token} 2000 0 lockkit:k"),
    ] {
        assert_eq!(server.cli(&["PUBLISH", &channel(&token), &message]), "1");
    }
    // Another push on the same connection, and its effect, come after those messages.
    let other = taken(&owner, "other", long()).await;
    let waiter = tokio::spawn(
        locks
            .lock("other")
            .ttl(long())
            .wait(Wait::Forever)
            .acquire(),
    );
    queued(&server, "other", 1).await;
    other.release().await.expect("held");
    drop(waiter.await.expect("no panic").expect("its turn"));
    wait::eventually("the other lock is released", async || {
        server.get("lockkit:other").is_none()
    })
    .await;
    assert_eq!(server.get("lockkit:k"), Some(token));
    assert_eq!(guard.fencing_token(), before);
    guard
        .release()
        .await
        .expect("the lock was held all the time");
}

/// Queues processes that are stopped: their connections live, the push arrives, and no process acts
/// on it.
pub(super) fn stopped(
    server: &RedisServer,
    count: u64,
    grant_millis: u64,
) -> lock_core::redis1::Connection {
    let client = lock_core::redis1::Client::open(server.url()).expect("a URL");
    let mut deaf = client.get_connection().expect("a connection");
    for process in 0..count {
        let waiting = format!("{process:016x}/{process:032x} {grant_millis}");
        server.cli(&["ZADD", "lockkit:!q:{k}", &process.to_string(), &waiting]);
        let mut listens = lock_core::redis1::cmd("SUBSCRIBE");
        listens.arg(format!("lockkit:!m:{process:016x}"));
        deaf.send_packed_command(&listens.get_packed_command())
            .expect("sent");
    }
    wait::until("the stopped processes are subscribed", || {
        server
            .cli(&["PUBSUB", "CHANNELS", "lockkit:!m:00000000*"])
            .lines()
            .count() as u64
            == count
    });
    deaf
}

#[tokio::test]
async fn the_releaser_checks_that_a_waiter_takes_the_key() {
    needs!(redis);
    // There are more stopped waiters than are told of a grant. The lock is handed over by a
    // release, and by an acquire that supersedes a release.
    for steps_over in [false, true] {
        let (server, owner, locks) = served_both().await;
        let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
        let _deaf = stopped(&server, 3, 300);
        let waiter = waits(&server, &locks, "k", 4).await;
        if steps_over {
            drop(guard);
            let again = owner.lock("k").ttl(long()).try_acquire().await;
            assert!(
                again.expect("an answer").is_none(),
                "the waiters come first"
            );
        } else {
            guard.release().await.expect("held");
        }
        let next = timeout(wait::PATIENCE, waiter).await;
        let next = next.expect("the push comes before the timer of last resort");
        drop(next.expect("no panic").expect("its turn"));
    }
}

#[tokio::test]
async fn a_wait_ends_in_time_under_many_pushes() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let short = locks.lock("k").wait(Duration::from_millis(300)).acquire();
    let waiter = tokio::spawn(short);
    queued(&server, "k", 1).await;
    let token = first(&server, "k");
    // The pushes play a key that changes its owner thousands of times a second, always to a faster
    // waiter.
    let tell = "for _ = 1, 500 do redis.call('PUBLISH', ARGV[1], ARGV[2]) end";
    let (channel, message) = (channel(&token), format!("n {token} 2000 0 lockkit:k"));
    let told_all_the_time = async {
        loop {
            server.cli(&["EVAL", tell, "0", &channel, &message]);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let answer = tokio::select! {
        answer = timeout(wait::PATIENCE, waiter) => answer,
        () = told_all_the_time => unreachable!("the pushes never end"),
    };
    let error = answer
        .expect("bounded")
        .expect("no panic")
        .expect_err("held");
    assert_eq!(error.kind(), lock_core::ErrorKind::Busy);
    drop(guard);
}

#[tokio::test]
async fn an_invalid_push_is_ignored() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = tokio::spawn(locks.lock("k").wait(Wait::Forever).acquire());
    queued(&server, "k", 1).await;
    let token = first(&server, "k");
    let held = server.get("lockkit:k").expect("held");
    let channel = channel(&token);
    let endless = "x".repeat(1 << 20);
    for message in [
        "",
        " ",
        "nonsense",
        &token,
        &format!("g {token}"),
        &format!("g {token} 4000000000 0 5 - "),
        &format!("g {token} 4000000000 0 5 -"),
        &format!("g {token} 4000000000 0 soon - lockkit:k"),
        &format!("g {token} 4000000000 0 5 0 lockkit:k"),
        &format!("g {token} 0 0 5 - lockkit:k"),
        &format!("g {token} 4000000000 0 5 -5 lockkit:k"),
        &format!("g {token} 18446744073709 999999 5 5 lockkit:k"),
        &format!("g {token} 4000000000 0 18446744073709551615 5 lockkit:k"),
        &format!("g {token} 4000000000 0 5 5 elsewhere"),
        &format!("h {token} 4000000000 0 5 5 lockkit:k"),
        &format!("n {token} 2000 -1 lockkit:k"),
        &format!("g {} 4000000000 0 5 5 lockkit:k", token.to_uppercase()),
        // No grant lasts that long, or ends before its request, so the waiter asks.
        &format!("g {token} 4000000000 0 5 5 lockkit:k"),
        &format!("g {token} 0 0 1 5 lockkit:k"),
        // The first message has the owner's token, and the others name keys for which the process
        // does not wait.
        &format!("n {held} 2000 0 lockkit:k"),
        &format!("n {token} 2000 0 lockkit:another"),
        &format!("n {token} 2000 0 lockkit:{endless}"),
        &endless,
    ] {
        assert_eq!(server.cli(&["PUBLISH", &channel, message]), "1");
    }
    assert!(guard.is_valid());
    guard.release().await.expect("untouched");
    its_turn(waiter).await.release().await.expect("held");
}
