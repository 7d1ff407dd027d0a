//! Waiting over several servers: a release is heard from any of them, and until then nothing is asked.

use std::time::Duration;

use lock_core::test_util::ManualClock;
use lock_core::{LockGuard, LockManager, Wait};
use lock_tests::{RedisServer, needs, wait};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::{Nodes, long};

/// Many times what a waiter that looks for itself would wait.
const WATCHED: Duration = Duration::from_secs(3);

async fn waiter(nodes: &Nodes, locks: &LockManager) -> JoinHandle<LockGuard> {
    let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
    let waiter = tokio::spawn(async move { request.acquire().await.expect("its turn") });
    wait::eventually("it stands in the queues of a majority", async || {
        let queued = |key: &String| key.starts_with("lockkit:!q");
        let up = nodes.0.iter().filter(|node| node.is_up());
        up.filter(|node| node.keys().iter().any(queued)).count() > nodes.0.len() / 2
    })
    .await;
    waiter
}

/// How often a key was asked for on any server.
fn asked(nodes: &Nodes) -> u64 {
    let sets = |node: &RedisServer| node.commandstats().get("set").copied();
    nodes.0.iter().filter_map(sets).sum()
}

#[tokio::test]
async fn a_waiter_is_told_of_a_release_by_the_servers_that_are_left() {
    needs!(redis);
    let nodes = Nodes::start(5);
    // The waiter's clock stands still: it is told, or it waits for ever.
    let stopped = nodes.builder().clock(ManualClock::new());
    let (locks, other) = (nodes.acquainted().await, nodes.acquainted_by(stopped).await);
    nodes.0[0].kill();
    nodes.0[3].kill();
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = waiter(&nodes, &other).await;
    let token = guard.fencing_token();
    guard.release().await.expect("a majority has given it back");
    let next = timeout(wait::PATIENCE, waiter).await.expect("it is told");
    assert!(next.expect("no panic").fencing_token() > token);
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn a_waiter_asks_nothing_while_nothing_happens() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    wait::eventually("all have agreed", async || guard.acks().granted() == 3).await;
    let waiter = waiter(&nodes, &nodes.acquainted().await).await;
    // Its last question may be under way still.
    let mut before = 0;
    wait::eventually("it is at rest", async || {
        sleep(WATCHED / 6).await;
        std::mem::replace(&mut before, asked(&nodes)) == asked(&nodes)
    })
    .await;
    sleep(WATCHED).await;
    assert_eq!(asked(&nodes), before);
    guard.release().await.expect("held");
    drop(waiter.await.expect("no panic"));
    nodes.are_left_clean().await;
}

/// So many servers hold something else where the queue of "k" would be.
fn spoil_queues(nodes: &Nodes, count: usize) {
    for node in &nodes.0[..count] {
        node.cli(&["SET", "lockkit:!q:{k}", "data"]);
    }
}

