//! Tests waiting over several servers: any server can tell the release, and a waiter sends nothing
//! until then.

use std::time::Duration;

use lock_core::test_util::ManualClock;
use lock_core::{LockGuard, LockManager, Wait};
use lock_tests::{RedisServer, needs, wait};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::{Nodes, held_by_all, long};

/// A time many times longer than the pause of a waiter that polls.
const WATCHED: Duration = Duration::from_secs(3);

async fn waiter(nodes: &Nodes, locks: &LockManager) -> JoinHandle<LockGuard> {
    let request = locks.lock("k").ttl(long()).wait(Wait::Forever);
    let waiter = tokio::spawn(async move { request.acquire().await.expect("its turn") });
    wait::eventually("the waiter is queued on a majority", async || {
        let queued = |key: &String| key.starts_with("lockkit:!q");
        let up = nodes.0.iter().filter(|node| node.is_up());
        up.filter(|node| node.keys().iter().any(queued)).count() > nodes.0.len() / 2
    })
    .await;
    waiter
}

/// Counts the acquires of a key on all servers.
fn asked(nodes: &Nodes) -> u64 {
    let sets = |node: &RedisServer| node.commandstats().get("set").copied();
    nodes.0.iter().filter_map(sets).sum()
}

#[tokio::test]
async fn a_waiter_is_told_of_a_release_by_the_remaining_servers() {
    needs!(redis);
    let nodes = Nodes::start(5);
    // The waiter's clock stands still, so that only a push can end its wait.
    let stopped = nodes.builder().clock(ManualClock::new());
    let (locks, other) = (nodes.acquainted().await, nodes.acquainted_by(stopped).await);
    nodes.0[0].kill();
    nodes.0[3].kill();
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let waiter = waiter(&nodes, &other).await;
    let token = guard.fencing_token();
    guard
        .release()
        .await
        .expect("a majority has released the lock");
    let next = timeout(wait::PATIENCE, waiter)
        .await
        .expect("the waiter is told");
    assert!(next.expect("no panic").fencing_token() > token);
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn a_waiter_sends_nothing_while_the_lock_is_held() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    let guard = held_by_all(&locks).await;
    let waiter = waiter(&nodes, &nodes.acquainted().await).await;
    // The waiter's last request may still be under way.
    let mut before = 0;
    wait::eventually("the waiter sends nothing", async || {
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

/// Puts a value of another type in the place of the queue of `k` on this many servers.
fn spoil_queues(nodes: &Nodes, count: usize) {
    for node in &nodes.0[..count] {
        node.cli(&["SET", "lockkit:!q:{k}", "data"]);
    }
}

#[tokio::test]
async fn a_waiter_without_tickets_on_a_majority_gets_the_lock_soon_after_its_release() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let (locks, other) = (nodes.acquainted().await, nodes.acquainted().await);
    let guard = held_by_all(&locks).await;
    spoil_queues(&nodes, 3);
    let asked_before = asked(&nodes);
    let request = other.lock("k").ttl(long()).wait(Wait::Forever);
    let waiter = tokio::spawn(request.acquire());
    // The first request is two of these commands on each server. The second one, for a ticket, is one.
    wait::eventually("a majority has refused the ticket", async || {
        asked(&nodes) >= asked_before + 8
    })
    .await;
    guard.release().await.expect("held");
    let next = timeout(wait::PATIENCE, waiter).await;
    drop(
        next.expect("the waiter asks")
            .expect("no panic")
            .expect("free"),
    );
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn a_waiter_behind_many_dead_ones_is_told_of_a_release() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let (locks, other) = (nodes.acquainted().await, nodes.acquainted().await);
    let guard = held_by_all(&locks).await;
    let die = "for place = 1, 1500 do \
        local token = string.format('%016x/%032x', place, place) \
        redis.call('ZADD', KEYS[1], place, token .. ' 2000') end";
    for node in &nodes.0 {
        node.cli(&["EVAL", die, "1", "lockkit:!q:{k}"]);
    }
    let request = other.lock("k").ttl(long()).wait(Wait::Forever);
    let waiter = tokio::spawn(request.acquire());
    wait::eventually("the waiter is queued on a majority", async || {
        let stands = |node: &&RedisServer| node.cli(&["ZCARD", "lockkit:!q:{k}"]) == "1501";
        nodes.0.iter().filter(stands).count() >= 2
    })
    .await;
    guard.release().await.expect("held");
    let next = timeout(wait::PATIENCE, waiter).await;
    drop(
        next.expect("the waiter is told")
            .expect("no panic")
            .expect("its turn"),
    );
    nodes.are_left_clean().await;
}

#[tokio::test]
async fn a_process_withdraws_the_tickets_of_its_waiters_that_have_gone() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    let guard = held_by_all(&locks).await;
    // The ticket is of a waiter with a ttl of half a second that its node did not remove.
    let held = nodes.0[0].get("lockkit:k").expect("held");
    let (address, _) = held.split_once('/').expect("a token");
    let gone = format!("{address}/{:032x} 500", 7);
    for node in &nodes.0 {
        node.cli(&["ZADD", "lockkit:!q:{k}", "1", &gone]);
    }
    guard.release().await.expect("held");
    wait::eventually(
        "the process is told and withdraws the tickets",
        async || {
            let queued =
                |node: &lock_tests::RedisServer| node.cli(&["EXISTS", "lockkit:!q:{k}"]) == "1";
            !nodes.0.iter().any(queued)
        },
    )
    .await;
    let left = locks.drain(wait::PATIENCE).await;
    assert!(
        left.is_complete(),
        "the process repeats no command for ever"
    );
}

#[tokio::test]
async fn a_ticket_that_cannot_be_withdrawn_yet_is_not_notified_again_and_again() {
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
    // Each queue gets a ticket of a lease that this process does not know. No waiter has stood there, because the rest of
    // its commands would touch the queue too.
    let guard = held_by_all(&locks).await;
    let token = nodes.0[0].get("lockkit:k").expect("the lock");
    guard.release().await.expect("held");
    nodes.are_left_clean().await;
    let place = format!("{token} 2000");
    all(&["ZADD", "lockkit:!q:{k}", "1", &place]);
    writes("1");
    nodes.0.iter().for_each(RedisServer::reset_stats);
    let (manager, _) = place.split_once('/').expect("a token and a grant");
    let channel = format!("lockkit:!m:{manager}");
    let message = format!("n {place} 0 lockkit:k");
    let notify = || assert_eq!(nodes.0[0].cli(&["PUBLISH", &channel, &message]), "1");
    notify();
    wait::eventually("the process tries to withdraw the tickets", async || {
        counted("evalsha").iter().all(|count| *count > 3)
    })
    .await;
    assert_eq!(counted("publish"), [1, 0, 0], "only the test publishes");
    writes("0");
    // The process has given up after 5 s, and a release notifies it once more.
    notify();
    wait::eventually("the tickets are withdrawn", async || {
        places().concat().is_empty()
    })
    .await;
}
