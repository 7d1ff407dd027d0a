//! Tests many dead waiters: tickets whose channels no client hears. With any number of them, the living waiter
//! behind them gets the lock as soon as it is free.

use std::time::Duration;

use lock_tests::{ChildProcess, RedisServer, needs, wait};
use tokio::task::JoinSet;

use super::{its_turn, keys, long, process, queued, served_both, waits};

/// A number of waiters above the limit that one call of a script removes.
const VERY_MANY: usize = 2_500;

/// Puts this many dead waiters into the queue of `k`, or of another key.
fn die(server: &RedisServer, key: &str, count: usize) {
    let script = "for place = 1, ARGV[1] do \
        local token = string.format('%016x/%032x', place, place) \
        redis.call('ZADD', KEYS[1], place, token .. ' 2000') end";
    let queue = format!("lockkit:!q:{{{key}}}");
    server.cli(&["EVAL", script, "1", &queue, &count.to_string()]);
}

async fn comes_after(dead: usize) {
    let (server, owner, locks) = served_both().await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    die(&server, "k", dead);
    let waiter = waits(&server, &locks, "k", dead + 1).await;
    guard.release().await.expect("held");
    assert!(
        server.get("lockkit:k").is_some(),
        "the release has handed the lock over"
    );
    its_turn(waiter).await.release().await.expect("held");
    wait::eventually("no key is left", async || keys(&server).is_empty()).await;
}

#[tokio::test]
async fn a_release_gives_the_lock_to_a_waiter_behind_two_hundred_dead_ones() {
    needs!(redis);
    comes_after(200).await;
}

#[tokio::test]
async fn a_release_gives_the_lock_to_a_waiter_behind_more_dead_ones_than_a_script_removes() {
    needs!(redis);
    comes_after(VERY_MANY).await;
}

#[tokio::test]
async fn a_release_gives_the_lock_to_a_waiter_behind_dead_ones_and_processes_that_were_killed() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    die(&server, "k", 100);
    let connected = || server.info("clients").remove("connected_clients");
    let alone = connected();
    let mut killed = Vec::new();
    for count in 101..=102 {
        killed.push(process("gone::waits_for_its_turn", &server, &[]));
        queued(&server, "k", count).await;
    }
    killed.iter_mut().for_each(ChildProcess::kill);
    wait::eventually(
        "the server has closed the connections of the killed processes",
        async || connected() == alone,
    )
    .await;
    let waiter = waits(&server, &locks, "k", 103).await;
    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
}

#[tokio::test]
async fn releases_that_go_together_give_each_lock_to_the_waiter_behind_dead_ones() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    let mut releases = JoinSet::new();
    let mut waiters = Vec::new();
    let mut guards = Vec::new();
    for key in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let guard = owner.lock(key).ttl(long()).acquire().await.expect("free");
        guards.push(guard);
        die(&server, key, 300);
        waiters.push(waits(&server, &locks, key, 301).await);
    }
    for guard in guards {
        releases.spawn(guard.release());
    }
    for released in releases.join_all().await {
        released.expect("held");
    }
    for waiter in waiters {
        its_turn(waiter).await.release().await.expect("held");
    }
    wait::eventually("no key is left", async || keys(&server).is_empty()).await;
}

#[tokio::test]
async fn a_cooldown_is_told_to_the_waiter_behind_more_dead_ones_than_a_script_removes() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    let request = owner.lock("k").ttl(long());
    let request = request.cooldown(Duration::from_millis(500));
    let guard = request.acquire().await.expect("free");
    die(&server, "k", VERY_MANY);
    let waiter = waits(&server, &locks, "k", VERY_MANY + 1).await;
    guard.release().await.expect("held");
    assert_eq!(server.cli(&["ZCARD", "lockkit:!q:{k}"]), "1");
    its_turn(waiter).await.release().await.expect("held");
}