#[tokio::test]
async fn a_waiter_without_a_place_on_a_majority_has_the_lock_soon_after_its_release() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let (locks, other) = (nodes.acquainted().await, nodes.acquainted().await);
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    wait::eventually("all have agreed", async || guard.acks().granted() == 3).await;
    spoil_queues(&nodes, 3);
    let asked_before = asked(&nodes);
    let request = other.lock("k").ttl(long()).wait(Wait::Forever);
    let waiter = tokio::spawn(request.acquire());
    // Its first question is two of these commands on each server; the second one, for a place, is one.
    wait::eventually("a majority has refused it a place", async || {
        asked(&nodes) >= asked_before + 8
    })
    .await;
    guard.release().await.expect("held");
    let next = timeout(wait::PATIENCE, waiter).await;
    drop(next.expect("it looks").expect("no panic").expect("free"));
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn a_waiter_behind_many_dead_ones_is_told_of_a_release() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let (locks, other) = (nodes.acquainted().await, nodes.acquainted().await);
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    wait::eventually("all have agreed", async || guard.acks().granted() == 3).await;
    let die = "for place = 1, 1500 do \
        local token = string.format('%016x/%032x', place, place) \
        redis.call('ZADD', KEYS[1], place, token .. ' 2000') end";
    for node in &nodes.0 {
        node.cli(&["EVAL", die, "1", "lockkit:!q:{k}"]);
    }
    let request = other.lock("k").ttl(long()).wait(Wait::Forever);
    let waiter = tokio::spawn(request.acquire());
    wait::eventually("it stands in the queues of a majority", async || {
        let stands = |node: &&RedisServer| node.cli(&["ZCARD", "lockkit:!q:{k}"]) == "1501";
        nodes.0.iter().filter(stands).count() >= 2
    })
    .await;
    guard.release().await.expect("held");
    let next = timeout(wait::PATIENCE, waiter).await;
    drop(
        next.expect("it is told")
            .expect("no panic")
            .expect("its turn"),
    );
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn a_process_leaves_the_places_of_its_waiters_that_have_gone() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    wait::eventually("all have agreed", async || guard.acks().granted() == 3).await;
    // A waiter with a ttl of half a second stood there, and its node did not take it out of the queue.
    let held = nodes.0[0].get("lockkit:k").expect("held");
    let (address, _) = held.split_once('/').expect("a token");
    let gone = format!("{address}/{:032x} 500", 7);
    for node in &nodes.0 {
        node.cli(&["ZADD", "lockkit:!q:{k}", "1", &gone]);
    }
    guard.release().await.expect("held");
    wait::eventually("its process is told, and leaves the queues", async || {
        let queued =
            |node: &lock_tests::RedisServer| node.cli(&["EXISTS", "lockkit:!q:{k}"]) == "1";
        !nodes.0.iter().any(queued)
    })
    .await;
    let left = locks.drain(wait::PATIENCE).await;
    assert!(left.is_complete(), "no command is repeated for ever");
}

#[tokio::test]
async fn a_place_that_cannot_be_left_yet_is_not_told_again_and_again() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    let all = |command: &[&str]| {
        nodes
            .0
            .iter()
            .map(|node| node.cli(command))
            .collect::<Vec<_>>()
    };
    let writes = |replicas| all(&["CONFIG", "SET", "min-replicas-to-write", replicas]);
    let places = || all(&["ZRANGE", "lockkit:!q:{k}", "0", "-1"]);
    let counted = |command: &str| {
        let stats = nodes.0.iter().map(RedisServer::commandstats);
        let counts = stats.map(|stats| stats.get(command).copied().unwrap_or(0));
        counts.collect::<Vec<_>>()
    };
    // A place of a lease that this process knows nothing of any more, in each queue.
    all(&["SET", "lockkit:k", "stranger"]);
    let waiter = waiter(&nodes, &locks).await;
    wait::eventually("it stands everywhere", async || {
        places().iter().all(|place| !place.is_empty())
    })
    .await;
    let place = places().remove(0);
    waiter.abort();
    wait::eventually("it has left", async || places().concat().is_empty()).await;
    all(&["ZADD", "lockkit:!q:{k}", "1", &place]);
    all(&["DEL", "lockkit:k"]);
    writes("1");
    nodes.0.iter().for_each(RedisServer::reset_stats);
    let (manager, _) = place.split_once('/').expect("a token and a grant");
    let channel = format!("lockkit:!m:{manager}");
    let message = format!("n {place} 0 lockkit:k");
    assert_eq!(nodes.0[0].cli(&["PUBLISH", &channel, &message]), "1");
    wait::eventually("it tries to leave", async || {
        counted("evalsha").iter().all(|count| *count > 5)
    })
    .await;
    assert_eq!(counted("publish"), [1, 0, 0], "none but that of this test");
    writes("0");
    wait::eventually("it leaves", async || places().concat().is_empty()).await;
}
